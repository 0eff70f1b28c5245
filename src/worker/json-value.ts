/** Outputs as JSON: what is JSON already passes as it is, what can become JSON does, the rest is refused. */

const DEPTH_MAX = 200;

/** The value as JSON would carry it. Throws a TypeError for what JSON cannot carry. */
export function toJsonValue(value: unknown): unknown {
  if (isPlainJson(value, 0)) return value;
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError(`a ${typeof value} is not JSON`);
  return JSON.parse(text) as unknown;
}

/** Cheaper than writing the value out; a value too deep to be sure of is left to `JSON.stringify`, which knows circles. */
function isPlainJson(value: unknown, depth: number): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || depth > DEPTH_MAX) return false;
  if (Array.isArray(value)) return value.every((item) => isPlainJson(item, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  if ('toJSON' in value) return false;
  return Object.values(value).every((item) => isPlainJson(item, depth + 1));
}
