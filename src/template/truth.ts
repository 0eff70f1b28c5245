/** Python's truth: empty text, lists and maps, zero, none and false are false; everything else is true. */

/** Whether a value counts as true in `if`, `and`, `or`, `not` and an `if:` of a workflow. */
export function isTruthy(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return Boolean(value);
  if (Array.isArray(value)) return value.length > 0;
  for (const key in value) if (Object.hasOwn(value, key)) return true;
  return false;
}
