/**
 * The two statements that are put together: an insert and an update of many rows. A column that has the same value in every
 * row travels once, as a parameter; the others come from one JSON list, because taking a value out of JSON is most of the cost.
 * Tables and columns come from the code, never from a user.
 */
import type { SqlValue } from './driver.ts';

/** A statement and its parameters. */
export interface RowStatement {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

type Column<Row> = keyof Row & string;

/** An insert of rows in their order. */
export function insertStatement<Row extends object>(
  table: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  isIgnoring = false,
): RowStatement {
  const { shared, own, values } = split(columns, rows);
  const places = [
    ...shared.map((_, index) => `?${index + 2}`),
    ...own.map((_, index) => `j.value ->> ${index}`),
  ];
  const verb = isIgnoring ? 'insert or ignore' : 'insert';
  const sql = `${verb} into ${table} (${[...shared, ...own].join(', ')}) select ${places.join(', ')} from json_each(?1) j order by j.key`;
  return { sql, params: [listOf(rows, own), ...values] };
}

/** Updates that write only the changed columns of each row; rows with the same changed columns go together. */
export function updateStatements<Row extends { key: number }>(
  table: string,
  rows: readonly Row[],
  changedIn: (row: Row) => Column<Row>[],
): readonly RowStatement[] {
  const groups = new Map<string, { columns: Column<Row>[]; rows: Row[] }>();
  for (const row of rows) {
    const changed = changedIn(row);
    if (changed.length === 0) continue;
    const name = changed.join();
    const group = groups.get(name);
    if (group === undefined) groups.set(name, { columns: changed, rows: [row] });
    else group.rows.push(row);
  }
  return [...groups.values()].map((group) => update(table, group.columns, group.rows));
}

function update<Row extends { key: number }>(
  table: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): RowStatement {
  const { shared, own, values } = split(columns, rows);
  const constants = shared.map((column, index) => `${column} = ?${index + 2}`);
  if (own.length === 0) {
    const sql = `update ${table} set ${constants.join(', ')} where key in (select value from json_each(?1))`;
    return { sql, params: [JSON.stringify(rows.map((row) => row.key)), ...values] };
  }
  const sets = [...constants, ...own.map((column, index) => `${column} = j.value ->> ${index + 1}`)];
  const sql = `update ${table} set ${sets.join(', ')} from json_each(?1) j where ${table}.key = j.value ->> 0`;
  return { sql, params: [listOf(rows, ['key', ...own]), ...values] };
}

function split<Row extends object>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): { shared: Column<Row>[]; own: Column<Row>[]; values: SqlValue[] } {
  const [first] = rows;
  const shared: Column<Row>[] = [];
  const own: Column<Row>[] = [];
  for (const column of columns) {
    const value = first?.[column];
    (rows.every((row) => row[column] === value) ? shared : own).push(column);
  }
  return { shared, own, values: shared.map((column) => (first?.[column] ?? null) as SqlValue) };
}

function listOf<Row extends object>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  return JSON.stringify(rows.map((row) => columns.map((column) => row[column])));
}
