/**
 * How much room limits have, for one transaction: each is locked, then counted in a later statement, then kept up with what this
 * transaction grants (I13). Slots are counted from the leases that hold them, the rest from grants that have not aged yet.
 */
import {
  type Ask,
  fitsLimit,
  type Limit,
  type LimitDefinition,
  type LimitUse,
  take,
  toLimit,
} from '../domain/limits.ts';
import type { Tx } from '../stores/store.ts';
import type { EndedGrant } from './limit-changes.ts';

interface Entry {
  readonly limit: Limit;
  readonly use: LimitUse;
}

const LEAST: Ask = { requests: 1, tokens: 0 };

/** The limits that one transaction holds. */
export class LimitLedger {
  readonly #tx: Tx;
  readonly #now: number;
  readonly #endsOf: (name: string) => readonly EndedGrant[];
  readonly #entries = new Map<string, Entry | null>();

  /** `endsOf` tells which grants end with this very transaction. */
  constructor(tx: Tx, now: number, endsOf: (name: string) => readonly EndedGrant[]) {
    this.#tx = tx;
    this.#now = now;
    this.#endsOf = endsOf;
  }

  /** Takes hold of limits and counts what is used of them. */
  async load(names: Iterable<string>): Promise<void> {
    const missing = [...new Set(names)].filter((name) => !this.#entries.has(name)).sort();
    if (missing.length === 0) return;
    const rows = await this.#tx.limits.lock(missing);
    for (const name of missing) this.#entries.set(name, null);
    const limits = rows.map(
      ({ name, definition }) => [name, toLimit(JSON.parse(definition) as LimitDefinition)] as const,
    );
    const asked = limits.flatMap(([name, { windows }]) =>
      windows.length === 0
        ? [[name, this.#now] as const]
        : windows.map(({ ms }) => [name, this.#now - ms] as const),
    );
    const used = await this.#tx.limits.use(asked, this.#now);
    for (const [name, limit] of limits) {
      const own = used.filter((row) => row.name === name);
      const spent = limit.windows.map(
        ({ unit, ms }) => own.find(({ since }) => since === this.#now - ms)?.[unit] ?? 0,
      );
      const use: LimitUse = { slots: own[0]?.slots ?? 0, spent };
      for (const ended of this.#endsOf(name)) this.#giveBack(limit, use, ended);
      this.#entries.set(name, { limit, use });
    }
  }

  /** A grant that was counted, and ends with this transaction, is worth what it comes to. */
  #giveBack({ windows }: Limit, use: LimitUse, { share, row }: EndedGrant): void {
    if (row.held_until <= this.#now) use.slots -= 1;
    for (const [index, { unit, ms }] of windows.entries())
      if (share.spent_at > this.#now - ms)
        use.spent[index] = (use.spent[index] ?? 0) - share[unit] + row[unit];
  }

  /** A limit that was loaded; null when nobody has configured it. */
  limit(name: string): Limit | null {
    return this.#entries.get(name)?.limit ?? null;
  }

  fits(name: string, ask: Ask): 'now' | 'later' | 'never' {
    const entry = this.#entries.get(name);
    return entry ? fitsLimit(entry.limit, entry.use, ask) : 'now';
  }

  /** Counts an attempt that this transaction lets begin. */
  take(name: string, ask: Ask): void {
    const entry = this.#entries.get(name);
    if (entry) take(entry.limit, entry.use, ask);
  }

  /** How many attempts may begin at most; zero when not even the smallest can. */
  room(name: string): number {
    const entry = this.#entries.get(name);
    if (!entry) return Number.POSITIVE_INFINITY;
    if (fitsLimit(entry.limit, entry.use, LEAST) === 'later') return 0;
    const { concurrency } = entry.limit;
    return concurrency === null ? Number.POSITIVE_INFINITY : concurrency - entry.use.slots;
  }
}
