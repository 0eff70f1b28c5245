/** How operations use a transaction: rows by key under their run's lock, from memory where they are known, saved by what has changed. */
import { isTerminal, type RunStatus, type TaskStatus } from '../../domain/states.ts';
import { RUN_NEW, TASK_NEW } from '../columns.ts';
import { type ChangedRow, changesOf } from '../row-groups.ts';
import { type RowShape, RUN_SHAPE, TASK_SHAPE } from '../row-shapes.ts';
import type { RunRow, TaskRow } from '../rows.ts';
import type { Command, Lists } from './batch.ts';
import { insertStatement, updateStatements } from './row-statements.ts';
import { type List, RunView } from './run-memory.ts';
import { traceTask } from './task-traces.ts';
import type { Transaction } from './transaction.ts';
import type { Value } from './values.ts';

/** The place of the key in a list. */
const KEY = 0;
const RUN_STATUS = RUN_SHAPE.columns.indexOf('status');
const TASK_RUN_KEY = TASK_SHAPE.columns.indexOf('run_key');
const TASK_STATUS = TASK_SHAPE.columns.indexOf('status');
/** With few parents, the rows of up to this many children come along: the next question is always for them. */
export const PARENTS_FEW = 16;
export const CHILDREN_AHEAD = 32;
/** Inserts take at most this many rows at once, so that a parameter keeps a sane size. */
const INSERT_ROWS_MAX = 10_000;

/** What a lock is for: runs by key, and the runs of tasks of which only the key is known. */
interface Meant {
  readonly runs: readonly number[];
  readonly tasks: readonly number[];
}

/** The ways in which operations reach rows. */
export class Access {
  readonly transaction: Transaction;
  /** What is known of the runs that are held. */
  readonly #views = new Map<number, RunView>();
  readonly #runOfTask = new Map<number, number>();
  /** Runs of which something has changed. */
  readonly #changed = new Set<number>();
  /** Rows that came along with another answer; good while their run is held and nobody here has written them. */
  readonly #ahead = new Map<number, List>();
  /** All edges below a few tasks that were read first; whoever settles them asks for these next. */
  #below: { readonly parents: ReadonlySet<number>; readonly edges: Lists } | null = null;

  /** Rows whose keys are given out and which are not written yet, each with its list as it was then. */
  readonly #fresh = { runs: new Map<object, List>(), task_runs: new Map<object, List>() };

  constructor(transaction: Transaction) {
    this.transaction = transaction;
    transaction.beforeRead = () => this.#writeFresh();
  }

  get #locks(): Transaction['locks'] {
    return this.transaction.locks;
  }

  get #memory(): Transaction['memory'] {
    return this.transaction.memory;
  }

  // ── Runs ───────────────────────────────────────────────────────────────────────────────────────────────────

  async runsByKeys(keys: readonly number[]): Promise<RunRow[]> {
    const { transaction } = this;
    if (!transaction.isWriter) return this.made(RUN_SHAPE, await transaction.lists('runs.by_keys', keys));
    const unknown = keys.filter((key) => !this.#views.has(key));
    if (unknown.length > 0) {
      const [locked = []] = await transaction.read(this.#lock({ runs: unknown, tasks: [] }));
      this.#accept(locked);
      this.#locks.require(unknown);
    }
    return this.made(
      RUN_SHAPE,
      keys.flatMap((key) => {
        const view = this.#views.get(key);
        return view === undefined ? [] : [view.list];
      }),
    );
  }

  /** Takes runs if nobody holds them. */
  async lockFree(keys: readonly number[], ...commands: readonly Command[]): Promise<readonly Lists[]> {
    const unknown = [...new Set(keys)].filter((key) => !this.#views.has(key));
    if (unknown.length === 0) return commands.length === 0 ? [] : this.transaction.read(...commands);
    const lock = this.#ask('runs.lock_free', { runs: unknown, tasks: [] });
    const [locked = [], ...results] = await this.transaction.read(lock, ...commands);
    this.#accept(locked);
    return results;
  }

  /** A lock that waits, if it may; otherwise it takes what is free. */
  #lock(meant: Meant): Command {
    if (!this.#locks.mayWait) return this.#ask('runs.lock_free', meant);
    this.#locks.await(meant.runs);
    return this.#ask('runs.lock', meant);
  }

  #ask(name: string, { runs, tasks }: Meant): Command {
    const writers = runs.map((key) => this.#memory?.get(key)?.writer ?? '');
    return this.transaction.command(name, tasks, runs, writers);
  }

  /** Takes in what a lock has told: each run with its last writer, our own number, and the row unless it is as we knew it. */
  #accept(lists: Lists): void {
    for (const [key, writer, xid, text] of lists as readonly [number, string, string, string | null][]) {
      this.#locks.accept(key, writer, xid);
      if (this.#views.has(key)) continue;
      const known = this.#memory?.get(key);
      if (known?.writer === writer) this.#views.set(key, new RunView(known.list, writer, known));
      else if (text !== null) {
        this.#memory?.meetOthers();
        this.#views.set(key, new RunView(JSON.parse(text) as List, writer, null));
      }
    }
  }

  // ── Tasks ──────────────────────────────────────────────────────────────────────────────────────────────────

  async tasksByKeys(keys: readonly number[]): Promise<TaskRow[]> {
    const { transaction } = this;
    if (!transaction.isWriter) return this.made(TASK_SHAPE, await transaction.lists('tasks.by_keys', keys));
    const { unread, remembered } = this.#split(keys);
    const runs = new Set(remembered.map((key) => this.#memory?.runOf(key) ?? 0));
    if (unread.length === 0 && runs.size > 0 && this.#mayPresume(runs)) this.#presume([...runs]);
    else if (unread.length > 0 || runs.size > 0) await this.#lockAndRead(unread, [...runs]);
    // What was remembered of a run that somebody else has written since is read now.
    const stale = remembered.filter((key) => this.#known(key) === undefined);
    if (stale.length > 0) this.#keep(await transaction.lists('tasks.by_keys', stale));
    return this.made(
      TASK_SHAPE,
      keys.flatMap((key) => {
        const list = this.#known(key);
        return list === undefined ? [] : [list];
      }),
    );
  }

  /** Tasks that are to be read, and those of runs that are to be locked but may be as they are remembered. */
  #split(keys: readonly number[]): { unread: number[]; remembered: number[] } {
    const unread: number[] = [];
    const remembered: number[] = [];
    for (const key of keys) {
      if (this.#known(key) !== undefined) continue;
      const run_key = this.#memory?.runOf(key);
      if (run_key === undefined || this.#views.has(run_key)) unread.push(key);
      else remembered.push(key);
    }
    return { unread, remembered };
  }

  /** A task of a held run as this transaction would read it. */
  #known(key: number): List | undefined {
    const run_key = this.#runOfTask.get(key) ?? this.#memory?.runOf(key);
    const view = run_key === undefined ? undefined : this.#views.get(run_key);
    if (view !== undefined) return view.task(key) ?? this.#aheadOf(key);
    return this.#aheadOf(key);
  }

  #aheadOf(key: number): List | undefined {
    const list = this.#ahead.get(key);
    return list !== undefined && this.#views.has(list[TASK_RUN_KEY] as number) ? list : undefined;
  }

  /** Whether runs may be taken for what is remembered of them, to be proven right by a statement that travels with the next ones. */
  #mayPresume(runs: ReadonlySet<number>): boolean {
    return this.#locks.mayWait && this.#locks.mayRestart && this.#memory?.mayPresume(runs) === true;
  }

  #presume(keys: readonly number[]): void {
    const known = keys.flatMap((key) => this.#memory?.get(key) ?? []);
    this.#locks.await(keys);
    for (const run of known) {
      this.#locks.add(run.list[KEY] as number);
      this.#views.set(run.list[KEY] as number, new RunView(run.list, run.writer, run));
    }
    this.transaction.expect(
      keys,
      known.map(({ writer }) => writer),
    );
  }

  /** Locks runs, those of tasks too, and reads the tasks. */
  async #lockAndRead(tasks: readonly number[], runs: readonly number[]): Promise<void> {
    const { transaction } = this;
    const noted = new Set(tasks.map((key) => this.#runOfTask.get(key) ?? this.#memory?.runOf(key) ?? 0));
    const read = (): Command => transaction.command('tasks.by_keys', tasks);
    if (runs.length === 0 && [...noted].every((key) => this.#locks.holds(key))) {
      const [lists = []] = await this.lockFree([...noted], read());
      this.#keep(lists);
      return;
    }
    const { mayWait } = this.#locks;
    const lock = this.#lock({ runs, tasks });
    const ahead = runs.length > 0 || tasks.length > PARENTS_FEW ? [] : this.#askBelow(tasks);
    const reads = tasks.length === 0 ? [] : [read(), ...ahead];
    const [locked = [], lists = [], edges, children] = await transaction.read(lock, ...reads);
    this.#accept(locked);
    this.#locks.require(runs);
    this.#requireRunsOf(lists, mayWait);
    this.#keep(lists);
    if (edges !== undefined && edges.length <= CHILDREN_AHEAD) {
      this.#below = { parents: new Set(tasks), edges };
      this.keepAhead(children ?? []);
    }
  }

  /** Tasks that were read under their run's lock. */
  #keep(lists: Lists): void {
    for (const list of lists) {
      const key = list[KEY] as number;
      const run_key = list[TASK_RUN_KEY] as number;
      this.#runOfTask.set(key, run_key);
      if (isTerminal(list[TASK_STATUS] as TaskStatus)) this.#ahead.set(key, list);
      else this.#views.get(run_key)?.tasks.set(key, list);
    }
  }

  #askBelow(keys: readonly number[]): readonly Command[] {
    return [
      this.transaction.command('tasks.children_of', keys, 0, CHILDREN_AHEAD + 1),
      this.transaction.command('tasks.children_rows', keys, 0, CHILDREN_AHEAD),
    ];
  }

  /** The edges below tasks in the order of the children, when they are remembered or came along with the tasks. */
  edgesBelow(parents: readonly number[]): Lists | null {
    const remembered = this.#rememberedBelow(parents);
    if (remembered !== null) return remembered;
    const below = this.#below;
    if (below === null || !parents.every((key) => below.parents.has(key))) return null;
    const wanted = new Set(parents);
    return below.edges.filter(([parent]) => wanted.has(parent as number));
  }

  #rememberedBelow(parents: readonly number[]): Lists | null {
    const edges: [number, number][] = [];
    for (const parent of parents) {
      const run_key = this.#runOfTask.get(parent) ?? this.#memory?.runOf(parent);
      const children = run_key === undefined ? undefined : this.#views.get(run_key)?.childrenOf(parent);
      if (children === undefined) return null;
      for (const child of children) edges.push([parent, child]);
    }
    return edges.sort((a, b) => a[1] - b[1] || a[0] - b[0]);
  }

  /** Edges were added. */
  link(edges: readonly (readonly [parent: number, child: number])[]): void {
    this.#below = null;
    for (const [parent, child] of edges) {
      const run_key = this.#runOfTask.get(parent) ?? this.#memory?.runOf(parent);
      if (run_key !== undefined) this.#views.get(run_key)?.link(parent, child);
    }
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
    const [locked = [], lists = []] = await transaction.read(
      this.#lock({ runs: [run_key], tasks: [] }),
      read,
    );
    this.#accept(locked);
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
    const [locked = [], lists = []] = await transaction.read(this.#lock({ runs: unknown, tasks: [] }), again);
    this.#accept(locked);
    this.#requireRunsOf(lists, false);
    return this.made(TASK_SHAPE, lists);
  }

  /** Says whose run a task is of, so that it need not be asked; the run was locked on the way. */
  noteRun(task_key: number, run_key: number): void {
    this.#runOfTask.set(task_key, run_key);
    this.#locks.add(run_key);
  }

  /** A run that was locked on the way, with its last writer and our number. */
  noteLocked(run_key: number, writer: string, xid: string): void {
    if (this.#views.has(run_key)) return;
    this.#locks.accept(run_key, writer, xid);
    const known = this.#memory?.get(run_key);
    if (known?.writer === writer) this.#views.set(run_key, new RunView(known.list, writer, known));
  }

  /** Keeps rows that came along for the moment they are asked for. */
  keepAhead(lists: Lists): void {
    for (const list of lists) this.#ahead.set(list[0] as number, list);
  }

  /** Runs were removed. */
  forget(keys: readonly number[]): void {
    this.#memory?.forget(keys);
    for (const key of keys) {
      this.#views.delete(key);
      this.#changed.delete(key);
    }
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
    this.#writeFresh();
    for (const row of rows) {
      const list = shape.toList(row);
      const before = loaded.get(row);
      const changed = changesOf(before, list, shape.changing);
      if (changed > 0) changes.push({ key: row.key, list, changed });
      loaded.set(row, list);
      if (shape.table === 'runs') this.#noteRunRow(row.key, list, changed > 0);
      else {
        if (changed > 0) this.#noteTaskRow(row.key, list);
        tracks.follow(before, list);
      }
    }
    const [first] = changes;
    for (const statement of updateStatements(shape, changes)) {
      if (shape.table === 'runs' && changes.length === 1 && first)
        this.transaction.laterRun(first.key, statement);
      else this.transaction.laterBuilt(`${shape.table}.save`, statement);
    }
    tracks.write(this.transaction);
  }

  #noteRunRow(key: number, list: List, isWritten: boolean): void {
    const view = this.#views.get(key);
    if (view === undefined) return;
    view.list = list;
    view.isWritten ||= isWritten;
    view.isOver = isTerminal(list[RUN_STATUS] as RunStatus);
  }

  #noteTaskRow(key: number, list: List): void {
    const run_key = list[TASK_RUN_KEY] as number;
    this.#ahead.delete(key);
    this.#changed.add(run_key);
    this.#runOfTask.set(key, run_key);
    this.#views.get(run_key)?.tasks.set(key, isTerminal(list[TASK_STATUS] as TaskStatus) ? null : list);
    const { sample } = this.transaction;
    if (sample === null || sample.key === key) this.transaction.sample = { key, list };
  }

  /** Sees to it that every run of which something has changed is written: nobody may take what they remember of it for true. */
  touch(): void {
    this.#writeFresh();
    const untouched = [...this.#changed].filter((key) => this.#views.get(key)?.isWritten !== true);
    if (untouched.length === 0) return;
    this.transaction.later('runs.touch', untouched);
    for (const key of untouched) {
      const view = this.#views.get(key);
      if (view !== undefined) view.isWritten = true;
    }
  }

  /** The transaction is over. */
  end(isCommitted: boolean): void {
    const { xid } = this.#locks;
    if (isCommitted && xid !== null) this.#memory?.absorb(this.#views.values(), xid);
  }

  /** Inserts rows whose keys nobody asks for. */
  insert<Row extends object>(
    table: string,
    columns: readonly (keyof Row & string)[],
    rows: readonly Row[],
    tail = '',
    head = '',
  ): void {
    for (let from = 0; from < rows.length; from += INSERT_ROWS_MAX) {
      const part = rows.slice(from, from + INSERT_ROWS_MAX);
      this.transaction.laterBuilt(`${table}.insert`, insertStatement(table, columns, part, { head, tail }));
    }
  }

  /**
   * Gives new rows their keys, in order. They are written when somebody asks the store for something or saves rows of their table: by
   * then they have usually moved on, and are written once.
   */
  async insertKeyed<Row extends object>(shape: RowShape<Row>, rows: readonly Row[]): Promise<number[]> {
    if (rows.length === 0) return [];
    const [[keys, xid] = []] = (await this.transaction.ask(`${shape.table}.reserve`, rows.length)) as [
      string,
      string,
    ][];
    const reserved = keys?.split(',') ?? [];
    this.#locks.xid = xid ?? null;
    return rows.map((row, index) => {
      const key = Number(reserved[index]);
      const list = shape.toList(row);
      list[KEY] = key;
      this.transaction.loaded.set(row, list);
      this.#fresh[shape.table].set(row, list);
      this.#noteInserted(shape.table, key, list);
      return key;
    });
  }

  #writeFresh(): void {
    this.#insertFresh(RUN_SHAPE, RUN_NEW);
    this.#insertFresh(TASK_SHAPE, TASK_NEW);
  }

  #insertFresh<Row extends { key: number }>(
    shape: RowShape<Row>,
    columns: readonly (keyof Row & string)[],
  ): void {
    const fresh = this.#fresh[shape.table] as Map<Row, List>;
    if (fresh.size === 0) return;
    const written = new Set<keyof Row & string>(['key', ...columns]);
    const { loaded } = this.transaction;
    for (const [row, before] of fresh) {
      const list = shape.toList(row);
      for (const place of shape.changing)
        if (before[place] !== list[place]) written.add(shape.columns[place] as keyof Row & string);
      loaded.set(row, list);
      if (shape.table === 'runs') this.#noteRunRow(row.key, list, true);
      else this.#noteTaskRow(row.key, list);
    }
    this.insert(`${shape.table}`, [...written], [...fresh.keys()], '', 'overriding system value');
    if (shape.table === 'task_runs') {
      const tracks = traceTask();
      for (const [row, before] of fresh) tracks.follow(before, loaded.get(row) as List);
      tracks.write(this.transaction);
    }
    fresh.clear();
  }

  #noteInserted(table: RowShape<never>['table'], key: number, list: List): void {
    if (table === 'runs') {
      const view = new RunView(list, '', null);
      view.isWritten = true;
      this.#locks.add(key);
      this.#views.set(key, view);
      return;
    }
    this.#noteTaskRow(key, list);
    this.#views.get(list[TASK_RUN_KEY] as number)?.add(key);
  }
}
