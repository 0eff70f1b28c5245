/** Filters that change text. A subject that is not text is taken as the text it would be written as. */
import { lengthOf, repeated, takeCharacters } from '../characters.ts';
import type { Operation } from '../operation.ts';
import { charge, fail, type Rendering, spend, spendOnText } from '../rendering.ts';
import { capitalized, linesOf, lowerCase, replaced, strip, titled, upperCase } from '../strings.ts';
import { textOf } from '../text.ts';
import { isTruthy } from '../truth.ts';
import { textArgument, wholeArgument } from './argument.ts';

const WORD = /[\p{L}\p{N}_]+/gu;

/** Filters on text, by name. */
export const TEXT_FILTERS = {
  upper: onText([], upperCase),
  lower: onText([], lowerCase),
  capitalize: onText([], capitalized),
  title: onText([], titled),
  string: onText([], (_, text) => text),
  safe: { params: [], run: (_: Rendering, value: unknown) => value },
  trim: onText(['chars'], (rendering, text, [chars]) => {
    const unwanted =
      chars === undefined || chars === null
        ? null
        : textArgument(rendering, chars, { name: 'chars', fallback: '' });
    return strip(rendering, text, { chars: unwanted, sides: 'both' });
  }),
  replace: {
    ...onText(['old', 'new', 'count'], (rendering, text, [old, fresh, count]) =>
      replaced(rendering, text, {
        old: textOf(rendering, old),
        fresh: textOf(rendering, fresh),
        most:
          count === undefined || count === null
            ? null
            : wholeArgument(rendering, count, { name: 'count', fallback: -1 }),
      }),
    ),
    required: 2,
  },
  center: onText(['width'], center),
  indent: onText(['width', 'first', 'blank'], indent),
  truncate: onText(['length', 'killwords', 'end', 'leeway'], truncate),
  wordcount: onText([], (rendering, text) => {
    spendOnText(rendering, text.length);
    let count = 0;
    for (const _ of text.matchAll(WORD)) {
      spend(rendering, 1);
      count++;
    }
    return count;
  }),
} satisfies Record<string, Operation>;

function onText(
  params: readonly string[],
  run: (rendering: Rendering, text: string, args: readonly unknown[]) => unknown,
): Operation {
  return { params, run: (rendering, subject, args) => run(rendering, textOf(rendering, subject), args) };
}

function center(rendering: Rendering, text: string, args: readonly unknown[]): string {
  const width = wholeArgument(rendering, args[0], { name: 'width', fallback: 80 });
  const gap = width - lengthOf(rendering, text);
  if (gap <= 0) return text;
  // Python puts the odd space on the left when the width is odd too, otherwise on the right.
  const left = Math.floor(gap / 2) + (gap % 2 === 1 && width % 2 === 1 ? 1 : 0);
  charge(rendering, text.length);
  return repeated(rendering, ' ', left) + text + repeated(rendering, ' ', gap - left);
}

function indent(rendering: Rendering, text: string, args: readonly unknown[]): string {
  const [width, first, blank] = args;
  const margin =
    typeof width === 'string'
      ? width
      : repeated(rendering, ' ', wholeArgument(rendering, width, { name: 'width', fallback: 4, min: 0 }));
  // The extra line end keeps a last empty line from being dropped.
  const lines = linesOf(rendering, `${text}\n`);
  charge(rendering, text.length + lines.length * margin.length);
  const indented = lines.map((line, index) => {
    const isMoved = index === 0 ? isTruthy(first) : line !== '' || isTruthy(blank);
    return isMoved ? margin + line : line;
  });
  return indented.join('\n');
}

function truncate(rendering: Rendering, text: string, args: readonly unknown[]): string {
  const length = wholeArgument(rendering, args[0], { name: 'length', fallback: 255, min: 0 });
  const end = textArgument(rendering, args[2], { name: 'end', fallback: '...' });
  const leeway = wholeArgument(rendering, args[3], { name: 'leeway', fallback: 5, min: 0 });
  const endLength = lengthOf(rendering, end);
  if (length < endLength)
    return fail(rendering, 'type', `\`length\` must be at least ${endLength}, the length of \`end\``);
  if (lengthOf(rendering, text) <= length + leeway) return text;
  const kept = takeCharacters(rendering, text, length - endLength);
  charge(rendering, end.length);
  if (isTruthy(args[1])) return kept + end;
  const space = kept.lastIndexOf(' ');
  return (space === -1 ? kept : kept.slice(0, space)) + end;
}
