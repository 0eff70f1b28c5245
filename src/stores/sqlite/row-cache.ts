/**
 * Rows that are likely to be asked for again soon, as the writer left them: a task is read when it is claimed and again when it
 * is settled. Valid because this connection is the only writer of its process and notices every commit of another one.
 */

/** The most rows kept; beyond that the cache starts afresh. */
const ROWS_MAX = 20_000;

type List = readonly unknown[];

/** Lists of column values by key, for one table. */
export class RowCache {
  readonly #rows = new Map<number, List>();

  /** The row as the open transaction sees it, or undefined when it must be read. */
  get(key: number): List | undefined {
    return this.#rows.get(key);
  }

  /** The open transaction has written a row; null is one not worth keeping. */
  put(key: number, list: List | null): void {
    if (list === null) this.#rows.delete(key);
    else this.#rows.set(key, list);
  }

  /** The open transaction has ended. What one that was undone has written cannot be told from the rest, so all is forgotten. */
  end(isCommitted: boolean): void {
    if (!isCommitted || this.#rows.size > ROWS_MAX) this.#rows.clear();
  }

  /** Forgets everything: somebody else has written, or rows were removed. */
  clear(): void {
    this.#rows.clear();
  }
}
