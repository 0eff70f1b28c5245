/** Sends what attempts log: soon (200 ms), or at once when much has come together, masked, in order, and bounded while the source is away. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Attempt } from './attempt.ts';
import { AttemptLog } from './attempt-log.ts';
import type { LogChunk, WorkSource } from './work-source.ts';

const FLUSH_AFTER_MS = 200;
const FLUSH_CHARS = 8 * 1024;
const CHUNK_CHARS_MAX = 32 * 1024;
const WAITING_CHARS_MAX = 8 * 1024 * 1024;
const RETRY_MS_MAX = 5_000;

/** What a shipper needs. */
export interface LogShipperOptions {
  readonly source: Pick<WorkSource, 'log'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly redact: (text: string) => string;
  /** Called with the moment at which `flushDue` has something to do. */
  readonly onDueAt: (at: number) => void;
}

/** Collects chunks of all attempts and sends them one batch at a time. Losing logs never delays a result. */
export class LogShipper {
  readonly #options: LogShipperOptions;
  readonly #unsent = new Set<Attempt>();
  #ready: LogChunk[] = [];
  #readyChars = 0;
  #sending: Promise<void> | null = null;
  #failures = 0;
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(options: LogShipperOptions) {
    this.#options = options;
  }

  get dueAt(): number {
    return this.#dueAt;
  }

  get hasReady(): boolean {
    return this.#ready.length > 0 || this.#sending !== null;
  }

  add(attempt: Attempt, stream: LogChunk['stream'], text: string): void {
    if (attempt.isOver) return;
    attempt.log ??= new AttemptLog();
    attempt.log.add(stream, text);
    this.#unsent.add(attempt);
    if (attempt.log.pendingChars < FLUSH_CHARS) {
      this.#dueWithin(FLUSH_AFTER_MS);
      return;
    }
    this.#makeReady(attempt, attempt.log.take());
    if (this.#failures === 0) void this.send();
  }

  /** Makes the rest of an attempt's log ready; `send` then takes it along. */
  finish(attempt: Attempt): void {
    if (attempt.log === null) return;
    this.#makeReady(attempt, attempt.log.takeRest());
    this.#unsent.delete(attempt);
  }

  async flushDue(now: number): Promise<void> {
    if (now < this.#dueAt) return;
    this.#dueAt = Number.POSITIVE_INFINITY;
    for (const attempt of this.#unsent) {
      this.#makeReady(attempt, attempt.log?.take() ?? []);
      if (attempt.log?.pendingChars === 0) this.#unsent.delete(attempt);
    }
    if (this.#unsent.size > 0) this.#dueWithin(FLUSH_AFTER_MS);
    await this.send();
  }

  /** Sends what is ready. Never rejects: what could not be sent stays for the next time. */
  async send(): Promise<void> {
    if (this.#sending !== null) await this.#sending;
    if (this.#ready.length === 0) return;
    this.#sending = this.#sendReady();
    await this.#sending;
  }

  async #sendReady(): Promise<void> {
    const chunks = this.#ready;
    this.#ready = [];
    this.#readyChars = 0;
    try {
      await this.#options.source.log(chunks);
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      this.#options.logger.warn('worker.logs_not_sent', { chunks: chunks.length, error });
      this.#putBack(chunks);
      this.#dueWithin(Math.min(FLUSH_AFTER_MS * 2 ** this.#failures, RETRY_MS_MAX));
    } finally {
      this.#sending = null;
    }
  }

  #makeReady(attempt: Attempt, parts: readonly Omit<LogChunk, 'lease_id'>[]): void {
    const { lease_id } = attempt.lease;
    for (const { stream, text: raw } of parts) {
      const text = this.#options.redact(raw);
      for (const piece of pieces(text)) this.#ready.push({ lease_id, stream, text: piece });
      this.#readyChars += text.length;
    }
    this.#dropOldest();
  }

  /** Puts unsent chunks first again. */
  #putBack(chunks: readonly LogChunk[]): void {
    this.#ready = [...chunks, ...this.#ready];
    this.#readyChars = this.#ready.reduce((sum, { text }) => sum + text.length, 0);
    this.#dropOldest();
  }

  /** Over the bound the oldest chunks are given up. */
  #dropOldest(): void {
    if (this.#readyChars <= WAITING_CHARS_MAX) return;
    let dropped = 0;
    for (; this.#readyChars > WAITING_CHARS_MAX; dropped++) {
      this.#readyChars -= this.#ready[dropped]?.text.length ?? this.#readyChars;
    }
    this.#ready = this.#ready.slice(dropped);
    this.#options.logger.warn('worker.logs_dropped', { chunks: dropped });
  }

  #dueWithin(ms: number): void {
    const at = this.#options.clock.monotonic() + ms;
    if (at >= this.#dueAt) return;
    this.#dueAt = at;
    this.#options.onDueAt(at);
  }
}

/** The text in pieces of bounded length; a character of two code units stays whole. */
function* pieces(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const end = at + CHUNK_CHARS_MAX;
    const isInsidePair = /[\uD800-\uDBFF]/.test(text.charAt(end - 1)) && end < text.length;
    const cut = isInsidePair ? end - 1 : end;
    yield text.slice(at, cut);
    at = cut;
  }
}
