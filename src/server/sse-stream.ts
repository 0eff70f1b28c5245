/** One open stream of server-sent events: heartbeats, and an end for readers that cannot keep up. */
import type { FastifyReply } from 'fastify';

/** Bytes that may wait for a slow reader; one that lags further behind is cut off and can resume. */
const WAITING_BYTES_MAX = 1024 * 1024;
const HEARTBEAT_MS = 15_000;

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
    this.#heartbeat = setInterval(() => this.#write(': \n\n'), HEARTBEAT_MS);
    this.#heartbeat.unref();
    if (signal.aborted) this.close();
    else signal.addEventListener('abort', () => this.close(), { once: true });
  }

  get isOpen(): boolean {
    return !this.#signal.aborted && !this.#reply.raw.writableEnded && !this.#reply.raw.destroyed;
  }

  /** Sends a message; `json` holds no line break, as JSON.stringify makes none. */
  send(message: { readonly id: string; readonly event: string; readonly json: string }): void {
    this.#write(`id: ${message.id}\nevent: ${message.event}\ndata: ${message.json}\n\n`);
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

  #write(text: string): void {
    const { raw } = this.#reply;
    if (!this.isOpen) return;
    raw.write(text);
    if (raw.writableLength > WAITING_BYTES_MAX) this.drop();
  }
}
