/** Problems as a good compiler shows them: what, where, the line with a caret, what to do. */
import type { Problem } from '../../definition/problem.ts';
import type { Colors } from '../io.ts';
import type { WorkflowSource } from '../workflow-source.ts';

/** All problems of a file, errors first. */
export function renderProblems({ file, text, checked }: WorkflowSource, colors: Colors): string {
  const { errors, warnings, dropped } = checked;
  if (errors.length + warnings.length === 0) return '';
  const lines = text.split(/\r?\n/);
  const show = (problem: Problem, kind: 'error' | 'warning'): string =>
    renderProblem({ problem, kind, file, lines, colors });
  const blocks = [
    ...errors.map((problem) => show(problem, 'error')),
    ...warnings.map((problem) => show(problem, 'warning')),
  ];
  if (dropped > 0) blocks.push(`… and ${dropped} more; mend these first\n`);
  return blocks.join('\n');
}

function renderProblem(view: {
  problem: Problem;
  kind: 'error' | 'warning';
  file: string;
  lines: readonly string[];
  colors: Colors;
}): string {
  const { problem, kind, file, lines, colors } = view;
  const { code, message, hint, path, line, column } = problem;
  const paint = kind === 'error' ? colors.red : colors.yellow;
  const gutter = ' '.repeat(String(line ?? '').length);
  const bar = colors.blue('|');
  const shown = [`${paint(colors.bold(`${kind}[${code}]`))}${colors.bold(`: ${printable(message)}`)}`];
  shown.push(`${gutter}${colors.blue('-->')} ${line === null ? path || file : `${file}:${line}:${column}`}`);
  const source = lines[(line ?? 0) - 1];
  if (source !== undefined && source.trim() !== '') {
    const { text, before } = excerpt(source, (column ?? 1) - 1);
    shown.push(`${gutter} ${bar}`, `${colors.blue(String(line))} ${bar} ${text}`);
    shown.push(`${gutter} ${bar} ${' '.repeat(before)}${paint('^')}`);
  }
  if (hint !== undefined) shown.push(`${gutter} ${colors.blue('=')} ${printable(hint)}`);
  return `${shown.join('\n')}\n`;
}

const EXCERPT_CHARS = 100;

/** A stretch of the line around `index`, and how many terminal columns stand before that character. */
function excerpt(line: string, index: number): { text: string; before: number } {
  const isShort = line.length <= EXCERPT_CHARS;
  const start = isShort ? 0 : Math.max(0, index - EXCERPT_CHARS / 2);
  const head = start > 0 ? '…' : '';
  const tail = start + EXCERPT_CHARS < line.length && !isShort ? '…' : '';
  const body = isShort ? line : line.slice(start, start + EXCERPT_CHARS);
  const before = head + line.slice(start, index);
  return { text: printable(head + body + tail), before: columns(printable(before)) };
}

/** Tabs as one space, and control characters made harmless: a file must not be able to steer the terminal. */
function printable(text: string): string {
  return text
    .replaceAll('\t', ' ')
    .replace(/\p{Cc}/gu, '\u{fffd}')
    .replace(/\p{Cs}/gu, '\u{fffd}');
}

/** Columns that a terminal gives to the text: two for wide characters, none for marks that join the one before. */
function columns(text: string): number {
  let count = 0;
  for (const char of text) {
    if (/\p{Mn}|\p{Me}|\u200d|\ufe0f/u.test(char)) continue;
    count +=
      /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u.test(
        char,
      )
        ? 2
        : 1;
  }
  return count;
}
