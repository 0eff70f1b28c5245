/** Reads the arguments of filters: absent ones take their default, ones of the wrong kind are errors that name them. */
import { fail, type Rendering } from '../rendering.ts';
import { kindOf } from '../values.ts';

/** A whole number. */
export function wholeArgument(
  rendering: Rendering,
  value: unknown,
  argument: { name: string; fallback: number; min?: number },
): number {
  if (value === undefined) return argument.fallback;
  const { min = Number.MIN_SAFE_INTEGER } = argument;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min) return value;
  const least = argument.min === undefined ? '' : ` of at least ${min}`;
  const found = typeof value === 'number' ? value : kindOf(value);
  return fail(rendering, 'type', `\`${argument.name}\` must be a whole number${least}, and this is ${found}`);
}

/** A text. */
export function textArgument(
  rendering: Rendering,
  value: unknown,
  argument: { name: string; fallback: string },
): string {
  if (value === undefined) return argument.fallback;
  if (typeof value === 'string') return value;
  return fail(rendering, 'type', `\`${argument.name}\` must be text, and this is ${kindOf(value)}`);
}
