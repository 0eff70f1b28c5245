/**
 * The lock order (docs/decisions/0006): a transaction waits for runs once, with its first lock and in key order. Runs it comes
 * to need later are taken only if nobody holds them; else the transaction starts again and waits for all it knows of at once.
 * So no two transactions ever wait for each other, and whoever changes a task holds its run.
 */
/** The transaction must start again and lock these runs, and then these limits, first. */
export class LockConflict extends Error {
  override readonly name = 'LockConflict';
  readonly keys: readonly number[];
  readonly limits: readonly string[];

  constructor(keys: readonly number[], limits: readonly string[]) {
    super('a run or a limit is held by another transaction');
    this.keys = keys;
    this.limits = limits;
  }
}

/** A writer that is this much ahead is taken for one of another age of the transaction counter. */
const AHEAD_MAX = 1_000_000;

/** The runs that one transaction holds. */
export class RunLocks {
  /** The transaction's number, once it has one. */
  xid: string | null = null;
  readonly #held = new Set<number>();
  /** Runs that were waited for: one of these that is not held does not exist. */
  readonly #awaited = new Set<number>();
  readonly #limits = new Set<string>();
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

  get mayRestart(): boolean {
    return this.#mayRestart;
  }

  get held(): readonly number[] {
    return [...this.#held];
  }

  /** A run of this very transaction, or one that a statement has locked on its way. */
  add(key: number): void {
    this.#held.add(key);
  }

  /** Notes that a lock waits for these runs. */
  await(keys: Iterable<number>): void {
    this.#hasWaited = true;
    for (const key of keys) this.#awaited.add(key);
  }

  /**
   * A lock statement has told of a run who wrote it last, and our own number. A run that was written by a transaction with a higher
   * number would get its events in the wrong order, so that we start again with a new one.
   */
  accept(key: number, writer: string, xid: string): void {
    this.#held.add(key);
    this.xid = xid;
    const ahead = Number((BigInt(writer) - BigInt(xid)) & 0xffffffffn);
    if (this.#mayRestart && ahead > 0 && ahead < AHEAD_MAX) throw this.conflict();
  }

  /** The transaction is to start again and take all that it holds first. */
  conflict(): LockConflict {
    return new LockConflict(this.held, [...this.#limits]);
  }

  /** Every one of these is ours, or the transaction starts again. */
  require(keys: Iterable<number>): void {
    const missing = [...keys].filter((key) => !this.#held.has(key) && !this.#awaited.has(key));
    if (missing.length > 0 && this.#mayRestart)
      throw new LockConflict([...this.#held, ...missing], [...this.#limits]);
  }

  /** Whether a lock of these limits may wait: it is the first, or there is nothing new among them. */
  mayWaitForLimits(names: readonly string[]): boolean {
    return !this.#mayRestart || this.#limits.size === 0 || names.every((name) => this.#limits.has(name));
  }

  /** Takes in which limits a lock has found. A missing one of a lock that waited does not exist. */
  acceptLimits(
    names: readonly string[],
    { found, isFirst }: { readonly found: readonly string[]; readonly isFirst: boolean },
  ): void {
    // From here on nothing may wait for a run.
    this.#hasWaited = true;
    const missing = names.filter((name) => !found.includes(name) && !this.#limits.has(name));
    for (const name of names) this.#limits.add(name);
    if (!isFirst && missing.length > 0) throw new LockConflict(this.held, [...this.#limits]);
  }
}
