/** A server in this process: the API, the engine's loops, and a worker of its own (SPEC S13.2 `relay serve`). */
import { renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { systemClock } from '../base/clock.ts';
import { RelayError } from '../base/errors.ts';
import { isLoopback } from '../base/loopback.ts';
import { createRedactor } from '../base/redact.ts';
import { RELAY_DEFAULTS } from '../domain/relay-settings.ts';
import { ensureTokenFile } from '../server/auth.ts';
import type { Metrics } from '../server/metrics.ts';
import { Server } from '../server/server.ts';
import type { WorkSource } from '../worker/work-source.ts';
import type { RelayApi } from './api.ts';
import { DefinitionCache } from './definition-cache.ts';
import { createLocalApi } from './local-api.ts';
import type { LocalRelay, RunningWorker } from './local-relay.ts';

/** How a server is started. */
export interface ServeOptions {
  readonly version: string;
  readonly host: string;
  readonly port: number;
  /** Lets everybody in; only on loopback. */
  readonly isOpenToAll: boolean;
  /** The token that may do everything; by default that of the token file. */
  readonly token?: string | undefined;
  /** Where the token file is. */
  readonly data: string;
  readonly cwd: string;
  readonly hasLoops: boolean;
  /** Tasks at work at once in this process; 0 for no worker. */
  readonly concurrency: number;
  readonly allowedHosts?: readonly string[];
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly rateLimit?: number | undefined;
  readonly readyFile?: string | undefined;
}

/** A server that answers. */
export interface RunningServer {
  readonly url: string;
  readonly server: Server;
  /** Takes no more work, lets what runs finish within the time, and ends. */
  stop(graceMs: number): Promise<void>;
}

const APIS_MAX = 1_000;
const CLOSE_MS = 5_000;

/** Starts serving a store that is open; closing the store is the caller's. */
export async function serve(local: LocalRelay, options: ServeOptions): Promise<RunningServer> {
  const { host, port, version, data, cwd, tls, rateLimit, allowedHosts = [] } = options;
  if (options.isOpenToAll && !isLoopback(host))
    throw new RelayError('USAGE', `--no-auth would let the whole network in on ${host}`, {
      hint: 'leave out --no-auth, or listen on 127.0.0.1',
    });
  const ownToken = options.isOpenToAll
    ? null
    : (options.token ?? ensureTokenFile(join(resolve(cwd, data), 'token')));
  await (options.hasLoops ? local.startEngine() : local.watchStore());
  const server = new Server({
    engine: local.engine,
    apiFor: apisOf(local),
    clock: systemClock,
    logger: local.logger,
    redact: createRedactor(local.engine.secretValues),
    version,
    host,
    port,
    ownToken,
    allowedHosts,
    tls,
    rateLimit,
  });
  await server.start();
  const relay =
    options.hasLoops && local.broker !== null ? await local.startOutboxRelay(RELAY_DEFAULTS) : null;
  const worker =
    options.concurrency === 0
      ? null
      : await local.startWorker({
          concurrency: options.concurrency,
          watch: (source) => measured(source, server.metrics),
        });
  const stop = async (graceMs: number): Promise<void> => {
    await stopServing(server, worker, graceMs);
    await relay?.stop();
  };
  try {
    if (options.readyFile !== undefined) writeReadyFile(resolve(cwd, options.readyFile), server.url);
  } catch (error) {
    await stop(0);
    throw error;
  }
  return { url: server.url, server, stop };
}

async function stopServing(server: Server, worker: RunningWorker | null, graceMs: number): Promise<void> {
  await worker?.stop(graceMs);
  // A connection that does not end must not keep the process.
  const late = new Promise<void>((done) => setTimeout(done, CLOSE_MS).unref());
  await Promise.race([server.stop(), late]);
}

/** The API in the name of a caller; there are few names, and they come again. */
function apisOf({ engine }: LocalRelay): (by: string) => RelayApi {
  const apis = new Map<string, RelayApi>();
  const definitions = new DefinitionCache(engine.context.handlers);
  return (by) => {
    const known = apis.get(by);
    if (known !== undefined) return known;
    if (apis.size >= APIS_MAX) apis.clear();
    const api = createLocalApi(engine, { by, definitions });
    apis.set(by, api);
    return api;
  };
}

/** Whoever waits for the file finds it whole. */
function writeReadyFile(path: string, url: string): void {
  const draft = `${path}.${process.pid}`;
  try {
    writeFileSync(draft, `${JSON.stringify({ url, pid: process.pid })}\n`);
    renameSync(draft, path);
  } catch (cause) {
    throw new RelayError('USAGE', `--ready-file ${path} cannot be written: ${(cause as Error).message}`, {
      hint: 'name a file in a folder that exists and may be written',
      cause,
    });
  }
}

/** The same source, with its times taken. A call that only waits for work says nothing about how fast claims are. */
function measured(source: WorkSource, metrics: Metrics): WorkSource {
  return {
    next: async (request) => {
      const startedAt = systemClock.monotonic();
      const answer = await source.next(request);
      const seconds = (systemClock.monotonic() - startedAt) / 1_000;
      if (request.settlements.length > 0) metrics.observeWork('settle', seconds);
      return answer;
    },
    extend: (heartbeats) => source.extend(heartbeats),
    log: (chunks) => source.log(chunks),
  };
}
