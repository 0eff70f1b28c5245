/**
 * The lock order (docs/decisions/0006): a transaction waits for runs once, with its first lock and in key order. Runs it comes
 * to need later are taken only if nobody holds them; else the transaction starts again and waits for all it knows of at once.
 * So no two transactions ever wait for each other, and whoever changes a task holds its run.
 */
import type { Lists } from './batch.ts';

/** The transaction must start again and lock these runs first. */
export class LockConflict extends Error {
  override readonly name = 'LockConflict';
  readonly keys: readonly number[];

  constructor(keys: readonly number[]) {
    super('a run is held by another transaction');
    this.keys = keys;
  }
}

/** A writer that is this much ahead is taken for one of another age of the transaction counter. */
const AHEAD_MAX = 1_000_000;

/** The runs that one transaction holds. */
export class RunLocks {
  /** The transaction's number, once it has one. */
  xid: string | null = null;
  readonly #held = new Set<number>();
  readonly #lists = new Map<number, readonly unknown[]>();
  /** Runs that were waited for: one of these that is not held does not exist. */
  readonly #awaited = new Set<number>();
  readonly #mayRestart: boolean;
  #hasWaited = false;

  constructor(mayRestart: boolean) {
    this.#mayRestart = mayRestart;
  }

  /** Whether the next lock may wait. */
  get mayWait(): boolean {
    return !this.#mayRestart || (!this.#hasWaited && this.#held.size === 0);
  }

  holds(key: number): boolean {
    return this.#held.has(key);
  }

  get held(): readonly number[] {
    return [...this.#held];
  }

  /** The row of a held run as this transaction left it, when it is known. */
  listOf(key: number): readonly unknown[] | undefined {
    return this.#lists.get(key);
  }

  /** A run of this very transaction, or one that a statement has locked on its way. */
  add(key: number): void {
    this.#held.add(key);
  }

  /** A held run was written. */
  update(key: number, list: readonly unknown[]): void {
    if (this.#held.has(key)) this.#lists.set(key, list);
  }

  /** Notes that a lock waits for these runs. */
  await(keys: Iterable<number>): void {
    this.#hasWaited = true;
    for (const key of keys) this.#awaited.add(key);
  }

  /**
   * Takes in what a lock statement returned: rows, each with its last writer and our own number behind it. A run that was
   * written by a transaction with a higher number would get its events in the wrong order, so that we start again with a new one.
   */
  accept(lists: Lists, columns: number): void {
    for (const list of lists) {
      const key = list[0] as number;
      this.#held.add(key);
      if (!this.#lists.has(key)) this.#lists.set(key, list.slice(0, columns));
      this.xid = list[columns + 1] as string;
      const ahead = Number((BigInt(list[columns] as string) - BigInt(this.xid)) & 0xffffffffn);
      if (this.#mayRestart && ahead > 0 && ahead < AHEAD_MAX) throw new LockConflict(this.held);
    }
  }

  /** Every one of these is ours, or the transaction starts again. */
  require(keys: Iterable<number>): void {
    const missing = [...keys].filter((key) => !this.#held.has(key) && !this.#awaited.has(key));
    if (missing.length > 0 && this.#mayRestart) throw new LockConflict([...this.#held, ...missing]);
  }
}
