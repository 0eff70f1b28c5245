/** Masks secrets by exact value wherever text is stored or shown (SPEC S14.4). */

/** Shorter values would mask half of ordinary text. */
const SECRET_CHARS_MIN = 8;

/** A function that replaces every known secret by `***`. Values may become known while it is in use. */
export function createRedactor(values: () => Iterable<string>): (text: string) => string {
  return (text) => maskValues(text, values());
}

/** The text with `***` in place of these values. */
export function maskValues(text: string, values: Iterable<string>): string {
  let masked = text;
  for (const value of values) {
    if (value.length >= SECRET_CHARS_MIN && masked.includes(value)) masked = masked.replaceAll(value, '***');
  }
  return masked;
}

/** The same for every text inside a value. */
export function redactValue(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map((item) => redactValue(item, redact));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redactValue(item, redact)]));
}
