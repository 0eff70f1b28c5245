/**
 * Who waits for whom, of tasks that this process has made: a task is asked for its children once, when it ends, and most tasks
 * end where they were made. Valid for the same reason as the row cache, and ended with it.
 */

/** The most tasks and edges kept; beyond that the cache starts afresh. */
const ENTRIES_MAX = 100_000;

const NONE: readonly number[] = Object.freeze([]);

type Edge = readonly [parent: number, child: number];

/** Children by parent, each list in ascending order. A task that is not here must be read. */
export class ChildCache {
  readonly #children = new Map<number, readonly number[]>();
  #entries = 0;

  /** New tasks: nobody waits for them yet. */
  add(keys: readonly number[]): void {
    for (const key of keys) this.#children.set(key, NONE);
    this.#entries += keys.length;
  }

  link(edges: readonly Edge[]): void {
    for (const [parent, child] of edges) {
      const children = this.#children.get(parent);
      if (children === undefined) continue;
      if (children === NONE) this.#children.set(parent, [child]);
      else if (child > (children.at(-1) ?? 0)) (children as number[]).push(child);
      // An edge that comes out of order is rare enough to be read.
      else this.remove(parent);
    }
    this.#entries += edges.length;
  }

  /** Edges by child, then parent, beyond the child `after`; null when one of the parents must be read. */
  of(
    parents: readonly number[],
    { after, limit }: { readonly after: number; readonly limit: number },
  ): { parent: number; child: number }[] | null {
    const edges: { parent: number; child: number }[] = [];
    for (const parent of parents) {
      const children = this.#children.get(parent);
      if (children === undefined) return null;
      let place = after === 0 ? 0 : children.findIndex((child) => child > after);
      for (let left = limit; place >= 0 && place < children.length && left > 0; place++, left--)
        edges.push({ parent, child: children[place] as number });
    }
    if (parents.length > 1) edges.sort((a, b) => a.child - b.child || a.parent - b.parent);
    return edges.length > limit ? edges.slice(0, limit) : edges;
  }

  /** The task has ended; if it is ever asked again, it is read. */
  remove(key: number): void {
    const children = this.#children.get(key);
    if (children === undefined) return;
    this.#entries -= 1 + children.length;
    this.#children.delete(key);
  }

  /** The open transaction has ended; one that was undone may have left what does not exist. */
  end(isCommitted: boolean): void {
    if (!isCommitted || this.#entries > ENTRIES_MAX) this.clear();
  }

  /** Forgets everything: somebody else has written, or rows were removed. */
  clear(): void {
    this.#children.clear();
    this.#entries = 0;
  }
}
