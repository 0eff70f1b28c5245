/**
 * How values become text: strings as they are, numbers in their shortest form, `true` `false` `null`, lists and maps as JSON.
 * Walks are bounded in depth and paid for by the element, so deep or shared data cannot exhaust the stack or the time.
 */
import { Opaque, refuse } from './opaque.ts';
import { charge, fail, outOfChars, type Rendering, spend } from './rendering.ts';
import { DATA_DEPTH_MAX, type DataMap, kindOf } from './values.ts';

/** A value as text. */
export function textOf(rendering: Rendering, value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return numberText(rendering, value);
  return jsonOf(rendering, value);
}

/** A value as JSON on one line without spaces. */
export function jsonOf(rendering: Rendering, value: unknown): string {
  return writeJson(rendering, value, { indent: 0, separator: ':', depth: 0 });
}

/** A value as JSON over several lines. */
export function indentedJsonOf(rendering: Rendering, value: unknown, indent: number): string {
  return writeJson(rendering, value, { indent, separator: ': ', depth: 0 });
}

/** Checks that a result is data, and small enough to be stored; shared parts count as often as they would be written. */
export function checkResult(rendering: Rendering, value: unknown): void {
  const written = measure(rendering, value, 0);
  if (written > rendering.budget.outputCharsMax) throw outOfChars(rendering);
}

interface JsonStyle {
  readonly indent: number;
  readonly separator: string;
  readonly depth: number;
}

function writeJson(rendering: Rendering, value: unknown, style: JsonStyle): string {
  spend(rendering, 1);
  if (typeof value === 'string') return quote(rendering, value);
  if (typeof value === 'number') return numberText(rendering, value);
  if (value === null || typeof value === 'boolean') {
    charge(rendering, 5);
    return String(value);
  }
  checkDepth(rendering, style.depth);
  if (Array.isArray(value)) return writeList(rendering, value, style);
  return writeMap(rendering, mapOf(rendering, value), style);
}

function writeList(rendering: Rendering, list: readonly unknown[], style: JsonStyle): string {
  if (list.length === 0) return '[]';
  const inner = { ...style, depth: style.depth + 1 };
  const gap = lineBreak(rendering, inner);
  let text = '[';
  for (let index = 0; index < list.length; index++) {
    charge(rendering, 1 + gap.length);
    text += (index === 0 ? '' : ',') + gap + writeJson(rendering, list[index], inner);
  }
  return `${text}${lineBreak(rendering, style)}]`;
}

function writeMap(rendering: Rendering, map: DataMap, style: JsonStyle): string {
  const keys = presentKeys(map);
  if (keys.length === 0) return '{}';
  const inner = { ...style, depth: style.depth + 1 };
  const gap = lineBreak(rendering, inner);
  let text = '{';
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index] as string;
    charge(rendering, 3 + gap.length);
    text += (index === 0 ? '' : ',') + gap + quote(rendering, key);
    text += style.separator + writeJson(rendering, map[key], inner);
  }
  return `${text}${lineBreak(rendering, style)}}`;
}

function lineBreak(rendering: Rendering, style: JsonStyle): string {
  if (style.indent === 0) return '';
  charge(rendering, 1 + style.indent * style.depth);
  return `\n${' '.repeat(style.indent * style.depth)}`;
}

function quote(rendering: Rendering, text: string): string {
  charge(rendering, text.length + 2);
  const quoted = JSON.stringify(text);
  charge(rendering, quoted.length - text.length - 2);
  return quoted;
}

function numberText(rendering: Rendering, value: number): string {
  if (!Number.isFinite(value)) return fail(rendering, 'type', `${value} is not a number that can be written`);
  return String(value);
}

function measure(rendering: Rendering, value: unknown, depth: number): number {
  if (typeof value === 'string') return value.length;
  if (value === null || typeof value === 'boolean') return 5;
  if (typeof value === 'number') return numberText(rendering, value).length;
  checkDepth(rendering, depth);
  let chars = 2;
  if (Array.isArray(value)) {
    spend(rendering, value.length);
    for (const item of value) chars += 1 + measure(rendering, item, depth + 1);
    return chars;
  }
  const map = mapOf(rendering, value);
  for (const key of presentKeys(map)) {
    spend(rendering, 1);
    chars += key.length + 4 + measure(rendering, map[key], depth + 1);
  }
  return chars;
}

/** Keys as JSON sees them: what is `undefined` in JavaScript is not there. */
function presentKeys(map: DataMap): string[] {
  return Object.keys(map).filter((key) => map[key] !== undefined);
}

function checkDepth(rendering: Rendering, depth: number): void {
  if (depth >= DATA_DEPTH_MAX)
    fail(rendering, 'type', `the data is nested more than ${DATA_DEPTH_MAX} levels deep`);
}

function mapOf(rendering: Rendering, value: unknown): DataMap {
  if (value instanceof Opaque) return refuse(rendering, value);
  if (typeof value !== 'object') return fail(rendering, 'type', `${kindOf(value)} cannot be written`);
  return value as DataMap;
}
