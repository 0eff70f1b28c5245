/**
 * Runs as this process last left them, with the tasks that are not over and the edges below these. A run's lock covers all that
 * belongs to it, and whoever changes something of a run writes its row. So what is remembered of a run is true as long as the last
 * writer of its row is the one remembered, which every lock tells (docs/decisions/0011). A lost transaction needs no forgetting.
 */

/** Column values of a row, in order. */
export type List = readonly unknown[];

/** A run as one transaction left it. */
export interface RememberedRun {
  /** The transaction that wrote the row last, as `xmin` tells it. */
  readonly writer: string;
  readonly list: List;
  readonly tasks: Map<number, List>;
  /** All children of a task, in order. */
  readonly below: Map<number, readonly number[]>;
}

/** The most tasks that are remembered; beyond that the memory starts afresh. */
const TASKS_MAX = 20_000;
/** One stale run would undo a transaction of many: a process that has met the work of others is careful for this long. */
const SHARED_MS = 1_000;

/** What one process remembers of runs. */
export class RunMemory {
  readonly #runs = new Map<number, RememberedRun>();
  readonly #runOfTask = new Map<number, number>();
  #sharedUntil = 0;

  get(run_key: number): RememberedRun | undefined {
    return this.#runs.get(run_key);
  }

  /** The run of a task that is remembered. */
  runOf(task_key: number): number | undefined {
    return this.#runOfTask.get(task_key);
  }

  /** A run was found as somebody else has left it. */
  meetOthers(): void {
    this.#sharedUntil = performance.now() + SHARED_MS;
  }

  /** Whether what is remembered may be relied on before it is proven; of many runs only where nobody else has been met lately. */
  mayPresume(run_keys: ReadonlySet<number>): boolean {
    return run_keys.size === 1 || performance.now() >= this.#sharedUntil;
  }

  forget(run_keys: Iterable<number>): void {
    for (const key of run_keys) {
      for (const task_key of this.#runs.get(key)?.tasks.keys() ?? []) this.#runOfTask.delete(task_key);
      this.#runs.delete(key);
    }
  }

  /** A transaction has committed: what it knows of its runs is what others would read. */
  absorb(views: Iterable<RunView>, xid: string): void {
    // The low half of the number: this is what `xmin` shows.
    const writer = String(Number(xid) % 2 ** 32);
    for (const view of views) this.#absorbOne(view, view.isWritten ? writer : view.writer);
    if (this.#runOfTask.size <= TASKS_MAX) return;
    this.#runs.clear();
    this.#runOfTask.clear();
  }

  #absorbOne(view: RunView, writer: string): void {
    const { key, list, before } = view;
    if (view.isOver || before === null) this.forget([key]);
    if (view.isOver) return;
    const { tasks, below } = before ?? {
      tasks: new Map<number, List>(),
      below: new Map<number, readonly number[]>(),
    };
    this.#runs.set(key, { writer, list, tasks, below });
    for (const [task_key, children] of view.below ?? []) below.set(task_key, children);
    for (const [task_key, task] of view.tasks) {
      if (task === null) {
        tasks.delete(task_key);
        below.delete(task_key);
        this.#runOfTask.delete(task_key);
      } else {
        tasks.set(task_key, task);
        this.#runOfTask.set(task_key, key);
      }
    }
  }
}

/** What a transaction knows of a run that it holds. */
export class RunView {
  readonly key: number;
  /** The last writer before this transaction. */
  readonly writer: string;
  /** What the process remembers of it, when that is true. */
  readonly before: RememberedRun | null;
  list: List;
  isWritten = false;
  isOver = false;
  /** Tasks that were read or written here; null is one that is over. */
  readonly tasks = new Map<number, List | null>();
  /** Children of tasks that were made or linked here; most transactions make none. */
  below: Map<number, number[]> | null = null;

  constructor(list: List, writer: string, before: RememberedRun | null) {
    this.key = list[0] as number;
    this.list = list;
    this.writer = writer;
    this.before = before;
  }

  /** A task as this transaction would read it, if it is known. */
  task(key: number): List | undefined {
    const own = this.tasks.get(key);
    return own === undefined ? this.before?.tasks.get(key) : (own ?? undefined);
  }

  /** All children of a task, in order, if they are known. */
  childrenOf(parent: number): readonly number[] | undefined {
    return this.below?.get(parent) ?? this.before?.below.get(parent);
  }

  /** A task was made, which has no children yet. */
  add(parent: number): void {
    this.below ??= new Map();
    this.below.set(parent, []);
  }

  /** An edge was added. */
  link(parent: number, child: number): void {
    const own = this.below?.get(parent);
    if (own !== undefined) own.push(child);
    else {
      const known = this.before?.below.get(parent);
      if (known === undefined) return;
      this.below ??= new Map();
      this.below.set(parent, [...known, child]);
    }
  }
}
