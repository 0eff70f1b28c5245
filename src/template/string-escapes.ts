/** Backslash escapes of string literals, as Python reads them: unknown escapes stay as they are written. */
import { syntaxError } from './position.ts';

const SIMPLE: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\x07',
  b: '\b',
  f: '\f',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '\n': '',
};
const HEX_DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** The characters that a literal between `start` and `end` (without its quotes) stands for. */
export function unescapeString(source: string, start: number, end: number): string {
  const raw = source.slice(start, end);
  if (!raw.includes('\\')) return raw;
  let text = '';
  let at = 0;
  for (let slash = raw.indexOf('\\'); slash !== -1; slash = raw.indexOf('\\', at)) {
    text += raw.slice(at, slash);
    const [character, length] = readEscape(source, raw, { at: slash, base: start });
    text += character;
    at = slash + length;
  }
  return text + raw.slice(at);
}

/** What one escape stands for, and how many characters of source it takes. */
function readEscape(source: string, raw: string, place: { at: number; base: number }): [string, number] {
  const letter = raw[place.at + 1] ?? '';
  const simple = Object.hasOwn(SIMPLE, letter) ? SIMPLE[letter] : undefined;
  if (simple !== undefined) return [simple, 2];
  const octal = /^[0-7]{1,3}/.exec(raw.slice(place.at + 1, place.at + 4))?.[0];
  if (octal !== undefined) return [String.fromCharCode(Number.parseInt(octal, 8)), 1 + octal.length];
  const digits = Object.hasOwn(HEX_DIGITS, letter) ? HEX_DIGITS[letter] : undefined;
  if (digits === undefined) return [`\\${letter}`, 1 + letter.length];
  const hex = raw.slice(place.at + 2, place.at + 2 + digits);
  const code = /^[0-9a-fA-F]+$/.test(hex) && hex.length === digits ? Number.parseInt(hex, 16) : -1;
  if (code < 0 || code > 0x10ffff) {
    const message = `\`\\${letter}${hex}\` is not a character: \`\\${letter}\` takes ${digits} hexadecimal digits`;
    throw syntaxError(source, place.base + place.at, message, 'write `\\\\` for a plain backslash');
  }
  return [String.fromCodePoint(code), 2 + digits];
}
