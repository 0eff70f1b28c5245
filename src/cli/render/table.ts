/** Tables for a terminal: columns as wide as their content, the last one cut at the edge. */
import type { Colors, Output } from '../io.ts';
import { cut, oneLine, pad, widthOf } from './text.ts';

/** A cell: plain text, and how it is painted. */
export interface Cell {
  readonly text: string;
  readonly paint?: (text: string) => string;
}

/** A column; numbers stand on the right. */
export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string | Cell;
  readonly isNumber?: boolean;
}

const GAP = '  ';

/** Draws rows under a line of titles. */
export function renderTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { colors, output }: { readonly colors: Colors; readonly output: Output },
): string {
  const cells = rows.map((row) => columns.map(({ cell }) => toCell(cell(row))));
  const widths = columns.map(({ title }, index) =>
    Math.max(widthOf(title), ...cells.map((line) => widthOf(line[index]?.text ?? ''))),
  );
  const room = output.isTerminal ? output.size().columns : Number.POSITIVE_INFINITY;
  const draw = (line: readonly Cell[]): string => drawLine(line, { columns, widths, room });
  const titles = columns.map(({ title }) => ({ text: title.toUpperCase(), paint: colors.dim }));
  return [titles, ...cells].map((line) => `${draw(line)}\n`).join('');
}

function drawLine<Row>(
  line: readonly Cell[],
  layout: { columns: readonly Column<Row>[]; widths: readonly number[]; room: number },
): string {
  let used = 0;
  return line
    .map(({ text, paint = (plain) => plain }, index) => {
      const width = layout.widths[index] ?? 0;
      const isLast = index === line.length - 1;
      const left = layout.room - used;
      used += width + GAP.length;
      if (isLast) return paint(cut(text, left));
      return layout.columns[index]?.isNumber === true ? paint(padLeft(text, width)) : paint(pad(text, width));
    })
    .join(GAP)
    .trimEnd();
}

function padLeft(text: string, columns: number): string {
  return ' '.repeat(Math.max(0, columns - widthOf(text))) + text;
}

function toCell(cell: string | Cell): Cell {
  return typeof cell === 'string' ? { text: oneLine(cell) } : { ...cell, text: oneLine(cell.text) };
}
