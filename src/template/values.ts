/** The data that templates work on (JSON: none, booleans, numbers, text, lists, maps) and how to walk it. */
import { charactersOf } from './characters.ts';
import { Opaque } from './opaque.ts';
import { charge, fail, type Rendering, spend } from './rendering.ts';

/** A map with text keys. Only own properties are ever read. */
export type DataMap = Readonly<Record<string, unknown>>;

/** Deepest nesting of data that is compared, measured or written as text. */
export const DATA_DEPTH_MAX = 1000;

/** Whether a value is a map. */
export function isMap(value: unknown): value is DataMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Opaque);
}

/** Whether a value counts as a number; as in Python, booleans do. */
export function isNumeric(value: unknown): value is number | boolean {
  return typeof value === 'number' || typeof value === 'boolean';
}

/** What to call a value in a message. */
export function kindOf(value: unknown): string {
  if (value === null) return 'none';
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Opaque) return value.held.kind;
  switch (typeof value) {
    case 'boolean':
      return 'a boolean';
    case 'number':
      return 'a number';
    case 'string':
      return 'text';
    case 'object':
      return 'a map';
    default:
      return 'something that is not data';
  }
}

/** Sets an own property, also for the key `__proto__`, which plain assignment would treat as the prototype. */
export function setOwn(map: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    map[key] = value;
  }
}

/** The elements a loop or a filter walks: of a list, the keys of a map, the characters of text. Never a copy of a list. */
export function itemsOf(rendering: Rendering, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (typeof value === 'string') return charactersOf(rendering, value);
  if (isMap(value)) return keysOf(rendering, value);
  const hint = value === null ? 'guard it with `if`, or use `| default([], true)`' : undefined;
  return fail(rendering, 'type', `expected a list, found ${kindOf(value)}`, hint);
}

/** The keys of a map. */
export function keysOf(rendering: Rendering, map: DataMap): string[] {
  const keys = Object.keys(map);
  spend(rendering, keys.length);
  charge(rendering, keys.length);
  return keys;
}

/** The entries of a map as pairs. */
export function pairsOf(rendering: Rendering, map: DataMap): [string, unknown][] {
  const keys = keysOf(rendering, map);
  charge(rendering, 2 * keys.length);
  return keys.map((key) => [key, map[key]]);
}
