/** Filters between values and their written forms, and the ones that pick a value: JSON, base64, hashes, shell words, defaults. */
import { createHash } from 'node:crypto';
import { data, isUndefined } from '../opaque.ts';
import type { Operation } from '../operation.ts';
import { charge, fail, type Rendering, spendOnText } from '../rendering.ts';
import { indentedJsonOf, jsonOf, textOf } from '../text.ts';
import { isTruthy } from '../truth.ts';
import { isMap, kindOf } from '../values.ts';
import { wholeArgument } from './argument.ts';

const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

const fallback: Operation = {
  params: ['default_value', 'boolean'],
  takesUndefined: true,
  run: (rendering, value, [substitute, isBoolean]) => {
    const isMissing = isUndefined(value) || (isTruthy(data(rendering, isBoolean)) && !isTruthy(value));
    if (!isMissing) return value;
    return substitute === undefined ? '' : substitute;
  },
};

/** Filters on data, by name. */
export const DATA_FILTERS = {
  default: fallback,
  d: fallback,
  result: {
    params: [],
    run: (_: Rendering, value: unknown) =>
      isMap(value) && Object.hasOwn(value, 'result') ? value.result : value,
  },
  tojson: {
    params: ['indent'],
    run: (rendering: Rendering, value: unknown, [indent]: readonly unknown[]) => {
      const width = wholeArgument(rendering, indent ?? undefined, { name: 'indent', fallback: 0, min: 0 });
      return width === 0 ? jsonOf(rendering, value) : indentedJsonOf(rendering, value, width);
    },
  },
  fromjson: { params: [], run: fromjson },
  b64encode: {
    params: [],
    run: (rendering: Rendering, value: unknown) => {
      const text = textOf(rendering, value);
      charge(rendering, 4 * text.length);
      return Buffer.from(text, 'utf8').toString('base64');
    },
  },
  b64decode: { params: [], run: b64decode },
  sha256: {
    params: [],
    run: (rendering: Rendering, value: unknown) => {
      const text = textOf(rendering, value);
      spendOnText(rendering, text.length);
      charge(rendering, 64);
      return createHash('sha256').update(text, 'utf8').digest('hex');
    },
  },
  sh: {
    params: [],
    run: (rendering: Rendering, value: unknown) =>
      Array.isArray(value)
        ? value.map((item) => shellWord(rendering, item)).join(' ')
        : shellWord(rendering, value),
  },
} satisfies Record<string, Operation>;

function fromjson(rendering: Rendering, value: unknown): unknown {
  if (typeof value !== 'string') {
    return fail(
      rendering,
      'type',
      `\`fromjson\` reads text, and this is ${kindOf(value)}`,
      'it may be data already',
    );
  }
  spendOnText(rendering, value.length);
  charge(rendering, value.length);
  try {
    return JSON.parse(value) as unknown;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return fail(rendering, 'type', `the text is not JSON: ${reason}`);
  }
}

function b64decode(rendering: Rendering, value: unknown): string {
  const text = textOf(rendering, value);
  spendOnText(rendering, text.length);
  charge(rendering, text.length);
  const compact = text.replace(/\s+/g, '');
  if (!BASE64.test(compact)) return fail(rendering, 'type', 'the text is not base64');
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(compact, 'base64'));
  } catch {
    // The only failure of a fatal decoder is the one the message names.
    return fail(rendering, 'type', 'the decoded bytes are not UTF-8 text');
  }
}

/** One word of a POSIX shell. Inside single quotes nothing is special but the quote itself. */
function shellWord(rendering: Rendering, value: unknown): string {
  const text = textOf(rendering, value);
  spendOnText(rendering, text.length);
  charge(rendering, text.length + 3);
  if (text.includes('\0')) return fail(rendering, 'type', 'a shell word cannot contain the character NUL');
  const quoted = `'${text.replaceAll("'", "'\\''")}'`;
  charge(rendering, quoted.length - text.length);
  return quoted;
}
