/** Operations on text that filters and methods share, with Python's rules. Each pays before it builds. */
import { lengthOf } from './characters.ts';
import { charge, type Rendering, spend, spendOnSearch, spendOnText } from './rendering.ts';

const LINE_END = /\r\n|[\n\r\v\f\x85\u2028\u2029]/;
const WORD = /[^-\s({[<]+/g;

/** Which ends of a text are stripped. */
export type Sides = 'both' | 'start' | 'end';

/** A text without white space, or without any of `chars`, at its ends. */
export function strip(
  rendering: Rendering,
  text: string,
  options: { chars: string | null; sides: Sides },
): string {
  charge(rendering, text.length);
  const { chars, sides } = options;
  if (chars === null)
    return sides === 'both' ? text.trim() : sides === 'start' ? text.trimStart() : text.trimEnd();
  spendOnText(rendering, text.length);
  spend(rendering, chars.length);
  const unwanted = new Set(chars);
  const kept = Array.from(text);
  let start = 0;
  let end = kept.length;
  if (sides !== 'end') while (start < end && unwanted.has(kept[start] as string)) start++;
  if (sides !== 'start') while (end > start && unwanted.has(kept[end - 1] as string)) end--;
  return kept.slice(start, end).join('');
}

/** A text in upper case. */
export function upperCase(rendering: Rendering, text: string): string {
  charge(rendering, text.length);
  return text.toUpperCase();
}

/** A text in lower case. */
export function lowerCase(rendering: Rendering, text: string): string {
  charge(rendering, text.length);
  return text.toLowerCase();
}

/** A text with its first character in upper case and the rest in lower case. */
export function capitalized(rendering: Rendering, text: string): string {
  charge(rendering, text.length);
  const first = String.fromCodePoint(text.codePointAt(0) ?? 32);
  return text === '' ? '' : first.toUpperCase() + text.slice(first.length).toLowerCase();
}

/** A text with every word capitalized. */
export function titled(rendering: Rendering, text: string): string {
  spendOnText(rendering, text.length);
  charge(rendering, text.length);
  return text.replace(WORD, (word) => {
    const first = String.fromCodePoint(word.codePointAt(0) ?? 32);
    return first.toUpperCase() + word.slice(first.length).toLowerCase();
  });
}

/** The lines of a text, without their ends; a last line end starts no new line. */
export function linesOf(rendering: Rendering, text: string): string[] {
  spendOnText(rendering, text.length);
  charge(rendering, text.length);
  const lines = text.split(LINE_END);
  spend(rendering, lines.length);
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/** How often `part` occurs in a text, without overlaps; the empty part occurs around every character. */
export function countOf(rendering: Rendering, text: string, part: string): number {
  spendOnSearch(rendering, text.length, part.length);
  if (part === '') return lengthOf(rendering, text) + 1;
  let count = 0;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) count++;
  spend(rendering, count);
  return count;
}

/** A text with the first `most` occurrences of `old` replaced, or all of them when `most` is null. */
export function replaced(
  rendering: Rendering,
  text: string,
  change: { old: string; fresh: string; most: number | null },
): string {
  const { old, fresh, most } = change;
  const found = countOf(rendering, text, old);
  const count = most === null || most < 0 ? found : Math.min(found, most);
  charge(rendering, text.length + count * fresh.length);
  if (old === '') return interleaved(rendering, text, { fresh, count });
  const parts = split(rendering, text, { separator: old, most: count });
  return parts.join(fresh);
}

/** The parts of a text between separators, at most `most` cuts (all when negative). Null separates at white space. */
export function split(
  rendering: Rendering,
  text: string,
  options: { separator: string | null; most: number },
): string[] {
  const { separator, most } = options;
  if (separator === null) return splitWords(rendering, text, most);
  spendOnSearch(rendering, text.length, separator.length);
  const parts: string[] = [];
  let at = 0;
  const cutsMax = most < 0 ? Number.POSITIVE_INFINITY : most;
  while (parts.length < cutsMax) {
    const next = text.indexOf(separator, at);
    if (next === -1) break;
    addPart(rendering, parts, text.slice(at, next));
    at = next + separator.length;
  }
  addPart(rendering, parts, text.slice(at));
  return parts;
}

function splitWords(rendering: Rendering, text: string, most: number): string[] {
  spendOnText(rendering, text.length);
  const parts: string[] = [];
  const word = /\S+/g;
  for (let match = word.exec(text); match !== null; match = word.exec(text)) {
    if (most >= 0 && parts.length === most) {
      addPart(rendering, parts, text.slice(match.index));
      break;
    }
    addPart(rendering, parts, match[0]);
  }
  return parts;
}

function addPart(rendering: Rendering, parts: string[], part: string): void {
  spend(rendering, 1);
  charge(rendering, 1 + part.length);
  parts.push(part);
}

function interleaved(rendering: Rendering, text: string, change: { fresh: string; count: number }): string {
  const characters = Array.from(text);
  spend(rendering, characters.length);
  let result = '';
  for (let index = 0; index <= characters.length; index++) {
    if (index < change.count) result += change.fresh;
    result += characters[index] ?? '';
  }
  return result;
}
