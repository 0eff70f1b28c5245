/** Filters that make, round and combine numbers. */
import { add, finite } from '../arithmetic.ts';
import { order } from '../compare.ts';
import { undefinedAt } from '../opaque.ts';
import type { Operation } from '../operation.ts';
import { fail, type Rendering, spend, spendOnText } from '../rendering.ts';
import { isNumeric, itemsOf, kindOf } from '../values.ts';
import { textArgument, wholeArgument } from './argument.ts';
import { attributeReader, sortKey } from './attribute.ts';

/** Each digit can be matched in one way only, so that a long wrong number is refused in linear time. */
const DECIMAL = /^[+-]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+)?$/;
const PRECISION_MAX = 100;

/** Filters on numbers, by name. */
export const NUMBER_FILTERS = {
  abs: { params: [], run: (rendering: Rendering, value: unknown) => Math.abs(numberOf(rendering, value)) },
  int: {
    params: ['default', 'base'],
    run: (rendering: Rendering, value: unknown, [fallback, base]: readonly unknown[]) => {
      const radix = wholeArgument(rendering, base, { name: 'base', fallback: 10, min: 2 });
      const number =
        typeof value === 'string' && radix !== 10 ? inRadix(value, radix) : parse(rendering, value);
      return number === null ? (fallback === undefined ? 0 : fallback) : Math.trunc(number) + 0;
    },
  },
  float: {
    params: ['default'],
    run: (rendering: Rendering, value: unknown, [fallback]: readonly unknown[]) =>
      parse(rendering, value) ?? (fallback === undefined ? 0 : fallback),
  },
  round: {
    params: ['precision', 'method'],
    run: (rendering: Rendering, value: unknown, [precision, method]: readonly unknown[]) => {
      const places = wholeArgument(rendering, precision, {
        name: 'precision',
        fallback: 0,
        min: -PRECISION_MAX,
      });
      const number = numberOf(rendering, value);
      const how = textArgument(rendering, method, { name: 'method', fallback: 'common' });
      if (places > PRECISION_MAX) return number;
      if (how === 'common') return finite(rendering, roundHalfEven(number, places));
      if (how !== 'ceil' && how !== 'floor') {
        return fail(rendering, 'type', '`method` must be common, ceil or floor');
      }
      const scale = 10 ** places;
      return finite(rendering, Math[how](number * scale) / scale);
    },
  },
  sum: {
    params: ['attribute', 'start'],
    run: (rendering: Rendering, value: unknown, [attribute, start]: readonly unknown[]) => {
      const read = attributeReader(rendering, attribute);
      let total: unknown = start ?? 0;
      for (const item of itemsOf(rendering, value)) {
        spend(rendering, 1);
        total = add(rendering, total, read(item));
      }
      return total;
    },
  },
  min: extreme('min', (difference) => difference < 0),
  max: extreme('max', (difference) => difference > 0),
} satisfies Record<string, Operation>;

function extreme(name: string, isBetter: (difference: number) => boolean): Operation {
  return {
    params: ['case_sensitive', 'attribute'],
    run: (rendering, value, [caseSensitive, attribute]) => {
      const items = itemsOf(rendering, value);
      if (items.length === 0) {
        return undefinedAt(rendering.at, () => ({ message: `\`${name}\` of an empty list is undefined` }));
      }
      const key = sortKey(rendering, { attribute, caseSensitive });
      let best = items[0];
      let bestKey = key(best);
      for (let index = 1; index < items.length; index++) {
        const candidate = key(items[index]);
        if (!isBetter(order(rendering, candidate, bestKey))) continue;
        best = items[index];
        bestKey = candidate;
      }
      return best;
    },
  };
}

function numberOf(rendering: Rendering, value: unknown): number {
  if (isNumeric(value)) return Number(value);
  const hint = typeof value === 'string' ? 'make it a number with `| int` or `| float`' : undefined;
  return fail(rendering, 'type', `expected a number, found ${kindOf(value)}`, hint);
}

/** The number a value stands for, or null; text is read as Python reads it. */
function parse(rendering: Rendering, value: unknown): number | null {
  if (isNumeric(value)) return Number(value);
  if (typeof value !== 'string') return null;
  spendOnText(rendering, value.length);
  const text = value.trim();
  const number = DECIMAL.test(text) ? Number(text.replaceAll('_', '')) : Number.NaN;
  return Number.isFinite(number) ? number : null;
}

/** A whole number written in another base, with or without its prefix, or null. */
function inRadix(value: string, radix: number): number | null {
  if (radix > 36 || value.length > 1100) return null;
  const [, sign = '', body = ''] =
    /^([+-]?)(\w+)$/.exec(value.trim().toLowerCase().replaceAll('_', '')) ?? [];
  const prefix = { 16: '0x', 8: '0o', 2: '0b' }[radix];
  const digits = prefix !== undefined && body.startsWith(prefix) ? body.slice(2) : body;
  if (digits === '' || [...digits].some((digit) => Number.isNaN(Number.parseInt(digit, radix)))) return null;
  const number = Number.parseInt(digits, radix);
  return sign === '-' ? -number : number;
}

/** Rounds the exact binary value; what lies exactly between two goes to the even one, as in Python. */
function roundHalfEven(value: number, places: number): number {
  if (places < 0) {
    const scale = 10 ** -places;
    return roundHalfEven(value / scale, 0) * scale;
  }
  if (Math.abs(value) >= 1e21) return value;
  const exact = Math.abs(value).toFixed(PRECISION_MAX);
  const cut = exact.length - PRECISION_MAX + places;
  const isTie = /^50*$/.test(exact.slice(cut));
  const kept = exact.slice(0, cut);
  const isEven = /[02468]\.?$/.test(kept);
  const rounded = isTie && isEven ? Number(kept) : Number(Math.abs(value).toFixed(places));
  return value < 0 ? -rounded : rounded;
}
