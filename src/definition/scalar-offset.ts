/**
 * From a character of a scalar's value to its place in the file. YAML folds lines, strips indentation and decodes
 * escapes, but it never adds or drops anything but white space otherwise, so the two are matched by the characters between.
 */
import type { Scalar } from 'yaml';

/** Offset from the scalar's start in `text` to the source of character `offset` of its value. */
export function offsetInSource(scalar: Scalar, offset: number, text: string): number {
  const [start, end] = scalar.range ?? [0, 0];
  const value = String(scalar.value);
  const source = text.slice(start, end);
  const solids = countSolid(value.slice(0, offset));
  const isBlank = isSpace(value[offset] ?? ' ');
  let seen = 0;
  let after = 0;
  for (const unit of unitsOf(source, scalar.type)) {
    if (isSpace(unit.char)) continue;
    if (seen === solids && !isBlank) return unit.at;
    seen += unit.char.length;
    after = unit.at + unit.length;
    if (seen === solids && isBlank) return after;
  }
  return after;
}

/** One character of the value as it stands in the source. */
interface Unit {
  readonly at: number;
  readonly length: number;
  readonly char: string;
}

function* unitsOf(source: string, type: Scalar.Type | null | undefined): Generator<Unit> {
  const isBlock = type === 'BLOCK_LITERAL' || type === 'BLOCK_FOLDED';
  const isQuoted = type === 'QUOTE_SINGLE' || type === 'QUOTE_DOUBLE';
  const end = isQuoted ? source.length - 1 : source.length;
  // A block starts after its header line; `|2- # note` is no part of the value.
  let at = isBlock ? source.indexOf('\n') + 1 : isQuoted ? 1 : 0;
  while (at < end) {
    const unit = unitAt(source, at, type);
    yield unit;
    at += unit.length;
  }
}

/** Escapes that stand for white space, the escaped end of a line among them. */
const BLANK_ESCAPES = 'nrtvfLP_ \n\r';

function unitAt(source: string, at: number, type: Scalar.Type | null | undefined): Unit {
  const char = source[at] ?? '';
  if (type === 'QUOTE_SINGLE' && char === "'") return { at, length: 2, char };
  if (type !== 'QUOTE_DOUBLE' || char !== '\\') return { at, length: 1, char };
  const code = source[at + 1] ?? '';
  const digits = { x: 2, u: 4, U: 8 }[code] ?? 0;
  if (digits > 0) {
    const point = Number.parseInt(source.slice(at + 2, at + 2 + digits), 16);
    return { at, length: 2 + digits, char: String.fromCodePoint(Number.isNaN(point) ? 0xfffd : point) };
  }
  return { at, length: 2, char: BLANK_ESCAPES.includes(code) ? ' ' : code };
}

function countSolid(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; index++) if (!isSpace(text[index] ?? '')) count += 1;
  return count;
}

function isSpace(char: string): boolean {
  return /\s/.test(char);
}
