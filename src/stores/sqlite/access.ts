/** How operations reach a connection: named statements, lists as one JSON array, rows as one JSON list. */
import type { SqlRow, SqlValue } from './driver.ts';
import { insertStatement, updateStatements } from './row-statements.ts';

/** Runs statements on one connection. */
export interface Statements {
  all(name: string, ...params: SqlValue[]): SqlRow[];
  run(name: string, ...params: SqlValue[]): void;
  /** Runs a statement that was put together; `name` is for whoever counts statements. */
  runText(name: string, sql: string, params: readonly SqlValue[]): void;
  /** Rows that this transaction has read, each with the list it was made from. */
  readonly loaded: Map<object, readonly unknown[]>;
}

type Column<Row> = keyof Row & string;

/** What can change in a table's rows, and where each column stands in the list a row is read from. */
export interface Shape<Row> {
  readonly columns: readonly Column<Row>[];
  readonly indexOf: Readonly<Record<string, number>>;
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
    return lists.map((list) => {
      const row = toRow(list);
      this.#sql.loaded.set(row, list);
      return row;
    });
  }

  /** Writes what differs from what was read; a row that was inserted in this transaction is written whole. */
  save<Row extends { key: number }>(
    table: string,
    { columns, indexOf }: Shape<Row>,
    rows: readonly Row[],
  ): void {
    const changedIn = (row: Row): Column<Row>[] => {
      const before = this.#sql.loaded.get(row);
      return columns.filter((column) => before === undefined || before[indexOf[column] ?? 0] !== row[column]);
    };
    for (const { sql, params } of updateStatements(table, rows, changedIn)) {
      this.#sql.runText(`${table}.save`, sql, params);
    }
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
    table: string,
    columns: readonly Column<Row>[],
    rows: readonly Row[],
  ): number[] {
    this.insertAll(table, columns, rows);
    const last = this.one<{ key: number }>('rows.last_key')?.key ?? 0;
    return rows.map((_, index) => last - rows.length + 1 + index);
  }
}
