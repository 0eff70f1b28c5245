/** How operations reach a connection: named statements, lists as one JSON array, rows as one JSON list. */
import { type ChangedRow, changesOf } from '../row-groups.ts';
import type { RowShape } from '../row-shapes.ts';
import type { SqlRow, SqlValue } from './driver.ts';
import type { RowCache } from './row-cache.ts';
import { insertStatement, updateStatements } from './row-statements.ts';

/** Runs statements on one connection. */
export interface Statements {
  all(name: string, ...params: SqlValue[]): SqlRow[];
  run(name: string, ...params: SqlValue[]): void;
  /** Runs a statement that was put together; `name` is for whoever counts statements. */
  runText(name: string, sql: string, params: readonly SqlValue[]): void;
  /** Rows that this transaction has read, each with the list it was made from. */
  readonly loaded: Map<object, readonly unknown[]>;
  /** Rows worth remembering between transactions; only a writer has them. */
  readonly caches: { readonly runs: RowCache; readonly task_runs: RowCache } | null;
}

type Column<Row> = keyof Row & string;

/** The place of the key in a list. */
const KEY = 0;

/** A table whose rows are read as lists and written by what has changed. */
export interface Shape<Row> extends RowShape<Row> {
  /** Whether a row will be asked for again soon. */
  readonly isHot: (row: Row) => boolean;
}

/** The ways in which operations use statements. */
export class Access {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  run(name: string, ...params: SqlValue[]): void {
    this.#sql.run(name, ...params);
  }

  rows<Row>(name: string, ...params: SqlValue[]): Row[] {
    return this.#sql.all(name, ...params) as Row[];
  }

  one<Row>(name: string, ...params: SqlValue[]): Row | null {
    return (this.#sql.all(name, ...params)[0] as Row) ?? null;
  }

  /** Runs a statement over a list, unless it is empty. */
  many(name: string, list: readonly unknown[]): void {
    if (list.length > 0) this.#sql.run(name, JSON.stringify(list));
  }

  /** Rows that a statement returns as one JSON list; how they were is remembered for `save`. */
  listed<Row extends object>(
    toRow: (list: readonly unknown[]) => Row,
    name: string,
    ...params: SqlValue[]
  ): Row[] {
    const lists = JSON.parse(this.#sql.all(name, ...params)[0]?.list as string) as unknown[][];
    return lists.map((list) => this.#made(toRow(list), list));
  }

  /** Rows by key, from memory where they are known. */
  byKeys<Row extends object>(shape: Shape<Row>, name: string, keys: readonly number[]): Row[] {
    const cache = this.#sql.caches?.[shape.table];
    const rows: Row[] = [];
    const missing: number[] = [];
    for (const key of keys) {
      const list = cache?.get(key);
      if (list === undefined) missing.push(key);
      else rows.push(this.#made(shape.toRow(list), list));
    }
    return missing.length === 0
      ? rows
      : [...rows, ...this.listed(shape.toRow, name, JSON.stringify(missing))];
  }

  /** Writes what differs from what was read or inserted. */
  save<Row extends { key: number }>(shape: Shape<Row>, rows: readonly Row[]): void {
    const { table, changing } = shape;
    const cache = this.#sql.caches?.[table];
    const changes: ChangedRow[] = [];
    for (const row of rows) {
      const list = shape.toList(row);
      const changed = changesOf(this.#sql.loaded.get(row), list, changing);
      if (changed > 0) changes.push({ key: row.key, list, changed });
      cache?.put(row.key, shape.isHot(row) ? list : null);
    }
    for (const { sql, params } of updateStatements(shape, changes)) {
      this.#sql.runText(`${table}.save`, sql, params);
    }
  }

  /** Rows were removed; nothing remembered can be relied on. */
  forget(): void {
    this.#sql.caches?.runs.clear();
    this.#sql.caches?.task_runs.clear();
  }

  #made<Row extends object>(row: Row, list: readonly unknown[]): Row {
    this.#sql.loaded.set(row, list);
    return row;
  }

  insertAll<Row extends object>(
    table: string,
    columns: readonly Column<Row>[],
    rows: readonly Row[],
    isIgnoring = false,
  ): void {
    if (rows.length === 0) return;
    const { sql, params } = insertStatement(table, columns, rows, isIgnoring);
    this.#sql.runText(`${table}.insert`, sql, params);
  }

  /** Inserts rows and gives their keys: one statement of one writer numbers its rows without a gap. */
  insertKeyed<Row extends object>(
    shape: Shape<Row>,
    columns: readonly Column<Row>[],
    rows: readonly Row[],
  ): number[] {
    this.insertAll(shape.table, columns, rows);
    const last = this.one<{ key: number }>('rows.last_key')?.key ?? 0;
    const cache = this.#sql.caches?.[shape.table];
    return rows.map((row, index) => {
      const key = last - rows.length + 1 + index;
      const list = shape.toList(row);
      list[KEY] = key;
      this.#sql.loaded.set(row, list);
      cache?.put(key, list);
      return key;
    });
  }
}
