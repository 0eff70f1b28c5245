/** A server on a store in memory of the file system, reached by real sockets; everything ends with `close`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, type RelayClient } from '../../client/src/index.ts';
import { type LocalOptions, LocalRelay } from '../../src/app/local-relay.ts';
import { type RunningServer, type ServeOptions, serve } from '../../src/app/serve.ts';

/** The token that may do everything. */
export const OWN_TOKEN = 'relay_test_token_of_the_owner';

/** What differs from a server without a worker on any port. */
export interface BenchOptions extends Partial<ServeOptions> {
  readonly leaseMs?: number;
  readonly env?: Record<string, string>;
  readonly blobs?: LocalOptions['blobs'];
  readonly limits?: LocalOptions['limits'];
}

/** A server under test. */
export class ServerBench {
  readonly folder: string;
  readonly #options: BenchOptions;
  readonly #clients: RelayClient[] = [];
  readonly logs: string[] = [];
  local!: LocalRelay;
  running!: RunningServer;

  private constructor(options: BenchOptions) {
    this.folder = mkdtempSync(join(tmpdir(), 'relay-server-'));
    this.#options = options;
  }

  static async open(options: BenchOptions = {}): Promise<ServerBench> {
    const bench = new ServerBench(options);
    await bench.start();
    return bench;
  }

  get url(): string {
    return this.running.url;
  }

  /** Starts the server; after `stop`, again on the same store and port. */
  async start(port = 0): Promise<void> {
    const { leaseMs, env = {}, blobs, limits, ...options } = this.#options;
    this.local = await LocalRelay.open({
      data: '.relay',
      cwd: this.folder,
      env,
      log: 'warn',
      writeLog: (line) => this.logs.push(line),
      by: 'test',
      blobs,
      limits,
      ...(leaseMs === undefined ? {} : { leaseMs }),
    });
    this.running = await serve(this.local, {
      version: '0.0.0-test',
      host: '127.0.0.1',
      port,
      isOpenToAll: false,
      token: OWN_TOKEN,
      data: '.relay',
      cwd: this.folder,
      hasLoops: true,
      concurrency: 0,
      ...options,
    });
  }

  /** Connections of before are found out to be dead only by using them. */
  async restart(): Promise<void> {
    const { port } = this;
    await this.stop();
    await this.start(port);
    for (let tries = 0; tries < 10; tries++) await this.request('//healthz').catch(() => {});
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  async stop(): Promise<void> {
    await this.running.stop(0);
    await this.local.close();
  }

  /** A client with a token; by default that of the owner. */
  client(token: string | undefined = OWN_TOKEN): RelayClient {
    const client = createClient({ url: this.url, token });
    this.#clients.push(client);
    return client;
  }

  /** A plain request; `path` is below `/api/v1` unless it starts with `//`. */
  request(path: string, init: RequestInit & { readonly token?: string | null } = {}): Promise<Response> {
    const { token = OWN_TOKEN, headers, ...rest } = init;
    return fetch(`${this.url}${path.startsWith('//') ? path.slice(1) : `/api/v1${path}`}`, {
      ...rest,
      headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers },
    });
  }

  post(path: string, body: unknown, token?: string | null): Promise<Response> {
    return this.request(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
      ...(token === undefined ? {} : { token }),
    });
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
