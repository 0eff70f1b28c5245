/** Tells waiters that the server has committed something, over one shared stream that is opened with the first of them. */
import { eventRoutes } from './contract/streams.ts';
import type { Http } from './http.ts';
import { follow } from './sse.ts';

const TRY_AGAIN_MS = 1_000;

/** The changes of a server, as a signal. */
export class Changes {
  readonly #http: Http;
  readonly #closing = new AbortController();
  readonly #waiters = new Set<() => void>();
  #isOpen = false;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Resolves with the next change, or when aborted. */
  after(signal: AbortSignal): Promise<void> {
    if (!this.#isOpen) void this.#listen();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiters.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      if (signal.aborted || this.#closing.signal.aborted) {
        resolve();
        return;
      }
      this.#waiters.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }

  close(): void {
    this.#closing.abort();
    this.#wakeAll();
  }

  async #listen(): Promise<void> {
    this.#isOpen = true;
    const { signal } = this.#closing;
    try {
      for await (const _ of follow(this.#http, eventRoutes.page, { signal })) this.#wakeAll();
    } catch {
      // Whoever waits finds out with the next call of its own; a token that may not read cannot be mended here.
      setTimeout(() => this.#wakeAll(), TRY_AGAIN_MS);
    } finally {
      this.#isOpen = false;
    }
  }

  #wakeAll(): void {
    for (const wake of this.#waiters) wake();
  }
}
