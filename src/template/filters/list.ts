/** Filters on lists (and on what can be walked like one). They never change their subject. */
import { lengthOf } from '../characters.ts';
import { isEqual, order } from '../compare.ts';
import { undefinedAt } from '../opaque.ts';
import type { Operation } from '../operation.ts';
import { charge, fail, type Rendering, spend } from '../rendering.ts';
import { jsonOf, textOf } from '../text.ts';
import { isTruthy } from '../truth.ts';
import { type DataMap, isMap, isNumeric, itemsOf, kindOf, pairsOf } from '../values.ts';
import { textArgument, wholeArgument } from './argument.ts';
import { attributeReader, type Reader, sortKey } from './attribute.ts';

type Args = readonly unknown[];

const length: Operation = {
  params: [],
  run: (rendering, value) => {
    if (typeof value === 'string') return lengthOf(rendering, value);
    if (Array.isArray(value)) return value.length;
    if (isMap(value)) return itemsOf(rendering, value).length;
    return fail(rendering, 'type', `${kindOf(value)} has no length`);
  },
};

/** Filters on lists, by name. */
export const LIST_FILTERS = {
  length,
  count: length,
  list: onItems([], (rendering, items) => copy(rendering, items)),
  first: onItems([], (rendering, items) => items[0] ?? nothing(rendering, 'first', items)),
  last: onItems([], (rendering, items) => items.at(-1) ?? nothing(rendering, 'last', items)),
  reverse: {
    params: [],
    run: (rendering: Rendering, value: unknown) => {
      const reversed = copy(rendering, itemsOf(rendering, value)).reverse();
      return typeof value === 'string' ? reversed.join('') : reversed;
    },
  },
  join: onItems(['d', 'attribute'], join),
  batch: { ...onItems(['linecount', 'fill_with'], batch), required: 1 },
  slice: { ...onItems(['slices', 'fill_with'], slice), required: 1 },
  unique: onItems(['case_sensitive', 'attribute'], unique),
  sort: onItems(['reverse', 'case_sensitive', 'attribute'], sort),
  groupby: { ...onItems(['attribute', 'default', 'case_sensitive'], groupby), required: 1 },
  items: onMap([], (rendering, map) => pairsOf(rendering, map)),
  dictsort: onMap(['case_sensitive', 'by', 'reverse'], dictsort),
} satisfies Record<string, Operation>;

function onItems(
  params: readonly string[],
  run: (rendering: Rendering, items: readonly unknown[], args: Args) => unknown,
): Operation {
  return {
    params,
    run: (rendering, value, args) => {
      const items = itemsOf(rendering, value);
      return run(rendering, items, args);
    },
  };
}

function onMap(
  params: readonly string[],
  run: (rendering: Rendering, map: DataMap, args: Args) => unknown,
): Operation {
  return {
    params,
    run: (rendering, value, args) =>
      isMap(value)
        ? run(rendering, value, args)
        : fail(rendering, 'type', `expected a map, found ${kindOf(value)}`),
  };
}

function copy(rendering: Rendering, items: readonly unknown[]): unknown[] {
  spend(rendering, items.length);
  charge(rendering, items.length);
  return items.slice();
}

function nothing(rendering: Rendering, name: string, items: readonly unknown[]): unknown {
  // An element that is none is an answer; only a list without elements has no first and last.
  if (items.length > 0) return null;
  return undefinedAt(rendering.at, () => ({ message: `\`${name}\` of an empty list is undefined` }));
}

function join(rendering: Rendering, items: readonly unknown[], [separator, attribute]: Args): string {
  const between = textArgument(rendering, separator, { name: 'd', fallback: '' });
  const read = attributeReader(rendering, attribute);
  let text = '';
  for (let index = 0; index < items.length; index++) {
    spend(rendering, 1);
    const part = textOf(rendering, read(items[index]));
    charge(rendering, part.length + between.length);
    text += index === 0 ? part : between + part;
  }
  return text;
}

function batch(rendering: Rendering, items: readonly unknown[], [linecount, fill]: Args): unknown[][] {
  const size = wholeArgument(rendering, linecount, { name: 'linecount', fallback: 1, min: 1 });
  spend(rendering, items.length);
  charge(rendering, 2 * items.length);
  const rows: unknown[][] = [];
  for (let at = 0; at < items.length; at += size) rows.push(items.slice(at, at + size));
  const last = rows.at(-1);
  if (last !== undefined && fill !== undefined && fill !== null && last.length < size) {
    charge(rendering, size - last.length);
    spend(rendering, size - last.length);
    while (last.length < size) last.push(fill);
  }
  return rows;
}

function slice(rendering: Rendering, items: readonly unknown[], [slices, fill]: Args): unknown[][] {
  const count = wholeArgument(rendering, slices, { name: 'slices', fallback: 1, min: 1 });
  spend(rendering, items.length + count);
  charge(rendering, items.length + 2 * count);
  const size = Math.floor(items.length / count);
  const longer = items.length % count;
  return Array.from({ length: count }, (_, index) => {
    const start = index * size + Math.min(index, longer);
    const part = items.slice(start, start + size + (index < longer ? 1 : 0));
    if (fill !== undefined && fill !== null && index >= longer) part.push(fill);
    return part;
  });
}

function unique(
  rendering: Rendering,
  items: readonly unknown[],
  [caseSensitive, attribute]: Args,
): unknown[] {
  const key = sortKey(rendering, { attribute, caseSensitive });
  const seen = new Set<string>();
  return items.filter((item) => {
    spend(rendering, 1);
    const identity = identityOf(rendering, key(item));
    if (seen.has(identity)) return false;
    charge(rendering, 1);
    seen.add(identity);
    return true;
  });
}

/** A text that is the same for equal values; `true` equals `1`. */
function identityOf(rendering: Rendering, value: unknown): string {
  return isNumeric(value) ? String(Number(value)) : jsonOf(rendering, value);
}

function sort(
  rendering: Rendering,
  items: readonly unknown[],
  [reverse, caseSensitive, attribute]: Args,
): unknown[] {
  const paths = typeof attribute === 'string' ? attribute.split(',', 100) : [attribute];
  const keys = paths.map((path) => sortKey(rendering, { attribute: path, caseSensitive }));
  return sortedBy(rendering, items, { keys, isReversed: isTruthy(reverse) });
}

/** A sorted copy. Equal elements keep their order, also in reverse. */
function sortedBy(
  rendering: Rendering,
  items: readonly unknown[],
  options: { keys: readonly Reader[]; isReversed: boolean },
): unknown[] {
  const { keys, isReversed } = options;
  spend(rendering, items.length);
  charge(rendering, items.length * (1 + keys.length));
  const keyed = items.map((item) => ({ item, key: keys.map((key) => key(item)) }));
  const sign = isReversed ? -1 : 1;
  keyed.sort((left, right) => sign * order(rendering, left.key, right.key));
  return keyed.map(({ item }) => item);
}

function groupby(rendering: Rendering, items: readonly unknown[], args: Args): unknown[][] {
  const [attribute, fallback, caseSensitive] = args;
  const key = sortKey(rendering, { attribute, caseSensitive, fallback });
  const label = sortKey(rendering, { attribute, caseSensitive: true, fallback });
  const groups: { key: unknown; pair: unknown[]; members: unknown[] }[] = [];
  for (const item of sortedBy(rendering, items, { keys: [key], isReversed: false })) {
    charge(rendering, 1);
    const itemKey = key(item);
    const last = groups.at(-1);
    if (last !== undefined && isEqual(rendering, last.key, itemKey)) {
      last.members.push(item);
      continue;
    }
    const members = [item];
    groups.push({ key: itemKey, pair: groupPair(label(item), members), members });
  }
  return groups.map(({ pair }) => pair);
}

/** A pair that also answers to `.grouper` and `.list`; the mark does not show when the pair is written or stored. */
function groupPair(grouper: unknown, members: unknown[]): unknown[] {
  return Object.defineProperty([grouper, members], 'grouper', { value: true, enumerable: false });
}

function dictsort(rendering: Rendering, map: DataMap, [caseSensitive, by, reverse]: Args): unknown[] {
  const wanted = textArgument(rendering, by, { name: 'by', fallback: 'key' });
  if (wanted !== 'key' && wanted !== 'value') return fail(rendering, 'type', '`by` must be key or value');
  const key = sortKey(rendering, { attribute: wanted === 'key' ? 0 : 1, caseSensitive });
  return sortedBy(rendering, pairsOf(rendering, map), { keys: [key], isReversed: isTruthy(reverse) });
}
