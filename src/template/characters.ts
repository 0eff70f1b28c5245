/** Text by characters as Python counts them (code points), so that `'😀' | length` is 1 and a slice never cuts a character in half. */
import { charge, type Rendering, spend, spendOnText } from './rendering.ts';

const ASTRAL = /[\ud800-\udfff]/;

/** The number of characters of a text. */
export function lengthOf(rendering: Rendering, text: string): number {
  spendOnText(rendering, text.length);
  if (!ASTRAL.test(text)) return text.length;
  let length = 0;
  for (let at = 0; at < text.length; length++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return length;
}

/** The characters of a text as a list. */
export function charactersOf(rendering: Rendering, text: string): string[] {
  spend(rendering, text.length);
  charge(rendering, text.length);
  return Array.from(text);
}

/** The first characters of a text. */
export function takeCharacters(rendering: Rendering, text: string, count: number): string {
  spendOnText(rendering, text.length);
  charge(rendering, Math.min(text.length, Math.max(0, count)));
  if (!ASTRAL.test(text)) return text.slice(0, Math.max(0, count));
  let at = 0;
  for (let taken = 0; taken < count && at < text.length; taken++)
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return text.slice(0, at);
}

/** The character at a position, counted from the end when negative; undefined when there is none. */
export function characterAt(rendering: Rendering, text: string, position: number): string | undefined {
  spendOnText(rendering, text.length);
  if (!ASTRAL.test(text)) return text.at(position);
  return charactersOf(rendering, text).at(position);
}

/** A text repeated; paid for before it is built. */
export function repeated(rendering: Rendering, text: string, times: number): string {
  const count = Math.max(0, times);
  charge(rendering, text.length * count);
  return text.length === 0 ? '' : text.repeat(count);
}
