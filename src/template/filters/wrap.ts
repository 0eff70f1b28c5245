/** The filter `wordwrap`: lines filled with words up to a width, as Python's textwrap does it, one paragraph per line of text. */
import { lengthOf } from '../characters.ts';
import type { Operation } from '../operation.ts';
import { charge, type Rendering, spend, spendOnText } from '../rendering.ts';
import { linesOf } from '../strings.ts';
import { textOf } from '../text.ts';
import { isTruthy } from '../truth.ts';
import { textArgument, wholeArgument } from './argument.ts';

const LETTER = /\p{L}/u;

interface Wrapping {
  readonly width: number;
  readonly breaksLongWords: boolean;
  readonly breaksOnHyphens: boolean;
}

/** Fills lines up to `width` characters. */
export const wordwrap: Operation = {
  params: ['width', 'break_long_words', 'wrapstring', 'break_on_hyphens'],
  run: (rendering, subject, [width, breakLong, wrapstring, breakHyphens]) => {
    const wrapping: Wrapping = {
      width: wholeArgument(rendering, width, { name: 'width', fallback: 79, min: 1 }),
      breaksLongWords: isTruthy(breakLong ?? true),
      breaksOnHyphens: isTruthy(breakHyphens ?? true),
    };
    const end = textArgument(rendering, wrapstring ?? undefined, { name: 'wrapstring', fallback: '\n' });
    const lines: string[] = [];
    for (const paragraph of linesOf(rendering, textOf(rendering, subject))) {
      const wrapped = wrapParagraph(rendering, paragraph, wrapping);
      // A paragraph without words still takes its line.
      if (wrapped.length === 0) wrapped.push('');
      for (const line of wrapped) {
        charge(rendering, line.length + end.length);
        lines.push(line);
      }
    }
    return lines.join(end);
  },
};

function wrapParagraph(rendering: Rendering, paragraph: string, wrapping: Wrapping): string[] {
  const queue = chunksOf(rendering, paragraph, wrapping).reverse();
  const lines: string[] = [];
  while (queue.length > 0) {
    // White space is dropped where a line begins, but not at the very start.
    if (lines.length > 0 && isSpace(queue.at(-1))) queue.pop();
    const line = fillLine(rendering, queue, wrapping);
    if (isSpace(line.at(-1))) line.pop();
    if (line.length > 0) lines.push(line.join(''));
  }
  return lines;
}

/** Takes as many chunks as fit on one line; a chunk longer than a whole line is cut or stands alone. */
function fillLine(rendering: Rendering, queue: string[], wrapping: Wrapping): string[] {
  const line: string[] = [];
  let room = wrapping.width;
  for (let chunk = queue.at(-1); chunk !== undefined; chunk = queue.at(-1)) {
    // Beyond twice the width the exact length does not matter, and counting it again for every line would.
    const length = chunk.length > 2 * wrapping.width ? chunk.length : lengthOf(rendering, chunk);
    if (length > room) {
      if (length > wrapping.width) placeLongWord({ line, queue, room }, chunk, wrapping);
      break;
    }
    spend(rendering, 1);
    queue.pop();
    line.push(chunk);
    room -= length;
  }
  return line;
}

function placeLongWord(
  place: { line: string[]; queue: string[]; room: number },
  word: string,
  wrapping: Wrapping,
): void {
  const { line, queue, room } = place;
  if (!wrapping.breaksLongWords) {
    if (line.length === 0) line.push(queue.pop() as string);
    return;
  }
  const characters = Array.from(word.slice(0, 2 * room));
  let cut = Math.min(room, characters.length);
  if (wrapping.breaksOnHyphens) {
    const hyphen = characters.slice(0, room).lastIndexOf('-');
    if (hyphen > 0 && characters.slice(0, hyphen).some((character) => character !== '-')) cut = hyphen + 1;
  }
  const head = characters.slice(0, cut).join('');
  if (head !== '') line.push(head);
  queue[queue.length - 1] = word.slice(head.length);
}

/** Words and the white space between them; hyphenated words fall apart after their hyphens. */
function chunksOf(rendering: Rendering, paragraph: string, wrapping: Wrapping): string[] {
  spendOnText(rendering, paragraph.length);
  charge(rendering, paragraph.length);
  const chunks: string[] = [];
  for (const [chunk] of paragraph.matchAll(/\s+|\S+/g)) {
    if (wrapping.breaksOnHyphens && chunk.includes('-')) pushHyphenated(chunks, chunk);
    else chunks.push(chunk);
  }
  return chunks;
}

function pushHyphenated(chunks: string[], word: string): void {
  let start = 0;
  for (let at = word.indexOf('-'); at !== -1; at = word.indexOf('-', at + 1)) {
    const isBetweenLetters = isLetter(word[at - 2]) && isLetter(word[at - 1]) && isLetter(word[at + 1]);
    if (!isBetweenLetters || !(isLetter(word[at + 2]) || word[at + 2] === '-')) continue;
    chunks.push(word.slice(start, at + 1));
    start = at + 1;
  }
  chunks.push(word.slice(start));
}

const isLetter = (character: string | undefined): boolean =>
  character !== undefined && LETTER.test(character);
const isSpace = (chunk: string | undefined): boolean => chunk !== undefined && /^\s/.test(chunk);
