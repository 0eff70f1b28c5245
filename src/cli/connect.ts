/** How commands reach the product: as clients of a server, which is elsewhere or in this process. */
import type { RelayApi } from '../app/api.ts';
import type { Config } from '../app/config.ts';
import type { LocalRelay, LocalWorkerOptions, RunningWorker } from '../app/local-relay.ts';
import { parseDuration } from '../base/duration.ts';
import { RelayError } from '../base/errors.ts';
import { parseTrace, type TraceContext } from '../base/trace.ts';
import type { Handler } from '../handlers/handler.ts';
import { type CommonOptions, configFor } from './command.ts';
import type { Io } from './io.ts';

/** An open Relay. */
export interface Connection {
  readonly api: RelayApi;
  /** True when a server has the store; it runs what is started there. */
  readonly isRemote: boolean;
  /** For what only the owner of a store can do: look at it, copy it. Asking for it on a server is USAGE. */
  readonly local: LocalRelay;
  /** Carries runs on; a server does it by itself. */
  startEngine(): Promise<void>;
  /** Runs tasks of one run here; those of a server run there. */
  startWorker(options: LocalWorkerOptions): Promise<Pick<RunningWorker, 'stop'>>;
}

/** Opens Relay for as long as `work` takes. */
export async function withRelay<T>(
  options: CommonOptions,
  io: Io,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const { config } = await configFor(options, io);
  if (config.server !== undefined) return withServer(config, io, work);
  const local = await openLocal(config, io);
  try {
    const { embeddedClient } = await import('../app/embedded-client.ts');
    return await work({
      api: embeddedClient(local, traceOf(io)),
      isRemote: false,
      local,
      startEngine: () => local.startEngine(),
      startWorker: (worker) => local.startWorker(worker),
    });
  } finally {
    await local.close();
  }
}

/** The settings of a command that works on the embedded store, and on no server. */
export async function localConfig(options: CommonOptions, io: Io): Promise<Config> {
  const { config } = await configFor(options, io);
  if (config.server !== undefined) throw onlyLocal();
  return config;
}

/** Opens the store of the settings in this process. */
export async function openLocal(
  config: Config,
  io: Io,
  handlers: readonly Handler[] = [],
): Promise<LocalRelay> {
  const { LocalRelay } = await import('../app/local-relay.ts');
  const { toLimitDefinitions } = await import('../app/limit-config.ts');
  return LocalRelay.open({
    data: config.data,
    store: config.store,
    blobs: config.blobs,
    broker: config.broker,
    cwd: io.cwd,
    env: io.env,
    log: config.log,
    writeLog: (line) => io.err.write(line),
    by: io.env.USER ?? io.env.LOGNAME ?? 'cli',
    handlers,
    models: { providers: config.providers, prices: config.prices },
    itemsMax: config.map_items_max,
    limits: toLimitDefinitions(config.limits),
    retentionMs: config.retention === undefined ? undefined : (parseDuration(config.retention) ?? undefined),
  });
}

async function withServer<T>(
  { server = '', token, data }: Config,
  io: Io,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const { openRemote } = await import('../app/remote.ts');
  const remote = openRemote({ server, token, data, cwd: io.cwd, trace: traceOf(io) });
  try {
    return await work({
      api: remote.api,
      isRemote: true,
      get local(): LocalRelay {
        throw onlyLocal();
      },
      startEngine: async () => {},
      startWorker: async () => ({ stop: async () => {} }),
    });
  } finally {
    remote.close();
  }
}

/** The trace that the command is part of, as other programs tell it. */
function traceOf({ env }: Io): TraceContext | undefined {
  return parseTrace(env.TRACEPARENT, env.TRACESTATE);
}

function onlyLocal(): RelayError {
  return new RelayError('USAGE', 'this works on the embedded store, not on a server', {
    hint: 'leave out --server and RELAY_SERVER',
  });
}
