/**
 * The two statements that are put together: an insert and an update of many rows. A column that has the same value in every
 * row travels once, as a parameter; the others come from one JSON list, because taking a value out of JSON is most of the cost.
 * Tables and columns come from the code, never from a user.
 */
import { type ChangedRow, type ChangeGroup, groupChanges, splitColumns } from '../row-groups.ts';
import type { RowShape } from '../row-shapes.ts';
import type { SqlValue } from './driver.ts';

/** A statement and its parameters. */
export interface RowStatement {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

type Column<Row> = keyof Row & string;

/** An insert of rows in their order: a list is read from its beginning. */
export function insertStatement<Row extends object>(
  table: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  isIgnoring = false,
): RowStatement {
  const { shared, own } = splitColumns<Row, Column<Row>>(columns, rows);
  const values = shared.map((column) => (rows[0]?.[column] ?? null) as SqlValue);
  const places = [
    ...shared.map((_, index) => `?${index + 2}`),
    ...own.map((_, index) => (own.length === 1 ? 'j.value' : `j.value ->> ${index}`)),
  ];
  const verb = isIgnoring ? 'insert or ignore' : 'insert';
  const sql = `${verb} into ${table} (${[...shared, ...own].join(', ')}) select ${places.join(', ')} from json_each(?1) j`;
  return { sql, params: [listOf(rows, own), ...values] };
}

/** Updates that write only the changed columns of each row; rows with the same changed columns go together. */
export function updateStatements(
  { table, columns, changing }: Pick<RowShape<never>, 'table' | 'columns' | 'changing'>,
  rows: readonly ChangedRow[],
): readonly RowStatement[] {
  return groupChanges(rows, changing).map((group) => update(table, columns, group));
}

function update(table: string, columns: readonly string[], { rows, shared, own }: ChangeGroup): RowStatement {
  const [first] = rows;
  const values = shared.map((index) => (first?.list[index] ?? null) as SqlValue);
  const constants = shared.map((index, place) => `${columns[index]} = ?${place + 2}`);
  if (own.length === 0) {
    const sql = `update ${table} set ${constants.join(', ')} where key in (select value from json_each(?1))`;
    return { sql, params: [JSON.stringify(rows.map((row) => row.key)), ...values] };
  }
  const sets = [...constants, ...own.map((index, place) => `${columns[index]} = j.value ->> ${place + 1}`)];
  const sql = `update ${table} set ${sets.join(', ')} from json_each(?1) j where ${table}.key = j.value ->> 0`;
  const list = JSON.stringify(rows.map((row) => [row.key, ...own.map((index) => row.list[index])]));
  return { sql, params: [list, ...values] };
}

function listOf<Row extends object>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const [only, ...more] = columns;
  if (only !== undefined && more.length === 0) return JSON.stringify(rows.map((row) => row[only]));
  return JSON.stringify(rows.map((row) => columns.map((column) => row[column])));
}
