/**
 * What both dialects put into their inserts and updates of many rows: which columns have the same value in every row, so that it
 * travels once, and which rows have changed in the same columns, so that one statement writes them.
 */

/** A row to write: its key, its values in the order of the table's list, and which of them have changed. */
export interface ChangedRow {
  readonly key: number;
  readonly list: readonly unknown[];
  readonly changed: readonly number[];
}

/** Rows with the same changed columns; `shared` ones have one value for all of them. */
export interface ChangeGroup {
  readonly rows: readonly ChangedRow[];
  readonly shared: readonly number[];
  readonly own: readonly number[];
}

/** Groups rows by what has changed in them. */
export function groupChanges(rows: readonly ChangedRow[]): readonly ChangeGroup[] {
  const groups = new Map<string, ChangedRow[]>();
  for (const row of rows) {
    const name = row.changed.join();
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [row]);
    else group.push(row);
  }
  return [...groups.values()].map(splitGroup);
}

function splitGroup(rows: readonly ChangedRow[]): ChangeGroup {
  const [first] = rows;
  const shared: number[] = [];
  const own: number[] = [];
  for (const index of first?.changed ?? []) {
    const value = first?.list[index];
    (rows.every((row) => row.list[index] === value) ? shared : own).push(index);
  }
  return { rows, shared, own };
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
    const value = first?.[column];
    (rows.every((row) => row[column] === value) ? shared : own).push(column);
  }
  return { shared, own };
}
