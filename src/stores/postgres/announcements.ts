/**
 * Word between the processes of one database (LISTEN and NOTIFY), on connections that do nothing else: inside a commit it would
 * put all commits in a row. Many announcements at once become one. Losing some is harmless: whoever listens also looks by itself.
 */
import { randomUUID } from 'node:crypto';
import { Client, type ClientConfig } from 'pg';
import type { Command } from './batch.ts';
import type { Connections } from './connections.ts';

const CHANNEL = 'relay_outbox';
const RECONNECT_MS = 1_000;

/** Tells others, and hears them. */
export class Announcements {
  readonly #connections: Connections;
  readonly #config: ClientConfig;
  /** Tells our own word from that of others. */
  readonly #id: string = randomUUID();
  #isWanted = false;
  #sending: Promise<void> | null = null;

  constructor(connections: Connections, config: ClientConfig) {
    this.#connections = connections;
    this.#config = config;
  }

  announce(): void {
    this.#isWanted = true;
    this.#sending ??= this.#send().finally(() => {
      this.#sending = null;
    });
  }

  /** Waits for what is to be said. */
  async stop(): Promise<void> {
    await this.#sending;
  }

  listen(onAnnounced: () => void): () => Promise<void> {
    let client: Client | null = null;
    let timer: NodeJS.Timeout | undefined;
    let isStopped = false;
    const again = (lost: Client): void => {
      if (client !== lost) return;
      client = null;
      void lost.end().catch(() => {});
      if (!isStopped) timer = setTimeout(connect, RECONNECT_MS).unref();
    };
    const connect = (): void => {
      const own = new Client(this.#config);
      client = own;
      own.on('error', () => again(own));
      own.on('end', () => again(own));
      own.on('notification', ({ payload }) => {
        if (payload !== this.#id) onAnnounced();
      });
      own
        .connect()
        .then(() => own.query(`listen ${CHANNEL}`))
        // Something may have been said while nobody listened.
        .then(onAnnounced)
        .catch(() => again(own));
    };
    connect();
    return async () => {
      isStopped = true;
      clearTimeout(timer);
      const last = client;
      client = null;
      await last?.end().catch(() => {});
    };
  }

  async #send(): Promise<void> {
    const text = 'select pg_notify($1, $2)';
    const command: Command = { name: text, text, params: [CHANNEL, this.#id] };
    // The commits of this turn share one word.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#isWanted) {
      this.#isWanted = false;
      // A server that is away comes back; whoever listens looks by itself.
      await this.#connections.withReader((session) => session.send([command])).catch(() => {});
    }
  }
}
