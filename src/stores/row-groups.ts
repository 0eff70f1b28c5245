/**
 * What both dialects put into their inserts and updates of many rows: which columns have the same value in every row, so that it
 * travels once, and which rows have changed in the same columns, so that one statement writes them.
 */
import { invariant } from '../base/invariant.ts';

/** A row to write: its key, its values in the order of the table's list, and which of them have changed. */
export interface ChangedRow {
  readonly key: number;
  readonly list: readonly unknown[];
  /** One bit for every entry of the table's `changing` that has changed; a number holds 53 of them. */
  readonly changed: number;
}

const BITS: readonly number[] = Object.freeze(Array.from({ length: 53 }, (_, index) => 2 ** index));

/** Which places of a list differ from what was read; all that can change when nothing was. */
export function changesOf(
  before: readonly unknown[] | undefined,
  list: readonly unknown[],
  changing: readonly number[],
): number {
  invariant(changing.length <= BITS.length, 'a table has no more changing columns than a number has bits');
  let changed = 0;
  for (let bit = 0; bit < changing.length; bit++) {
    const index = changing[bit] as number;
    if (before === undefined || before[index] !== list[index]) changed += BITS[bit] as number;
  }
  return changed;
}

/** Rows with the same changed columns; `shared` ones have one value for all of them. */
export interface ChangeGroup {
  readonly rows: readonly ChangedRow[];
  readonly shared: readonly number[];
  readonly own: readonly number[];
}

/** Groups rows by what has changed in them. */
export function groupChanges(
  rows: readonly ChangedRow[],
  changing: readonly number[],
): readonly ChangeGroup[] {
  if (rows.length === 1) return [splitGroup(rows, changing)];
  const groups = new Map<number, ChangedRow[]>();
  for (const row of rows) {
    const group = groups.get(row.changed);
    if (group === undefined) groups.set(row.changed, [row]);
    else group.push(row);
  }
  return [...groups.values()].flatMap((group) => splitAlike(splitGroup(group, changing)));
}

function splitGroup(rows: readonly ChangedRow[], changing: readonly number[]): ChangeGroup {
  const [first] = rows;
  const shared: number[] = [];
  const own: number[] = [];
  for (let place = 0; place < changing.length; place++) {
    const index = changing[place] as number;
    if (Math.floor((first?.changed ?? 0) / (BITS[place] as number)) % 2 === 0) continue;
    (isListed(rows, index, first?.list[index]) ? shared : own).push(index);
  }
  return { rows, shared, own };
}

/** Rows with the same values are worth a statement of their own from about this many on. */
const ALIKE_MIN = 8;

/** Rows that differ in a few numbers only (versions, counters) are written by one statement for each combination, without a list. */
function splitAlike(group: ChangeGroup): readonly ChangeGroup[] {
  const { rows, shared, own } = group;
  if (own.length === 0 || rows.length < 2 * ALIKE_MIN) return [group];
  const parts = new Map<string, ChangedRow[]>();
  for (const row of rows) {
    const values = own.map((index) => row.list[index]);
    if (!values.every((value) => typeof value === 'number')) return [group];
    const way = values.join();
    const part = parts.get(way);
    if (part !== undefined) part.push(row);
    else if (parts.size * ALIKE_MIN >= rows.length) return [group];
    else parts.set(way, [row]);
  }
  return [...parts.values()].map((part) => ({ rows: part, shared: [...shared, ...own], own: [] }));
}

/** Splits columns into those with one value for all rows and the others. */
export function splitColumns<Row extends object, Column extends keyof Row & string>(
  columns: readonly Column[],
  rows: readonly Row[],
): { shared: Column[]; own: Column[] } {
  const [first] = rows;
  const shared: Column[] = [];
  const own: Column[] = [];
  for (const column of columns) {
    (isCommon(rows, column, first?.[column]) ? shared : own).push(column);
  }
  return { shared, own };
}

// Plain loops, because every value of every row comes through here.

function isListed(rows: readonly ChangedRow[], index: number, value: unknown): boolean {
  for (let at = 0; at < rows.length; at++) if (rows[at]?.list[index] !== value) return false;
  return true;
}

function isCommon<Row extends object>(rows: readonly Row[], column: keyof Row, value: unknown): boolean {
  for (let at = 0; at < rows.length; at++) if (rows[at]?.[column] !== value) return false;
  return true;
}

/** Splits rows by a text that many of them share, so that it travels once for all; groups under `least` stay together. */
export function groupAlike<Row>(
  rows: readonly Row[],
  textOf: (row: Row) => string,
  least: number,
): readonly (readonly Row[])[] {
  if (rows.length < least) return rows.length === 0 ? [] : [rows];
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const text = textOf(row);
    const group = groups.get(text);
    if (group === undefined) groups.set(text, [row]);
    else group.push(row);
  }
  const all = [...groups.values()];
  const odd = all.filter((group) => group.length < least).flat();
  const alike = all.filter((group) => group.length >= least);
  return odd.length === 0 ? alike : [...alike, odd];
}
