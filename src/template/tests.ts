/** What can follow `is`. Every test answers true or false; only `defined` and `undefined` may be asked of what is missing. */
import { lengthOf } from './characters.ts';
import { contains, isEqual, order } from './compare.ts';
import { isUndefined } from './opaque.ts';
import type { Operation, Operations } from './operation.ts';
import { fail, type Rendering, spendOnText } from './rendering.ts';
import { textOf } from './text.ts';
import { isMap, isNumeric, kindOf } from './values.ts';

const about = (holds: (value: unknown) => boolean): Operation => ({
  params: [],
  run: (_, value) => holds(value),
});

const compared = (holds: (rendering: Rendering, left: unknown, right: unknown) => boolean): Operation => ({
  params: ['other'],
  required: 1,
  run: (rendering, value, [other]) => holds(rendering, value, other),
});

const isWalkable = (value: unknown): boolean =>
  typeof value === 'string' || Array.isArray(value) || isMap(value);

const parity = (rest: number): Operation => ({
  params: [],
  run: (rendering, value) => Math.abs(numberOf(rendering, value)) % 2 === rest,
});

const divisibleby: Operation = {
  params: ['num'],
  required: 1,
  run: (rendering, value, [divisor]) => {
    const by = numberOf(rendering, divisor);
    if (by === 0) return fail(rendering, 'type', 'division by zero');
    return numberOf(rendering, value) % by === 0;
  },
};

const cased = (convert: (text: string) => string, other: (text: string) => string): Operation => ({
  params: [],
  run: (rendering, value) => {
    const text = textOf(rendering, value);
    spendOnText(rendering, lengthOf(rendering, text));
    // A text without letters has no case, so it is in neither.
    return text === convert(text) && text !== other(text);
  },
});

const eq = compared(isEqual);
const ne = compared((rendering, left, right) => !isEqual(rendering, left, right));
const lt = compared((rendering, left, right) => order(rendering, left, right) < 0);
const le = compared((rendering, left, right) => order(rendering, left, right) <= 0);
const gt = compared((rendering, left, right) => order(rendering, left, right) > 0);
const ge = compared((rendering, left, right) => order(rendering, left, right) >= 0);

/** Every test by name. */
export const TESTS: Operations = new Map<string, Operation>(
  Object.entries({
    defined: { params: [], takesUndefined: true, run: (_: Rendering, value: unknown) => !isUndefined(value) },
    undefined: {
      params: [],
      takesUndefined: true,
      run: (_: Rendering, value: unknown) => isUndefined(value),
    },
    none: about((value) => value === null),
    boolean: about((value) => typeof value === 'boolean'),
    true: about((value) => value === true),
    false: about((value) => value === false),
    number: about(isNumeric),
    integer: about((value) => Number.isInteger(value)),
    float: about((value) => typeof value === 'number' && !Number.isInteger(value)),
    string: about((value) => typeof value === 'string'),
    mapping: about(isMap),
    sequence: about(isWalkable),
    iterable: about(isWalkable),
    even: parity(0),
    odd: parity(1),
    divisibleby,
    lower: cased(
      (text) => text.toLowerCase(),
      (text) => text.toUpperCase(),
    ),
    upper: cased(
      (text) => text.toUpperCase(),
      (text) => text.toLowerCase(),
    ),
    in: compared((rendering, value, container) => contains(rendering, container, value)),
    eq,
    ne,
    lt,
    le,
    gt,
    ge,
    equalto: eq,
    lessthan: lt,
    greaterthan: gt,
    '==': eq,
    '!=': ne,
    '<': lt,
    '<=': le,
    '>': gt,
    '>=': ge,
  } satisfies Record<string, Operation>),
);

function numberOf(rendering: Rendering, value: unknown): number {
  if (isNumeric(value)) return Number(value);
  return fail(rendering, 'type', `expected a number, found ${kindOf(value)}`);
}
