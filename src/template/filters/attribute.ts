/** How filters read `attribute='a.b.0'` of each element, and the keys by which they compare elements. */
import { readIndex, type Site } from '../access.ts';
import { data, isUndefined } from '../opaque.ts';
import { fail, type Rendering, spend, spendOnText } from '../rendering.ts';
import { isTruthy } from '../truth.ts';
import { kindOf } from '../values.ts';

const PATH_ELEMENTS_MAX = 100;

/** Reads one element. */
export type Reader = (item: unknown) => unknown;

/** A reader of an attribute that must be there; without an attribute, of the element itself. */
export function attributeReader(rendering: Rendering, attribute: unknown): Reader {
  if (attribute === undefined || attribute === null) return (item) => item;
  const read = looseReader(rendering, attribute);
  return (item) => data(rendering, read(item));
}

/** A reader of an attribute that falls back when it is missing. */
export function defaultingReader(rendering: Rendering, attribute: unknown, fallback: unknown): Reader {
  const read = looseReader(rendering, attribute);
  if (fallback === undefined || fallback === null) return (item) => data(rendering, read(item));
  return (item) => {
    const value = read(item);
    return isUndefined(value) ? fallback : value;
  };
}

/** A reader that gives what is missing as an undefined value, for tests to ask about. */
export function looseReader(rendering: Rendering, attribute: unknown): Reader {
  const path = pathOf(rendering, attribute);
  const steps = path.map((key) => ({ key, site: siteOf(rendering.at, key) }));
  return (item) => {
    let value = item;
    for (const { key, site } of steps) {
      spend(rendering, 1);
      value = readIndex(rendering, data(rendering, value), key, site);
    }
    return value;
  };
}

/** The key by which an element is compared: its attribute, in lower case unless case matters. */
export function sortKey(
  rendering: Rendering,
  options: { attribute: unknown; caseSensitive: unknown; fallback?: unknown },
): Reader {
  const { attribute, caseSensitive, fallback } = options;
  const read =
    fallback === undefined
      ? attributeReader(rendering, attribute)
      : defaultingReader(rendering, attribute, fallback);
  if (isTruthy(caseSensitive)) return read;
  return (item) => {
    const value = read(item);
    if (typeof value !== 'string') return value;
    spendOnText(rendering, value.length);
    return value.toLowerCase();
  };
}

function pathOf(rendering: Rendering, attribute: unknown): readonly (string | number)[] {
  if (typeof attribute === 'number') return [attribute];
  if (typeof attribute !== 'string') {
    return fail(rendering, 'type', `\`attribute\` must be text, and this is ${kindOf(attribute)}`);
  }
  const path = attribute.split('.', PATH_ELEMENTS_MAX + 1);
  if (path.length > PATH_ELEMENTS_MAX) return fail(rendering, 'type', '`attribute` has too many parts');
  return path.map((part) => (/^\d{1,9}$/.test(part) ? Number(part) : part));
}

function siteOf(at: number, key: string | number): Site {
  const text = `element${typeof key === 'number' ? `[${key}]` : `.${key}`}`;
  return { text, start: 0, middle: 'element'.length, end: text.length, at, taskId: null };
}
