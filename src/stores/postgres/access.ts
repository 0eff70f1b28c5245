/** How operations use a transaction: rows by key under their run's lock, rows saved by what has changed. */

import { type ChangedRow, changesOf } from '../row-groups.ts';
import { type RowShape, RUN_SHAPE, TASK_SHAPE } from '../row-shapes.ts';
import type { RunRow, TaskRow } from '../rows.ts';
import type { Command, Lists } from './batch.ts';
import { insertStatement, updateStatements } from './row-statements.ts';
import { traceTask } from './task-traces.ts';
import type { Transaction } from './transaction.ts';
import type { Value } from './values.ts';

/** The place of the key in a list. */
const KEY = 0;
const RUN_COLUMN_COUNT = RUN_SHAPE.columns.length;
const TASK_RUN_KEY = TASK_SHAPE.columns.indexOf('run_key');
/** With few parents, the rows of up to this many children come along: the next question is always for them. */
export const PARENTS_FEW = 16;
export const CHILDREN_AHEAD = 32;
/** Inserts take at most this many rows at once, so that a parameter keeps a sane size. */
const INSERT_ROWS_MAX = 10_000;

/** The ways in which operations reach rows. */
export class Access {
  readonly transaction: Transaction;
  /** Rows that came along with another answer; good while their run is held and nobody here has written them. */
  readonly #ahead = new Map<number, readonly unknown[]>();
  readonly #runOfTask = new Map<number, number>();
  /** All edges below a few tasks that were read first; whoever settles them asks for these next. */
  #below: { readonly parents: ReadonlySet<number>; readonly edges: Lists } | null = null;

  constructor(transaction: Transaction) {
    this.transaction = transaction;
  }

  get #locks(): Transaction['locks'] {
    return this.transaction.locks;
  }

  // ── Runs ───────────────────────────────────────────────────────────────────────────────────────────────────

  async runsByKeys(keys: readonly number[]): Promise<RunRow[]> {
    const { transaction } = this;
    if (!transaction.isWriter) return this.made(RUN_SHAPE, await transaction.lists('runs.by_keys', keys));
    const unknown = keys.filter((key) => this.#locks.listOf(key) === undefined);
    if (unknown.length > 0) {
      const [locked = []] = await transaction.read(this.#lock(unknown));
      this.#locks.accept(locked, RUN_COLUMN_COUNT);
      this.#locks.require(unknown);
    }
    return this.made(
      RUN_SHAPE,
      keys.flatMap((key) => {
        const list = this.#locks.listOf(key);
        return list === undefined ? [] : [list];
      }),
    );
  }

  /** Takes runs if nobody holds them. */
  async lockFree(keys: readonly number[], ...commands: readonly Command[]): Promise<readonly Lists[]> {
    const unknown = [...new Set(keys)].filter((key) => this.#locks.listOf(key) === undefined);
    if (unknown.length === 0) return commands.length === 0 ? [] : this.transaction.read(...commands);
    const [locked = [], ...results] = await this.transaction.read(
      this.transaction.command('runs.lock_free', unknown),
      ...commands,
    );
    this.#locks.accept(locked, RUN_COLUMN_COUNT);
    return results;
  }

  #lock(keys: readonly number[]): Command {
    if (!this.#locks.mayWait) return this.transaction.command('runs.lock_free', keys);
    this.#locks.await(keys);
    return this.transaction.command('runs.lock', keys);
  }

  // ── Tasks ──────────────────────────────────────────────────────────────────────────────────────────────────

  async tasksByKeys(keys: readonly number[]): Promise<TaskRow[]> {
    const { transaction } = this;
    if (!transaction.isWriter) return this.made(TASK_SHAPE, await transaction.lists('tasks.by_keys', keys));
    const known: (readonly unknown[])[] = [];
    const missing: number[] = [];
    for (const key of keys) {
      const list = this.#ahead.get(key);
      if (list !== undefined && this.#locks.holds(list[TASK_RUN_KEY] as number)) known.push(list);
      else missing.push(key);
    }
    const found = missing.length === 0 ? [] : await this.#readTasks(missing);
    return this.made(TASK_SHAPE, [...known, ...found]);
  }

  async #readTasks(keys: readonly number[]): Promise<Lists> {
    const { transaction } = this;
    const runs = new Set(keys.map((key) => this.#runOfTask.get(key) ?? 0));
    const read = transaction.command('tasks.by_keys', keys);
    if ([...runs].every((key) => this.#locks.holds(key))) {
      const [lists = []] = await this.lockFree([...runs], read);
      return lists;
    }
    const { mayWait } = this.#locks;
    if (mayWait) this.#locks.await([]);
    const lock = transaction.command(mayWait ? 'runs.lock_of_tasks' : 'runs.lock_free_of_tasks', keys);
    const ahead = keys.length > PARENTS_FEW ? [] : this.#askBelow(keys);
    const [locked = [], lists = [], edges, children] = await transaction.read(lock, read, ...ahead);
    this.#locks.accept(locked, RUN_COLUMN_COUNT);
    this.#requireRunsOf(lists, mayWait);
    if (edges !== undefined && edges.length <= CHILDREN_AHEAD) {
      this.#below = { parents: new Set(keys), edges };
      this.keepAhead(children ?? []);
    }
    return lists;
  }

  #askBelow(keys: readonly number[]): readonly Command[] {
    return [
      this.transaction.command('tasks.children_of', keys, 0, CHILDREN_AHEAD + 1),
      this.transaction.command('tasks.children_rows', keys, 0, CHILDREN_AHEAD),
    ];
  }

  /** The edges below tasks, when they came along with the tasks. */
  edgesBelow(parents: readonly number[]): Lists | null {
    const below = this.#below;
    if (below === null || !parents.every((key) => below.parents.has(key))) return null;
    const wanted = new Set(parents);
    return below.edges.filter(([parent]) => wanted.has(parent as number));
  }

  /** Edges were added. */
  forgetEdges(): void {
    this.#below = null;
  }

  #requireRunsOf(lists: Lists, hasWaited: boolean): void {
    const runs = new Set(lists.map((list) => list[TASK_RUN_KEY] as number));
    if (hasWaited) this.#locks.await(runs);
    this.#locks.require(runs);
  }

  /** Tasks of one run, read under its lock. */
  async tasksOfRun(run_key: number, name: string, ...values: readonly Value[]): Promise<TaskRow[]> {
    const { transaction } = this;
    const read = transaction.command(name, ...values);
    if (!transaction.isWriter || this.#locks.holds(run_key)) {
      const [lists = []] = await transaction.read(read);
      return this.made(TASK_SHAPE, lists);
    }
    const [locked = [], lists = []] = await transaction.read(this.#lock([run_key]), read);
    this.#locks.accept(locked, RUN_COLUMN_COUNT);
    this.#locks.require([run_key]);
    return this.made(TASK_SHAPE, lists);
  }

  /**
   * Tasks of any runs. A writer looks, takes the locks, and looks again: what it returns is true until it commits. Where work is
   * picked, tasks of runs that somebody else holds are left out; elsewhere they are waited for.
   */
  async tasksAnywhere(mode: 'pick' | 'wait', name: string, ...values: readonly Value[]): Promise<TaskRow[]> {
    const { transaction } = this;
    const first = await transaction.lists(name, ...values);
    const runs = [...new Set(first.map((list) => list[TASK_RUN_KEY] as number))];
    if (!transaction.isWriter || runs.every((key) => this.#locks.holds(key)))
      return this.made(TASK_SHAPE, first);
    const again = transaction.command(name, ...values);
    if (mode === 'pick') {
      const [lists = []] = await this.lockFree(runs, again);
      const isOurs = (list: readonly unknown[]): boolean => this.#locks.holds(list[TASK_RUN_KEY] as number);
      return this.made(TASK_SHAPE, lists.filter(isOurs));
    }
    const unknown = runs.filter((key) => !this.#locks.holds(key));
    const [locked = [], lists = []] = await transaction.read(this.#lock(unknown), again);
    this.#locks.accept(locked, RUN_COLUMN_COUNT);
    this.#requireRunsOf(lists, false);
    return this.made(TASK_SHAPE, lists);
  }

  /** Says whose run a task is of, so that it need not be asked. */
  noteRun(task_key: number, run_key: number): void {
    this.#runOfTask.set(task_key, run_key);
    this.#locks.add(run_key);
  }

  /** Keeps rows that came along for the moment they are asked for. */
  keepAhead(lists: Lists): void {
    for (const list of lists) this.#ahead.set(list[0] as number, list);
  }

  // ── Rows ───────────────────────────────────────────────────────────────────────────────────────────────────

  made<Row extends object>(shape: RowShape<Row>, lists: Lists): Row[] {
    return lists.map((list) => {
      const row = shape.toRow(list);
      this.transaction.loaded.set(row, list);
      return row;
    });
  }

  /** Writes what differs from what was read, and keeps the side tables of tasks in step. */
  save<Row extends { key: number }>(shape: RowShape<Row>, rows: readonly Row[]): void {
    const { loaded } = this.transaction;
    const changes: ChangedRow[] = [];
    const tracks = traceTask();
    for (const row of rows) {
      const list = shape.toList(row);
      const before = loaded.get(row);
      const changed = changesOf(before, list, shape.changing);
      if (changed > 0) changes.push({ key: row.key, list, changed });
      loaded.set(row, list);
      if (shape.table === 'runs') this.#locks.update(row.key, list);
      else {
        this.#ahead.delete(row.key);
        tracks.follow(before, list);
      }
    }
    for (const statement of updateStatements(shape, changes))
      this.transaction.laterBuilt(`${shape.table}.save`, statement);
    tracks.write(this.transaction);
  }

  /** Inserts rows whose keys nobody asks for. */
  insert<Row extends object>(
    table: string,
    columns: readonly (keyof Row & string)[],
    rows: readonly Row[],
    tail = '',
  ): void {
    for (let from = 0; from < rows.length; from += INSERT_ROWS_MAX) {
      const part = rows.slice(from, from + INSERT_ROWS_MAX);
      this.transaction.laterBuilt(`${table}.insert`, insertStatement(table, columns, part, tail));
    }
  }

  /** Inserts rows and gives their keys, in the order of the rows. */
  async insertKeyed<Row extends { readonly id: string }>(
    shape: RowShape<Row>,
    columns: readonly (keyof Row & string)[],
    rows: readonly Row[],
  ): Promise<number[]> {
    const keyOf = new Map<unknown, number>();
    for (let from = 0; from < rows.length; from += INSERT_ROWS_MAX) {
      const part = rows.slice(from, from + INSERT_ROWS_MAX);
      const statement = insertStatement(
        shape.table,
        columns,
        part,
        'returning key, id, pg_current_xact_id()::text',
      );
      const [lists = []] = await this.transaction.read(
        this.transaction.built(`${shape.table}.insert`, statement),
      );
      for (const [key, id, xid] of lists) {
        keyOf.set(id, key as number);
        this.#locks.xid = xid as string;
      }
    }
    return rows.map((row) => {
      const key = keyOf.get(row.id) ?? 0;
      const list = shape.toList(row);
      list[KEY] = key;
      this.transaction.loaded.set(row, list);
      return key;
    });
  }
}
