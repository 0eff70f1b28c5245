/**
 * The connections of one store: one that writes, a few that read. A lost one is replaced when it is needed next. While the
 * server is away, calls fail at once until the next try is due, so that nobody hangs and nobody hammers (SPEC S14.7).
 */
import { Client, type ClientBase, type ClientConfig, Pool } from 'pg';
import { isConnectionLost } from './postgres-errors.ts';
import { Session } from './session.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const READERS_MAX = 4;
const READER_IDLE_MS = 30_000;
const AWAY_MIN_MS = 100;
const AWAY_MAX_MS = 500;
/** An idle connection whose other end is gone is found out in about twice this time. */
const KEEP_ALIVE_MS = 10_000;
/** Bounds for what a lost process could hold up: its statements, and its transaction between them. */
const STATEMENT_TIMEOUT_MS = 30_000;
const IDLE_IN_TRANSACTION_MS = 30_000;
/** A server that lives answers, or gives the statement up, well within this; a network that swallows everything never does. */
const ANSWER_TIMEOUT_MS = 60_000;

/** With these the statements of sql/postgres have one plan each, however large or empty the tables are (docs/decisions/0005). */
export const SESSION_SETTINGS: Readonly<Record<string, string>> = {
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_material: 'off',
  statement_timeout: String(STATEMENT_TIMEOUT_MS),
  idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_MS),
};

/** Opens, hands out and replaces connections. */
export class Connections {
  readonly #config: ClientConfig;
  readonly #answerTimeoutMs: number;
  readonly #pool: Pool;
  readonly #readers = new WeakMap<ClientBase, Session>();
  #writer: { readonly client: Client; readonly session: Session } | null = null;
  #away: { readonly until: number; readonly waitMs: number; readonly error: unknown } | null = null;

  constructor(connectionString: string, answerTimeoutMs = ANSWER_TIMEOUT_MS) {
    this.#answerTimeoutMs = answerTimeoutMs;
    const config: ClientConfig = {
      connectionString,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      application_name: 'relay',
    };
    this.#config = config;
    // The pool would hold its own wait for a free connection against the same limit, and call a busy server gone.
    class Reader extends Client {
      constructor() {
        super(config);
      }
    }
    this.#pool = new Pool({ max: READERS_MAX, idleTimeoutMillis: READER_IDLE_MS, Client: Reader });
    // A reader that is lost, idle or not; whoever uses it hears of it, and the next one is opened when it is needed.
    this.#pool.on('error', () => {});
    this.#pool.on('connect', (client) => client.on('error', () => {}));
  }

  /** The session that writes. */
  async writer(): Promise<Session> {
    this.#writer ??= await this.#reach(() => this.#openWriter());
    return this.#writer.session;
  }

  /** The writer cannot be relied on any more. */
  dropWriter(): void {
    const lost = this.#writer;
    this.#writer = null;
    if (lost !== null) void lost.client.end().catch(() => {});
  }

  /** Uses a reading session for a while. */
  async withReader<T>(use: (session: Session) => Promise<T>): Promise<T> {
    const client = await this.#reach(() => this.#pool.connect());
    let session = this.#readers.get(client);
    if (session === undefined) {
      session = this.#newSession(client);
      this.#readers.set(client, session);
    }
    try {
      const result = await use(session);
      client.release();
      return result;
    } catch (error) {
      client.release(isConnectionLost(error));
      throw error;
    }
  }

  /** A connection of its own, without time limits, for changes of the schema. */
  async withClient<T>(use: (client: Client) => Promise<T>): Promise<T> {
    const client = new Client(this.#config);
    client.on('error', () => {});
    await this.#reach(() => client.connect());
    try {
      return await use(client);
    } finally {
      await client.end().catch(() => {});
    }
  }

  async close(): Promise<void> {
    const writer = this.#writer;
    this.#writer = null;
    await Promise.allSettled([writer?.client.end(), this.#pool.end()]);
  }

  async #openWriter(): Promise<{ client: Client; session: Session }> {
    const client = new Client(this.#config);
    client.on('error', () => {
      if (this.#writer?.client === client) this.#writer = null;
    });
    await client.connect();
    return { client, session: this.#newSession(client) };
  }

  #newSession(client: ClientBase): Session {
    return new Session(client, { settings: SESSION_SETTINGS, answerTimeoutMs: this.#answerTimeoutMs });
  }

  async #reach<T>(connect: () => Promise<T>): Promise<T> {
    if (this.#away !== null && performance.now() < this.#away.until) throw this.#away.error;
    try {
      const connected = await connect();
      this.#away = null;
      return connected;
    } catch (error) {
      const waitMs = Math.min(this.#away === null ? AWAY_MIN_MS : this.#away.waitMs * 2, AWAY_MAX_MS);
      this.#away = { until: performance.now() + waitMs, waitMs, error };
      throw error;
    }
  }
}
