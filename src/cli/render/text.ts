/** Text of others made fit for a terminal: harmless, measured in columns, cut to a width. */

/** Plain ASCII is the common case and needs no look at each character. */
const PLAIN = /^[ -~]*$/;
const MARKS = /\p{Mn}|\p{Me}|\u200d|\ufe0f/u;
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** Control characters made harmless; line ends and tabs become spaces. Output of a task must not steer the terminal. */
export function oneLine(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(/[\r\n\t]+/g, ' ').replace(/\p{Cc}|\p{Cs}/gu, '\u{fffd}');
}

/** The same for text of several lines, which keeps them. */
export function manyLines(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll('\t', '  ')
    .replace(/(?!\n)\p{Cc}|\p{Cs}/gu, '\u{fffd}');
}

/** Columns that a terminal gives to plain text: two for wide characters, none for marks that join the one before. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let columns = 0;
  for (const char of text) columns += charWidth(char);
  return columns;
}

/** Plain text of one line, cut to a number of columns. */
export function cut(text: string, columns: number): string {
  if (columns <= 0) return '';
  if (widthOf(text) <= columns) return text;
  let shown = '';
  let used = 0;
  for (const char of text) {
    used += charWidth(char);
    if (used > columns - 1) break;
    shown += char;
  }
  return `${shown}…`;
}

/** Plain text with spaces behind it up to a number of columns. */
export function pad(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - widthOf(text)));
}

/** Puts spaces before every line. */
export function indent(text: string, by: number): string {
  const margin = ' '.repeat(by);
  return text
    .split('\n')
    .map((line) => (line === '' ? line : margin + line))
    .join('\n');
}

/** A number of things in words. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

function charWidth(char: string): number {
  if (MARKS.test(char)) return 0;
  return WIDE.test(char) ? 2 : 1;
}
