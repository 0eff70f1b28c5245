/** `relay worker`: takes tasks from a server, or from the store itself, and runs them (SPEC S11.2). */
import type { Command } from 'commander';
import type { Config } from '../../app/config.ts';
import type { RemoteWorkerOptions } from '../../app/remote.ts';
import { systemClock } from '../../base/clock.ts';
import { parseDuration } from '../../base/duration.ts';
import { RelayError } from '../../base/errors.ts';
import { createLogger } from '../../base/logger.ts';
import type { Handler } from '../../handlers/handler.ts';
import {
  type BuildCommand,
  type CommandContext,
  type CommonOptions,
  configFor,
  examples,
} from '../command.ts';
import { openLocal } from '../connect.ts';
import { type Io, printJson } from '../io.ts';
import { loadHandlers } from '../load-handlers.ts';
import { collect, pairs, wholeNumber } from '../subcommand.ts';

interface WorkerCommandOptions extends CommonOptions {
  readonly concurrency: number;
  readonly handlers?: readonly string[];
  readonly label?: readonly string[];
  readonly pool?: string;
  readonly resource?: readonly string[];
  readonly id?: string;
  readonly exitWhenIdle?: boolean;
  readonly shutdownTimeout: string;
}

export const buildWorker: BuildCommand = (command, context) => {
  addOptions(command)
    .addHelpText(
      'after',
      `${examples([
        ['relay worker --server http://127.0.0.1:7788', 'work for a server'],
        ['relay worker --server URL --handlers train.ts', 'with handlers of your own'],
        ['relay worker --server URL --pool gpu --label region=eu', 'for tasks that ask for these'],
        ['relay worker --server URL --resource vram_gb=24', 'for tasks that need as much or less'],
        ['relay worker --store postgres://… --broker redis://…', 'told of tasks by a broker'],
        ['relay worker --exit-when-idle', 'work off the embedded store, then end'],
      ])}
SIGTERM lets what runs finish within the time and gives the rest back. Results survive an outage of the server.
`,
    )
    .action((options: WorkerCommandOptions) => work(options, context));
};

function addOptions(command: Command): Command {
  return command
    .option('--concurrency <n>', 'tasks at work at once, at most', wholeNumber('--concurrency', 1), 16)
    .option('--handlers <file>', 'a module that exports handlers; may be repeated', collect)
    .option('--label <name=value>', 'what tasks may ask for; may be repeated', collect)
    .option('--pool <name>', 'the pool the worker belongs to')
    .option('--resource <name=number>', 'how much of something it has; may be repeated', collect)
    .option('--id <name>', 'a name that stays the same after a restart')
    .option('--exit-when-idle', 'end when there is nothing to do')
    .option('--shutdown-timeout <duration>', 'how long running tasks may finish', '30s');
}

async function work(options: WorkerCommandOptions, { io }: CommandContext): Promise<void> {
  const graceMs = parseDuration(options.shutdownTimeout);
  if (graceMs === null)
    throw new RelayError('USAGE', `\`${options.shutdownTimeout}\` is not a duration`, {
      hint: 'for example 30s',
    });
  const { config } = await configFor(options, io);
  const handlers = await loadHandlers(options.handlers ?? [], io.cwd);
  const interrupted = untilInterrupted(io);
  const fit = {
    pool: options.pool,
    labels: pairs('--label', options.label),
    resources: amounts(options.resource),
  };
  const parts = { config, handlers, fit, interrupted, graceMs };
  await (config.server === undefined ? workHere(options, parts, io) : workThere(options, parts, io));
}

interface Parts {
  readonly config: Config;
  readonly handlers: readonly Handler[];
  readonly fit: Pick<RemoteWorkerOptions['card'], 'pool' | 'labels' | 'resources'>;
  readonly interrupted: Promise<'told'>;
  readonly graceMs: number;
}

/** For a server: every connection is made from here. */
async function workThere(options: WorkerCommandOptions, parts: Parts, io: Io): Promise<void> {
  const { config, handlers, fit, interrupted, graceMs } = parts;
  const { dialIn } = await import('../../app/remote.ts');
  const logger = createLogger({ level: config.log, clock: systemClock, write: (line) => io.err.write(line) });
  const leaving = new AbortController();
  void interrupted.then(() => leaving.abort());
  const worker = await dialIn({
    server: config.server ?? '',
    token: config.token,
    data: config.data,
    cwd: io.cwd,
    env: io.env,
    card: { worker_id: options.id, ...fit },
    handlers,
    models: { providers: config.providers, prices: config.prices },
    concurrency: options.concurrency,
    logger,
    shutdownGraceMs: graceMs,
    isLeavingWhenIdle: options.exitWhenIdle === true,
    signal: leaving.signal,
    onWaiting: ({ message }) => io.err.write(`${message}; waiting for it\n`),
  });
  announce(worker.worker_id, `for ${config.server}`, options, io);
  await Promise.race([interrupted, worker.leaving]);
  await worker.stop(graceMs);
}

/** On the store itself, with the loops that carry runs on. */
async function workHere(options: WorkerCommandOptions, parts: Parts, io: Io): Promise<void> {
  const { config, handlers, fit, interrupted, graceMs } = parts;
  const local = await openLocal(config, io, handlers);
  try {
    await local.startEngine();
    const worker = await local.startWorker({
      concurrency: options.concurrency,
      fit,
      shutdownGraceMs: graceMs,
      isLeavingWhenIdle: options.exitWhenIdle === true,
      onBrokerAway: (message) =>
        io.err.write(
          `${local.broker?.description} cannot be reached (${message}); waiting for it, and claiming from the store meanwhile\n`,
        ),
    });
    const told = local.broker === null ? '' : `, told of tasks by ${local.broker.description}`;
    announce('local', `on ${local.store.description}${told}`, options, io);
    await (options.exitWhenIdle === true ? Promise.race([interrupted, worker.idle()]) : interrupted);
    await worker.stop(graceMs);
  } finally {
    await local.close();
  }
}

/** What the worker has, by name. */
function amounts(list: readonly string[] | undefined): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(pairs('--resource', list)).map(([name, text]) => {
      const amount = Number(text);
      if (text.trim() !== '' && Number.isFinite(amount) && amount >= 0) return [name, amount];
      throw new RelayError('USAGE', `--resource ${name} must be a number from 0, not \`${text}\``);
    }),
  );
}

function announce(id: string, where: string, options: WorkerCommandOptions, io: Io): void {
  if (options.json === true) printJson(io, { worker_id: id, pid: process.pid });
  else io.out.write(`worker ${id} is at work ${where}; Ctrl-C ends it\n`);
}

/** Resolves with the first Ctrl-C or SIGTERM; the second ends the process at once. */
function untilInterrupted(io: Io): Promise<'told'> {
  return new Promise((resolve) => {
    let count = 0;
    io.onInterrupt(() => {
      count += 1;
      if (count > 1) io.quit(4);
      else resolve('told');
    });
  });
}
