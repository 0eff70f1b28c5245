/** `relay serve`: the API, the engine's loops and a worker in one process (SPEC S13.2). */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { RunningServer } from '../../app/serve.ts';
import { parseDuration } from '../../base/duration.ts';
import { RelayError } from '../../base/errors.ts';
import { type BuildCommand, type CommandContext, type CommonOptions, examples } from '../command.ts';
import { localConfig, openLocal } from '../connect.ts';
import { type Io, printJson } from '../io.ts';
import { collect, wholeNumber } from '../subcommand.ts';
import { VERSION } from '../version.ts';

interface ServeCommandOptions extends CommonOptions {
  readonly host: string;
  readonly port: number;
  readonly readyFile?: string;
  readonly worker: boolean;
  readonly loops: boolean;
  readonly auth: boolean;
  readonly concurrency: number;
  readonly shutdownTimeout: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly allowHost?: readonly string[];
  readonly rateLimit?: number;
}

const PORT = 7788;
const PORT_MAX = 65_535;

export const buildServe: BuildCommand = (command, context) => {
  addOptions(command)
    .addHelpText(
      'after',
      `${examples([
        ['relay serve', `on http://127.0.0.1:${PORT}, with a worker`],
        ['relay serve --port 0 --ready-file ready.json', 'on any free port; the file says which'],
        ['relay serve --no-worker', 'only hand out work; `relay worker --server URL` does it'],
        ['relay serve --host 0.0.0.0 --tls-cert c.pem --tls-key k.pem', 'for other machines'],
      ])}
Every call needs a token. The one in \`.relay/token\` is made at the first start and used by commands on this
machine by themselves; \`relay tokens create\` makes others. SIGTERM lets what runs finish, then ends.
`,
    )
    .action((options: ServeCommandOptions) => serveUntilTold(options, context));
};

function addOptions(command: Command): Command {
  return command
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--port <n>', 'port; 0 takes any free one', wholeNumber('--port', 0), PORT)
    .option('--ready-file <path>', 'write {url, pid} there once requests are answered')
    .option('--no-worker', 'run no tasks in this process')
    .option('--no-loops', 'leave timers, retries and expired leases to other processes on the same store')
    .option('--concurrency <n>', 'tasks at work at once, at most', wholeNumber('--concurrency', 1), 16)
    .option('--shutdown-timeout <duration>', 'how long running tasks may finish', '30s')
    .option('--tls-cert <file>', 'certificate chain (PEM)')
    .option('--tls-key <file>', 'its key (PEM)')
    .option('--allow-host <name>', 'a name by which the server may be called; may be repeated', collect)
    .option(
      '--rate-limit <n>',
      'requests of one address in a minute, at most',
      wholeNumber('--rate-limit', 1),
    )
    .option('--no-auth', 'let everybody on this machine in without a token');
}

async function serveUntilTold(options: ServeCommandOptions, { io }: CommandContext): Promise<void> {
  const graceMs = readDuration(options.shutdownTimeout);
  const tls = readTls(options, io);
  if (options.port > PORT_MAX) throw new RelayError('USAGE', `--port must be at most ${PORT_MAX}`);
  const config = await localConfig({ ...options }, io);
  const { serve } = await import('../../app/serve.ts');
  const local = await openLocal(config, io);
  try {
    const told = untilInterrupted(io);
    const running = await serve(local, {
      version: VERSION,
      host: options.host,
      port: options.port,
      isOpenToAll: !options.auth,
      token: config.token,
      data: config.data,
      cwd: io.cwd,
      hasLoops: options.loops,
      concurrency: options.worker ? options.concurrency : 0,
      allowedHosts: options.allowHost ?? [],
      tls,
      rateLimit: options.rateLimit,
      readyFile: options.readyFile,
    });
    announce(running, options, io);
    await told;
    await running.stop(graceMs);
  } finally {
    await local.close();
  }
}

function announce({ url }: RunningServer, options: ServeCommandOptions, io: Io): void {
  if (options.json === true) printJson(io, { url, pid: process.pid });
  else io.out.write(`Relay listens on ${url} (documentation: ${url}/docs). Ctrl-C ends it.\n`);
}

/** Resolves with the first Ctrl-C or SIGTERM; the second ends the process at once. */
function untilInterrupted(io: Io): Promise<void> {
  return new Promise((resolve) => {
    let count = 0;
    io.onInterrupt(() => {
      count += 1;
      if (count > 1) io.quit(4);
      else resolve();
    });
  });
}

function readDuration(text: string): number {
  const ms = parseDuration(text);
  if (ms !== null) return ms;
  throw new RelayError('USAGE', `\`${text}\` is not a duration`, { hint: 'for example 30s or 5m' });
}

function readTls(
  { tlsCert, tlsKey }: ServeCommandOptions,
  io: Io,
): { readonly cert: string; readonly key: string } | undefined {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined)
    throw new RelayError('USAGE', '--tls-cert and --tls-key go together');
  const read = (path: string): string => {
    try {
      return readFileSync(resolve(io.cwd, path), 'utf8');
    } catch (cause) {
      throw new RelayError('FILE_NOT_READABLE', `${path} cannot be read`, { cause });
    }
  };
  return { cert: read(tlsCert), key: read(tlsKey) };
}
