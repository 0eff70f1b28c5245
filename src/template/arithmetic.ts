/** `+ - * / // % **` with Python's rules on JavaScript numbers. What is not a finite number is an error, never a value. */
import type { ArithmeticOperator } from './ast.ts';
import { repeated } from './characters.ts';
import { charge, fail, type Rendering, spend } from './rendering.ts';
import { isNumeric, kindOf } from './values.ts';

type Operation = (rendering: Rendering, left: unknown, right: unknown) => unknown;

/** The operation of each operator. */
export const ARITHMETIC: Readonly<Record<ArithmeticOperator, Operation>> = {
  '+': add,
  '-': onNumbers('subtract', (left, right) => left - right),
  '*': multiply,
  '/': onDivisor((left, right) => left / right),
  '//': onDivisor(floorDivide),
  '%': modulo,
  '**': onNumbers('raise', (left, right) => left ** right),
};

/** The sum of numbers, or text or lists put together. */
export function add(rendering: Rendering, left: unknown, right: unknown): unknown {
  if (typeof left === 'string' && typeof right === 'string') {
    charge(rendering, left.length + right.length);
    return left + right;
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    spend(rendering, left.length + right.length);
    charge(rendering, left.length + right.length);
    return left.concat(right);
  }
  if (isNumeric(left) && isNumeric(right)) return finite(rendering, Number(left) + Number(right));
  const isText = typeof left === 'string' || typeof right === 'string';
  return mismatch(rendering, 'add', { left, right, hint: isText ? 'join text with `~`' : undefined });
}

/** The opposite of a number. */
export function negate(rendering: Rendering, value: unknown): number {
  if (isNumeric(value)) return -Number(value);
  return fail(rendering, 'type', `${kindOf(value)} has no sign`);
}

/** A number kept as it is; `+` refuses everything else. */
export function affirm(rendering: Rendering, value: unknown): number {
  if (isNumeric(value)) return Number(value);
  return fail(rendering, 'type', `${kindOf(value)} has no sign`);
}

/** The number itself if it is finite. */
export function finite(rendering: Rendering, value: number): number {
  if (Number.isFinite(value)) return value;
  return fail(rendering, 'type', 'the result is not a number, or too large for one');
}

function onNumbers(verb: string, compute: (left: number, right: number) => number): Operation {
  return (rendering, left, right) => {
    if (isNumeric(left) && isNumeric(right)) return finite(rendering, compute(Number(left), Number(right)));
    return mismatch(rendering, verb, { left, right });
  };
}

function onDivisor(compute: (left: number, right: number) => number): Operation {
  const divide = onNumbers('divide', compute);
  return (rendering, left, right) => {
    if (isNumeric(left) && isNumeric(right) && Number(right) === 0)
      return fail(rendering, 'type', 'division by zero');
    return divide(rendering, left, right);
  };
}

function multiply(rendering: Rendering, left: unknown, right: unknown): unknown {
  if (isNumeric(left) && isNumeric(right)) return finite(rendering, Number(left) * Number(right));
  if (isNumeric(left)) return repeat(rendering, right, left);
  return repeat(rendering, left, right);
}

function repeat(rendering: Rendering, value: unknown, times: unknown): unknown {
  const isRepeatable = typeof value === 'string' || Array.isArray(value);
  if (!isRepeatable || !isNumeric(times))
    return mismatch(rendering, 'multiply', { left: value, right: times });
  const count = Number(times);
  if (!Number.isInteger(count))
    return fail(rendering, 'type', 'only a whole number of repetitions is possible');
  if (typeof value === 'string') return repeated(rendering, value, count);
  const total = value.length * Math.max(0, count);
  charge(rendering, total);
  spend(rendering, total);
  return Array.from({ length: total }, (_, index): unknown => value[index % value.length]);
}

function modulo(rendering: Rendering, left: unknown, right: unknown): unknown {
  if (typeof left === 'string') {
    return fail(rendering, 'type', '`%` does not format text', "use the filter: `'%s' | format(value)`");
  }
  return floorModulo(rendering, left, right);
}

const floorModulo = onDivisor(floorRemainder);

/** The remainder with the sign of the divisor. */
function floorRemainder(left: number, right: number): number {
  const remainder = left % right;
  return remainder !== 0 && remainder < 0 !== right < 0 ? remainder + right : remainder;
}

function floorDivide(left: number, right: number): number {
  return Math.round((left - floorRemainder(left, right)) / right);
}

function mismatch(
  rendering: Rendering,
  verb: string,
  operands: { left: unknown; right: unknown; hint?: string | undefined },
): never {
  const message = `cannot ${verb} ${kindOf(operands.left)} and ${kindOf(operands.right)}`;
  return fail(rendering, 'type', message, operands.hint);
}
