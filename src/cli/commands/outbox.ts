/** `relay outbox`: the daemon that sends messages to the broker (SPEC S10.2, S10.3), and commands for what waits or is dead. */
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { parseDuration } from '../../base/duration.ts';
import { RelayError } from '../../base/errors.ts';
import { checkRelaySettings } from '../../domain/relay-settings.ts';
import {
  type BuildCommand,
  type CommandContext,
  type CommonOptions,
  configFor,
  examples,
} from '../command.ts';
import { openLocal } from '../connect.ts';
import { type Io, printJson } from '../io.ts';
import { wholeNumber } from '../subcommand.ts';
import { addDeadLetters, addPurge, addReplay, addStats } from './outbox-letters.ts';

interface OutboxOptions extends CommonOptions {
  readonly batchSize: number;
  readonly idleTime: number;
  readonly publishConcurrency: number;
  readonly maxRetries: number;
  readonly backoffTime: number;
  readonly maxBackoff: number;
  readonly sendTimeout: number;
  readonly staleTimeout: number;
  readonly shutdownTimeout: number;
  readonly brokerOutageCooldown: number;
  readonly livenessFile?: string;
}

export const buildOutbox: BuildCommand = (command, context) => {
  addOptions(command)
    .addHelpText(
      'after',
      `${examples([
        ['relay outbox --store postgres://… --broker redis://…', 'send until told to stop'],
        ['relay outbox --liveness-file /run/relay/alive …', 'a file that is touched while it is alive'],
        ['relay outbox stats', 'how much waits, is under way, is dead'],
        ['relay outbox dead-letters', 'messages that the broker has refused too often'],
      ])}
\`relay serve\` with a broker sends by itself; a daemon of its own may run beside it, or several. SIGTERM lets it
finish what it has in hand within the time. Nothing is lost when it is killed.
`,
    )
    .action((options: OutboxOptions) => sendUntilTold(options, context));
  addStats(command, context);
  addDeadLetters(command, context);
  addReplay(command, context);
  addPurge(command, context);
};

/** Flags with a number, and what help says about them. */
const COUNTS: readonly (readonly [flag: string, what: string, value: number])[] = [
  ['--batch-size', 'messages taken at once', 100],
  ['--publish-concurrency', 'sends under way at once', 1],
  ['--max-retries', 'how often a refused message is tried again before it is dead', 5],
];
const TIMES: readonly (readonly [flag: string, what: string, value: string])[] = [
  ['--idle-time', 'rest when there is nothing to send; new messages end it', '1s'],
  ['--backoff-time', 'wait after a refusal; doubles every time', '120s'],
  ['--max-backoff', 'the longest such wait', '1h'],
  ['--send-timeout', 'how long one send may take', '10s'],
  ['--stale-timeout', 'when others may take over what a dead daemon had in hand', '300s'],
  ['--shutdown-timeout', 'how long what is in hand is still sent after SIGTERM', '30s'],
  ['--broker-outage-cooldown', 'rest while the broker is away', '30s'],
];

function addOptions(command: Command): Command {
  for (const [flag, what, value] of COUNTS) command.option(`${flag} <n>`, what, wholeNumber(flag, 1), value);
  for (const [flag, what, value] of TIMES)
    command.addOption(
      new Option(`${flag} <duration>`, what).argParser(time(flag)).default(parseDuration(value), value),
    );
  return command.option('--liveness-file <path>', 'a file to touch while the loop is alive');
}

function time(flag: string): (text: string) => number {
  return (text) => {
    const value = parseDuration(text);
    if (value !== null && value > 0) return value;
    throw new RelayError('USAGE', `${flag} must be a duration of more than 0, not \`${text}\``, {
      hint: 'for example 500ms, 30s or 5m',
    });
  };
}

async function sendUntilTold(options: OutboxOptions, { io }: CommandContext): Promise<void> {
  const settings = checkRelaySettings({
    batchSize: options.batchSize,
    idleTimeMs: options.idleTime,
    publishConcurrency: options.publishConcurrency,
    maxRetries: options.maxRetries,
    backoffTimeMs: options.backoffTime,
    maxBackoffMs: options.maxBackoff,
    sendTimeoutMs: options.sendTimeout,
    staleTimeoutMs: options.staleTimeout,
    shutdownTimeoutMs: options.shutdownTimeout,
    outageCooldownMs: options.brokerOutageCooldown,
  });
  const { config } = await configFor(options, io);
  if (config.broker === 'none')
    throw new RelayError('USAGE', 'there is no broker to send to', {
      hint: 'name one with --broker redis://… or amqp://…, or RELAY_BROKER',
    });
  if (config.server !== undefined)
    throw new RelayError('USAGE', 'the daemon works on a store, not through a server', {
      hint: 'leave out --server and RELAY_SERVER; `relay serve --broker …` sends by itself',
    });
  const { livenessFile } = await import('../../app/liveness-file.ts');
  const local = await openLocal(config, io);
  try {
    const told = untilInterrupted(io);
    const { livenessFile: path } = options;
    const parts = { clock: systemClock, logger: local.logger };
    const touch = path === undefined ? undefined : livenessFile(resolve(io.cwd, path), parts);
    const relay = await local.startOutboxRelay(settings, touch);
    const [store, broker] = [local.store.description, local.broker?.description];
    if (options.json === true) printJson(io, { store, broker, pid: process.pid });
    else io.out.write(`messages of ${store} go to ${broker}; Ctrl-C ends it\n`);
    await told;
    await relay.stop();
  } finally {
    await local.close();
  }
}

/** Resolves with the first Ctrl-C or SIGTERM; the second ends the process at once. */
function untilInterrupted(io: Io): Promise<void> {
  return new Promise((done) => {
    let count = 0;
    io.onInterrupt(() => {
      count += 1;
      if (count > 1) io.quit(4);
      else done();
    });
  });
}
