/** Text that every store can hold and every person can read: no NUL, no half characters, not too long. */

const REPLACEMENT = '\uFFFD';

/** The text with what cannot be stored replaced, and its middle left out when it is too long. */
export function cleanText(text: string, charsMax: number): string {
  return bounded(text, charsMax)
    .replaceAll('\0', REPLACEMENT)
    .replace(/\p{Surrogate}/gu, REPLACEMENT);
}

/** The start says what happened and the end why, so both are kept. */
function bounded(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const gap = ' […] ';
  const half = Math.floor((charsMax - gap.length) / 2);
  return text.slice(0, half) + gap + text.slice(-half);
}
