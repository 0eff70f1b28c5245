/**
 * The two statements that are put together: an insert and an update of many rows. A column that has the same value in every
 * row travels once, as a parameter; the others come from one JSON list, because taking a value out of JSON is most of the cost.
 * A text is put together once for every way in which rows can agree. Tables and columns come from the code, never from a user.
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

/** How rows are inserted into a table. */
export interface Insert<Row> {
  readonly verb: 'insert' | 'insert or ignore';
  readonly table: string;
  readonly columns: readonly Column<Row>[];
  /** Texts that were put together before. */
  readonly texts: Map<string, string>;
}

/** How rows are inserted into a table; with `or ignore`, one that is there already stays as it is. */
export function insertInto<Row>(
  table: string,
  columns: readonly Column<Row>[],
  verb: Insert<Row>['verb'] = 'insert',
): Insert<Row> {
  return Object.freeze({ verb, table, columns, texts: new Map() });
}

/** So few rows travel as plain parameters: for them a list costs more than it saves. */
const FEW = 2;

/** An insert of rows in their order: a list is read from its beginning. */
export function insertStatement<Row extends object>(insert: Insert<Row>, rows: readonly Row[]): RowStatement {
  const { columns, texts } = insert;
  if (rows.length <= FEW) {
    const sql = remembered(texts, `${rows.length} rows`, () => insertFew(insert, rows.length));
    const params: SqlValue[] = [];
    for (const row of rows) for (const column of columns) params.push((row[column] ?? null) as SqlValue);
    return { sql, params };
  }
  const { shared, own } = splitColumns<Row, Column<Row>>(columns, rows);
  const sql = remembered(texts, own.join(), () => insertMany(insert, shared, own));
  return {
    sql,
    params: [listOf(rows, own), ...shared.map((column) => (rows[0]?.[column] ?? null) as SqlValue)],
  };
}

function insertFew<Row>({ verb, table, columns }: Insert<Row>, rows: number): string {
  const row = `(${columns.map(() => '?').join(', ')})`;
  return `${verb} into ${table} (${columns.join(', ')}) values ${Array<string>(rows).fill(row).join(', ')}`;
}

function insertMany<Row>(
  { verb, table }: Insert<Row>,
  shared: readonly string[],
  own: readonly string[],
): string {
  const places = [
    ...shared.map((_, index) => `?${index + 2}`),
    ...own.map((_, index) => (own.length === 1 ? 'j.value' : `j.value ->> ${index}`)),
  ];
  return `${verb} into ${table} (${[...shared, ...own].join(', ')}) select ${places.join(', ')} from json_each(?1) j`;
}

/** How rows of a table are updated. */
export interface Update extends Pick<RowShape<never>, 'table' | 'columns' | 'changing'> {
  /** Texts that were put together before. */
  readonly texts: Map<string, string>;
}

/** Updates that write only the changed columns of each row; rows with the same changed columns go together. */
export function updateStatements(update: Update, rows: readonly ChangedRow[]): readonly RowStatement[] {
  return groupChanges(rows, update.changing).map((group) => updateGroup(update, group));
}

function updateGroup(update: Update, { rows, shared, own }: ChangeGroup): RowStatement {
  const [first] = rows;
  const values = shared.map((index) => (first?.list[index] ?? null) as SqlValue);
  const isOne = rows.length === 1;
  // All that the text is made of: columns that have changed alike do not always come in the same order.
  const way = `${isOne} ${shared.join()} ${own.join()}`;
  const sql = remembered(update.texts, way, () => updateText(update, { shared, own, isOne }));
  return { sql, params: [isOne ? (first?.key ?? 0) : keysAnd(own, rows), ...values] };
}

function updateText(
  { table, columns }: Update,
  { shared, own, isOne }: Pick<ChangeGroup, 'shared' | 'own'> & { readonly isOne: boolean },
): string {
  const constants = shared.map((index, place) => `${columns[index]} = ?${place + 2}`);
  if (isOne) return `update ${table} set ${constants.join(', ')} where key = ?1`;
  if (own.length === 0)
    return `update ${table} set ${constants.join(', ')} where key in (select value from json_each(?1))`;
  const sets = [...constants, ...own.map((index, place) => `${columns[index]} = j.value ->> ${place + 1}`)];
  return `update ${table} set ${sets.join(', ')} from json_each(?1) j where ${table}.key = j.value ->> 0`;
}

/** The keys of rows, each with its own values if there are any, as a JSON list. */
function keysAnd(own: readonly number[], rows: readonly ChangedRow[]): string {
  const [first, ...more] = own;
  if (first === undefined) return JSON.stringify(rows.map((row) => row.key));
  if (more.length === 0) return JSON.stringify(rows.map((row) => [row.key, row.list[first]]));
  return JSON.stringify(rows.map((row) => [row.key, ...own.map((index) => row.list[index])]));
}

function listOf<Row extends object>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const [first, second, ...more] = columns;
  if (first === undefined || more.length > 0)
    return JSON.stringify(rows.map((row) => columns.map((column) => row[column])));
  // One or two is what most lists hold.
  if (second === undefined) return JSON.stringify(rows.map((row) => row[first]));
  return JSON.stringify(rows.map((row) => [row[first], row[second]]));
}

function remembered(texts: Map<string, string>, way: string, build: () => string): string {
  let text = texts.get(way);
  if (text === undefined) {
    text = build();
    texts.set(way, text);
  }
  return text;
}
