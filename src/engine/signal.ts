/** A wake-up that is never missed: waiters name the moment after which they want to hear of a change. */

/** Tells waiters that something changed. */
export class Signal {
  #count = 0;
  readonly #waiters = new Set<() => void>();

  /** The moment to wait from. */
  mark(): number {
    return this.#count;
  }

  /** Something changed. */
  notify(): void {
    this.#count += 1;
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const wake of waiters) wake();
  }

  /** Resolves at the first change after `mark`, or when aborted. */
  after(mark: number, signal: AbortSignal): Promise<void> {
    if (this.#count !== mark || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiters.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiters.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
}
