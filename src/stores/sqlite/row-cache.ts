/**
 * Rows that are likely to be asked for again soon, as the writer left them: a task is read when it is claimed and again when it
 * is settled. Valid because this connection is the only writer of its process and notices every commit of another one.
 */

/** The most rows kept; beyond that the cache starts afresh. */
const ROWS_MAX = 20_000;

type List = readonly unknown[];

/** Lists of column values by key, for one table. */
export class RowCache {
  readonly #committed = new Map<number, List>();
  /** What the open transaction has written; null is a row not worth keeping. */
  readonly #written = new Map<number, List | null>();

  /** The row as the open transaction sees it, or undefined when it must be read. */
  get(key: number): List | undefined {
    const written = this.#written.get(key);
    if (written !== undefined) return written ?? undefined;
    return this.#committed.get(key);
  }

  /** The open transaction has written a row. */
  put(key: number, list: List | null): void {
    this.#written.set(key, list);
  }

  /** The open transaction has ended. */
  end(isCommitted: boolean): void {
    if (isCommitted) {
      if (this.#committed.size > ROWS_MAX) this.#committed.clear();
      for (const [key, list] of this.#written) {
        if (list === null) this.#committed.delete(key);
        else this.#committed.set(key, list);
      }
    }
    this.#written.clear();
  }

  /** Forgets everything: somebody else has written, or rows were removed. */
  clear(): void {
    this.#committed.clear();
    this.#written.clear();
  }
}
