/** One open stream of server-sent events: heartbeats, and an end for readers that cannot keep up. */
import type { FastifyReply } from 'fastify';

/** Bytes that may wait for a slow reader; one that lags further behind is cut off and can resume. */
const WAITING_BYTES_MAX = 1024 * 1024;
const HEARTBEAT_MS = 15_000;

/** What one message says; `json` holds no line break, as JSON.stringify makes none. */
export interface SseMessage {
  readonly id: string;
  readonly event: string;
  readonly json: string;
}

/** Writes messages to one reader. */
export class SseStream {
  readonly #reply: FastifyReply;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #signal: AbortSignal;

  /** Takes over the reply and sends the head. The stream ends with `signal`. */
  constructor(reply: FastifyReply, signal: AbortSignal) {
    this.#reply = reply;
    this.#signal = signal;
    reply.hijack();
    const { raw } = reply;
    raw.writeHead(200, {
      ...(reply.getHeaders() as Record<string, string>),
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    raw.write('retry: 1000\n\n');
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS);
    this.#heartbeat.unref();
    if (signal.aborted) this.close();
    else signal.addEventListener('abort', () => this.close(), { once: true });
  }

  get isOpen(): boolean {
    return !this.#signal.aborted && !this.#reply.raw.writableEnded && !this.#reply.raw.destroyed;
  }

  /** Sends a message of what happens now; a reader that cannot keep up is cut off and can resume. */
  send(message: SseMessage): void {
    const { raw } = this.#reply;
    if (!this.isOpen) return;
    raw.write(textOf(message));
    if (raw.writableLength > WAITING_BYTES_MAX) this.drop();
  }

  /** Sends a message of what was stored before, at the pace of the reader: it could not resume past one that is too large. */
  async deliver(message: SseMessage): Promise<void> {
    const { raw } = this.#reply;
    if (!this.isOpen || raw.write(textOf(message))) return;
    await new Promise<void>((resolve) => {
      const go = (): void => {
        for (const event of ['drain', 'close'] as const) raw.off(event, go);
        this.#signal.removeEventListener('abort', go);
        resolve();
      };
      for (const event of ['drain', 'close'] as const) raw.on(event, go);
      this.#signal.addEventListener('abort', go, { once: true });
    });
  }

  close(): void {
    clearInterval(this.#heartbeat);
    if (!this.#reply.raw.writableEnded) this.#reply.raw.end();
  }

  /** Cuts the reader off at once. */
  drop(): void {
    clearInterval(this.#heartbeat);
    this.#reply.raw.destroy();
  }

  /** Keeps a quiet connection open; one with something under way needs no sign of life. */
  #beat(): void {
    if (this.isOpen && this.#reply.raw.writableLength === 0) this.#reply.raw.write(': \n\n');
  }
}

function textOf({ id, event, json }: SseMessage): string {
  return `id: ${id}\nevent: ${event}\ndata: ${json}\n\n`;
}
