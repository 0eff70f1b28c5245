/**
 * The two statements that are put together: an insert and an update of many rows. A column with the same value in every row
 * travels once; the others come as arrays, side by side. Rows to change are found one by one by key and then taken by their
 * place, so that the planner has no order to choose (docs/decisions/0005). Tables and columns come from the code, never from a user.
 */
import { type ChangedRow, type ChangeGroup, groupChanges, splitColumns } from '../row-groups.ts';
import type { RowShape } from '../row-shapes.ts';
import { arrayLiteral, type Param, toParam, type Value } from './values.ts';

/** A statement and its parameters. */
export interface RowStatement {
  readonly text: string;
  readonly params: readonly Param[];
}

type Column<Row> = keyof Row & string;

const NUMBER_COLUMN =
  /^(n_\w+|is_\w+|\w+_key|key|\w+_at|\w+_ms|deps_\w+|stopping|cancelled|paused|finishing|priority|version|workflow_version|active_since|undecided|attempt|attempts_spent|losses|releases|unstarted|generation|in_queue|not_before|output_attempt|map_\w+|acknowledged|ordinal|bytes|at)$/;

/** The type as which a column's values are sent; assignment makes them narrower where the column is. */
function typeOf(column: string): 'bigint' | 'text' | 'float8' {
  if (column === 'progress') return 'float8';
  return NUMBER_COLUMN.test(column) ? 'bigint' : 'text';
}

/** Inline content is bytes, whatever it was made from. */
function placed(column: string, place: string): string {
  return column === 'inline' ? `convert_to(${place}, 'UTF8')` : place;
}

/** An insert of rows in their order, in which arrays are read; what stands before the values and behind them is the caller's. */
export function insertStatement<Row extends object>(
  table: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { head, tail }: { readonly head: string; readonly tail: string },
): RowStatement {
  const { shared, own } = splitColumns<Row, Column<Row>>(columns, rows);
  const constants = shared.map((column, index) => placed(column, `$${index + 1}::${typeOf(column)}`));
  const names = [...shared, ...own].join(', ');
  const values = shared.map((column) => toParam((rows[0]?.[column] ?? null) as Value));
  if (rows.length === 1)
    return {
      text: `insert into ${table} (${names}) ${head} values (${constants.join(', ')}) ${tail}`,
      params: values,
    };
  // Rows that are alike in everything still have to be counted.
  const arrays = own.length === 0 ? shared.slice(0, 1) : own;
  const unnested = arrays.map((column, index) => `$${shared.length + index + 1}::${typeOf(column)}[]`);
  const places = own.map((column) => placed(column, `u.${column}`));
  const text = `insert into ${table} (${names}) ${head} select ${[...constants, ...places].join(', ')} from unnest(${unnested.join(', ')}) u (${arrays.join(', ')}) ${tail}`;
  const lists = arrays.map((column) => arrayLiteral(rows.map((row) => row[column])));
  return { text, params: [...values, ...lists] };
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
  const nameOf = (index: number): string => columns[index] ?? '';
  const constants = shared.map(
    (index, place) => `${nameOf(index)} = $${place + 2}::${typeOf(nameOf(index))}`,
  );
  const values = shared.map((index) => toParam((first?.list[index] ?? null) as Value));
  const keys = arrayLiteral(rows.map((row) => row.key));
  if (rows.length === 1) {
    const text = `update ${table} set ${constants.join(', ')} where key = $1::bigint`;
    return { text, params: [String(first?.key), ...values] };
  }
  if (own.length === 0) {
    const text = `update ${table} set ${constants.join(', ')} where key = any ($1::bigint[])`;
    return { text, params: [keys, ...values] };
  }
  const types = own.map((index, place) => `$${shared.length + place + 2}::${typeOf(nameOf(index))}[]`);
  const names = own.map(nameOf);
  const sets = [...constants, ...names.map((name) => `${name} = u.${name}`)];
  const source = `select x.place, ${names.map((name) => `w.${name}`).join(', ')} from unnest($1::bigint[], ${types.join(', ')}) w (row_key, ${names.join(', ')}) cross join lateral (select ctid as place from ${table} where key = w.row_key offset 0) x`;
  const text = `update ${table} t set ${sets.join(', ')} from (${source}) u where t.ctid = u.place`;
  const lists = own.map((index) => arrayLiteral(rows.map((row) => row.list[index])));
  return { text, params: [keys, ...values, ...lists] };
}
