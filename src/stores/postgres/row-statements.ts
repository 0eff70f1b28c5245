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

const types = new Map<string, 'bigint' | 'text' | 'float8'>([['progress', 'float8']]);

/** The type as which a column's values are sent; assignment makes them narrower where the column is. */
function typeOf(column: string): 'bigint' | 'text' | 'float8' {
  let type = types.get(column);
  if (type === undefined) {
    type = NUMBER_COLUMN.test(column) ? 'bigint' : 'text';
    types.set(column, type);
  }
  return type;
}

/** Texts that were put together, by what they are made of; beyond this many they start afresh. */
const TEXTS_MAX = 1_000;
const texts = new Map<string, string>();

/** The same text again, without putting it together and, as it is the same string, without hashing it. */
function textFor(parts: string, build: () => string): string {
  let text = texts.get(parts);
  if (text === undefined) {
    if (texts.size >= TEXTS_MAX) texts.clear();
    text = build();
    texts.set(parts, text);
  }
  return text;
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
  const isOne = rows.length === 1;
  // Rows that are alike in everything still have to be counted.
  const arrays = own.length > 0 || isOne ? own : shared.slice(0, 1);
  const text = textFor(`${table} ${isOne} ${shared.join()} ${own.join()} ${head} ${tail}`, () => {
    const names = [...shared, ...own].join(', ');
    const constants = shared.map((column, index) => placed(column, `$${index + 1}::${typeOf(column)}`));
    if (isOne) return `insert into ${table} (${names}) ${head} values (${constants.join(', ')}) ${tail}`;
    const unnested = arrays.map((column, index) => `$${shared.length + index + 1}::${typeOf(column)}[]`);
    const places = own.map((column) => placed(column, `u.${column}`));
    return `insert into ${table} (${names}) ${head} select ${[...constants, ...places].join(', ')} from unnest(${unnested.join(', ')}) u (${arrays.join(', ')}) ${tail}`;
  });
  const values = shared.map((column) => toParam((rows[0]?.[column] ?? null) as Value));
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

function update(table: string, columns: readonly string[], group: ChangeGroup): RowStatement {
  const { rows, shared, own } = group;
  const [first] = rows;
  const isOne = rows.length === 1;
  const text = textFor(`${table} ${isOne} ${shared.join()} ${own.join()}`, () =>
    updateText(table, columns, group),
  );
  const keys = isOne ? String(first?.key) : arrayLiteral(rows.map((row) => row.key));
  const values = shared.map((index) => toParam((first?.list[index] ?? null) as Value));
  const lists = own.map((index) => arrayLiteral(rows.map((row) => row.list[index])));
  return { text, params: [keys, ...values, ...lists] };
}

/** The update of one row that fails, and the transaction with it, if somebody else than `writer` wrote the row last. */
export function provingUpdate({ text, params }: RowStatement, writer: string): RowStatement {
  const proving = textFor(`proving ${text}`, () => {
    const update = `${text} and xmin = $${params.length + 1}::xid returning key`;
    return `with written as (${update}) select pg_current_xact_id()::text, 1 / count(*)::integer from written`;
  });
  return { text: proving, params: [...params, writer] };
}

function updateText(table: string, columns: readonly string[], { rows, shared, own }: ChangeGroup): string {
  const nameOf = (index: number): string => columns[index] ?? '';
  const constants = shared.map(
    (index, place) => `${nameOf(index)} = $${place + 2}::${typeOf(nameOf(index))}`,
  );
  if (rows.length === 1) return `update ${table} set ${constants.join(', ')} where key = $1::bigint`;
  if (own.length === 0) return `update ${table} set ${constants.join(', ')} where key = any ($1::bigint[])`;
  const arrays = own.map((index, place) => `$${shared.length + place + 2}::${typeOf(nameOf(index))}[]`);
  const names = own.map(nameOf);
  const sets = [...constants, ...names.map((name) => `${name} = u.${name}`)];
  const source = `select x.place, ${names.map((name) => `w.${name}`).join(', ')} from unnest($1::bigint[], ${arrays.join(', ')}) w (row_key, ${names.join(', ')}) cross join lateral (select ctid as place from ${table} where key = w.row_key offset 0) x`;
  return `update ${table} t set ${sets.join(', ')} from (${source}) u where t.ctid = u.place`;
}
