/** How operations reach a connection: named statements, lists as one JSON array, rows as one JSON list. */
import { type ChangedRow, changesOf } from '../row-groups.ts';
import type { RowShape } from '../row-shapes.ts';
import type { ChildCache } from './child-cache.ts';
import type { SqlRow, SqlValue } from './driver.ts';
import type { RowCache } from './row-cache.ts';
import { type Insert, insertStatement, type Update, updateStatements } from './row-statements.ts';

/** Runs statements on one connection. */
export interface Statements {
  all(name: string, ...params: SqlValue[]): SqlRow[];
  /** The first value of the first row. */
  value(name: string, ...params: SqlValue[]): SqlValue | undefined;
  run(name: string, ...params: SqlValue[]): void;
  /** Runs a statement that was put together; `name` is for whoever counts statements. */
  runText(name: string, sql: string, params: readonly SqlValue[]): void;
  /** What this connection has read or written lately; only a writer has it. */
  readonly caches: Caches | null;
}

/** What is remembered between transactions. */
interface Caches {
  readonly runs: RowCache;
  readonly task_runs: RowCache;
  readonly children: ChildCache;
}

/** The place of the key in a list. */
const KEY = 0;

/** A table whose rows are read as lists and written by what has changed. */
export interface Shape<Row> extends RowShape<Row>, Update {
  readonly table: 'runs' | 'task_runs';
  readonly insert: Insert<Row>;
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

  /** What a statement returns as one JSON list. */
  lists(name: string, ...params: SqlValue[]): readonly unknown[][] {
    return JSON.parse(this.#sql.value(name, ...params) as string) as unknown[][];
  }

  /** Rows that a statement returns as one JSON list; a writer remembers how they are, for `save`. */
  listed<Row>(shape: Shape<Row>, name: string, ...params: SqlValue[]): Row[] {
    const cache = this.#sql.caches?.[shape.table];
    return this.lists(name, ...params).map((list) => {
      cache?.put(list[KEY] as number, list);
      return shape.toRow(list);
    });
  }

  /** Rows by key, from memory where they are known. */
  byKeys<Row>(shape: Shape<Row>, name: string, keys: readonly number[]): Row[] {
    const cache = this.#sql.caches?.[shape.table];
    const rows: Row[] = [];
    const missing: number[] = [];
    for (const key of keys) {
      const list = cache?.get(key);
      if (list === undefined) missing.push(key);
      else rows.push(shape.toRow(list));
    }
    return missing.length === 0 ? rows : [...rows, ...this.listed(shape, name, JSON.stringify(missing))];
  }

  /** Writes what differs from what was read or inserted. */
  save<Row extends { key: number }>(shape: Shape<Row>, rows: readonly Row[]): void {
    const cache = this.#sql.caches?.[shape.table];
    const changes: ChangedRow[] = [];
    for (const row of rows) {
      const list = shape.toList(row);
      const changed = changesOf(cache?.get(row.key), list, shape.changing);
      if (changed > 0) changes.push({ key: row.key, list, changed });
      cache?.put(row.key, shape.isHot(row) ? list : null);
    }
    for (const { sql, params } of updateStatements(shape, changes)) {
      this.#sql.runText(`${shape.table}.save`, sql, params);
    }
  }

  /** Children of tasks, as far as a writer knows them. */
  get children(): ChildCache | null {
    return this.#sql.caches?.children ?? null;
  }

  /** Rows were removed; nothing remembered can be relied on. */
  forget(): void {
    for (const cache of Object.values(this.#sql.caches ?? {})) cache.clear();
  }

  insertAll<Row extends object>(insert: Insert<Row>, rows: readonly Row[]): void {
    if (rows.length === 0) return;
    const { sql, params } = insertStatement(insert, rows);
    this.#sql.runText(`${insert.table}.insert`, sql, params);
  }

  /** Inserts rows and gives their keys: one statement of one writer numbers its rows without a gap. */
  insertKeyed<Row extends object>(shape: Shape<Row>, rows: readonly Row[]): number[] {
    this.insertAll(shape.insert, rows);
    const last = Number(this.#sql.value('rows.last_key') ?? 0);
    const cache = this.#sql.caches?.[shape.table];
    return rows.map((row, index) => {
      const key = last - rows.length + 1 + index;
      const list = shape.toList(row);
      list[KEY] = key;
      cache?.put(key, list);
      return key;
    });
  }
}
