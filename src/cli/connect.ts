/** How commands reach the product: today the embedded store in this process, behind the contract that a server will offer too. */
import type { RelayApi } from '../app/api.ts';
import type { Config } from '../app/config.ts';
import type { LocalRelay } from '../app/local-relay.ts';
import { RelayError } from '../base/errors.ts';
import { type CommonOptions, configFor } from './command.ts';
import type { Io } from './io.ts';

/** An open Relay. `local` is there for what only the owner of a store can do: run tasks, copy it. */
export interface Connection {
  readonly api: RelayApi;
  readonly local: LocalRelay;
}

/** Opens Relay for as long as `work` takes. */
export async function withRelay<T>(
  options: CommonOptions,
  io: Io,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const { config } = await configFor(options, io);
  const local = await openLocal(config, io);
  try {
    return await work({ api: local.api, local });
  } finally {
    await local.close();
  }
}

/** The settings of a command that works on the embedded store, and on no server. */
export async function localConfig(options: CommonOptions, io: Io): Promise<Config> {
  const { config } = await configFor(options, io);
  refuseServer(config);
  return config;
}

async function openLocal(config: Config, io: Io): Promise<LocalRelay> {
  refuseServer(config);
  const { LocalRelay } = await import('../app/local-relay.ts');
  return LocalRelay.open({
    data: config.data,
    store: config.store,
    cwd: io.cwd,
    env: io.env,
    log: config.log,
    writeLog: (line) => io.err.write(line),
    by: io.env.USER ?? io.env.LOGNAME ?? 'cli',
  });
}

function refuseServer({ server }: Config): void {
  if (server === undefined) return;
  throw new RelayError('USAGE', 'this version cannot talk to a server yet', {
    hint: 'that comes with `relay serve`; leave out --server and RELAY_SERVER to work on the embedded store',
  });
}
