/** A value from code → plain JSON data, as if it had been read from a file. What JSON cannot hold is reported. */
import { NESTING_DEPTH_MAX } from '../base/limits.ts';
import type { Finding, Path } from './problem.ts';
import { tooDeep } from './yaml-tree.ts';

/** A copy of `value` that is plain data, and what could not be copied. */
export function toPlainValue(value: unknown): { value: unknown; findings: readonly Finding[] } {
  const findings: Finding[] = [];
  return { value: copy(value, [], findings), findings };
}

function copy(value: unknown, path: Path, findings: Finding[]): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value === 0 ? 0 : value;
  if (typeof value === 'object') {
    if (path.length > NESTING_DEPTH_MAX) {
      if (findings.at(-1)?.code !== 'nested_too_deep') findings.push(tooDeep(path.slice(0, 6), null));
      return null;
    }
    if (Array.isArray(value)) return value.map((item, index) => copy(item, [...path, index], findings));
    if (isPlainObject(value)) return copyObject(value, path, findings);
  }
  const hint = 'a workflow holds what JSON has: text, numbers, true, false, null, lists, mappings';
  findings.push({ code: 'not_json', message: `${kindOf(value)} has no JSON form`, hint, path });
  return null;
}

/** As JSON does, a key with the value undefined is left out. */
function copyObject(value: object, path: Path, findings: Finding[]): Record<string, unknown> {
  const entries: [string, unknown][] = [];
  for (const [key, item] of Object.entries(value)) {
    if (key === '__proto__') {
      const message = 'a key cannot be called `__proto__`';
      findings.push({ code: 'unknown_key', message, path: [...path, key] });
    } else if (item !== undefined) entries.push([key, copy(item, [...path, key], findings)]);
  }
  return Object.fromEntries(entries);
}

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function kindOf(value: unknown): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'object') return `an object of class ${value?.constructor?.name ?? 'unknown'}`;
  return value === undefined ? 'undefined' : `a ${typeof value}`;
}
