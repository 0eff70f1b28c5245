/**
 * A command in a process group of its own that cannot outlive this process, not even after kill -9 (SPEC S6.3).
 *
 * A small shell leads the group and starts the command. A watcher beside it reads a socket whose other end only this process
 * holds; when that end closes, for whatever reason, the watcher kills the group. The leader stays until it is told to go, so
 * the group's id cannot pass to a stranger while we might still signal it, and whatever the command left behind ends with it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Duplex, Readable } from 'node:stream';
import { invariant } from '../../base/invariant.ts';
import { AttemptFailure } from '../../domain/attempt-failure.ts';
import { TerminalError } from '../handler.ts';

/** What to start, and where. */
export interface GuardedCommand {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Between TERM and KILL; 5 seconds unless said otherwise. */
  readonly killAfterMs?: number;
}

/** How a command ended; the code is 128 + n when signal n ended it, as shells count. */
export interface GuardedExit {
  readonly code: number;
  readonly signal: string | null;
}

/** A command under way. */
export interface GuardedProcess {
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** The leader of the group; its IPC channel, when there is one, reaches the command. */
  readonly leader: ChildProcess;
  /** Settles when the command has ended, its output is read, and nothing of its group is left. */
  readonly exit: Promise<GuardedExit>;
  /** TERM to the whole group, KILL when that does not help. May be repeated. */
  end(): void;
}

const KILL_AFTER_MS = 5_000;
/** How long output may still arrive from what a command left in the background. */
const LINGER_MS = 1_000;

// Descriptor 3 is the socket, 9 the command's stderr. The leader's own stderr is closed: shells announce killed jobs on it.
const LEADER = `exec 9>&2 2>/dev/null
( trap '' TERM HUP INT; while read -r _relay_in; do :; done; kill -KILL -$$ ) <&3 >/dev/null 9>&- &
_relay_watcher=$!
trap : TERM HUP INT
( exec "$@" ) 3<&- 2>&9 9>&-
_relay_status=$?
exec >/dev/null 9>&-
kill -KILL $_relay_watcher; wait $_relay_watcher
echo $_relay_status >&3
read -r _relay_in <&3
kill -KILL -$$`;

/** Starts a command whose only ties to us are its output and the guard. */
export function startGuarded(command: GuardedCommand): GuardedProcess {
  return watch(launch(command, ['ignore', 'pipe', 'pipe', 'pipe']), command.killAfterMs ?? KILL_AFTER_MS);
}

/** Starts a Node program with an IPC channel on `leader`. */
export function startGuardedNode(command: GuardedCommand): GuardedProcess {
  const stdio: Stdio = ['ignore', 'pipe', 'pipe', 'pipe', 'ipc'];
  return watch(launch(command, stdio), command.killAfterMs ?? KILL_AFTER_MS);
}

type Stdio = ('ignore' | 'pipe' | 'ipc')[];

function launch({ argv, cwd, env }: GuardedCommand, stdio: Stdio): ChildProcess {
  const args = ['-c', LEADER, 'relay', ...argv];
  try {
    const leader = spawn('/bin/sh', args, { cwd, env: { ...env }, stdio, detached: true });
    if (leader.stdio?.[3] !== undefined) return leader;
    // Out of descriptors: there are no pipes, and the same news comes once more as an event.
    leader.once('error', () => {});
  } catch (error) {
    throw startFailure(error);
  }
  throw startFailure('too many open files');
}

/** A command that could not even be started; one that is too long, or has a NUL in it, never can. */
function startFailure(error: unknown): Error {
  const message = `the command could not be started: ${error instanceof Error ? error.message : String(error)}`;
  const code = error instanceof Error && 'code' in error ? error.code : null;
  if (code === 'E2BIG') {
    return new TerminalError(`${message}: it is too long; pass large data through a file`, { cause: error });
  }
  if (code === 'ERR_INVALID_ARG_VALUE') return new TerminalError(message, { cause: error });
  return new AttemptFailure({ kind: 'thrown' }, message, { cause: error });
}

function watch(leader: ChildProcess, killAfterMs: number): GuardedProcess {
  const { stdout, stderr } = leader;
  const guard = leader.stdio[3] as Duplex;
  invariant(stdout !== null && stderr !== null, 'a guarded process has pipes');
  let killTimer: NodeJS.Timeout | undefined;
  const signalGroup = (signal: NodeJS.Signals): void => {
    // Without an exit the leader is alive or unreaped, so the id is still its own.
    if (leader.pid === undefined || leader.exitCode !== null || leader.signalCode !== null) return;
    try {
      process.kill(-leader.pid, signal);
    } catch {
      // The group ended by itself a moment ago, which is what was wanted.
    }
  };
  const exit = awaitExit({ leader, guard, stdout, stderr }).finally(() => clearTimeout(killTimer));
  return {
    stdout,
    stderr,
    leader,
    exit,
    end: () => {
      if (killTimer !== undefined) return;
      signalGroup('SIGTERM');
      killTimer = setTimeout(() => signalGroup('SIGKILL'), killAfterMs);
    },
  };
}

async function awaitExit(parts: {
  leader: ChildProcess;
  guard: Duplex;
  stdout: Readable;
  stderr: Readable;
}): Promise<GuardedExit> {
  const { leader, guard, stdout, stderr } = parts;
  let reported = '';
  // A reset of the guard only repeats what `exit` says.
  guard.on('error', () => {});
  guard.setEncoding('utf8').on('data', (text: string) => {
    reported += text;
  });
  const gone = new Promise<string | null>((resolve, reject) => {
    leader.once('error', (error) => reject(startFailure(error)));
    leader.once('exit', (_code, signal) => resolve(signal));
  });
  const commandEnded = new Promise<void>((resolve) => guard.once('data', () => resolve()));
  const outputEnded = Promise.all([ended(stdout), ended(stderr)]);
  await Promise.race([commandEnded, gone]);
  await withinLinger(outputEnded);
  guard.destroy();
  const leaderSignal = await gone;
  await withinLinger(outputEnded);
  stdout.destroy();
  stderr.destroy();
  const code = reported === '' ? 128 + signalNumber(leaderSignal) : Number.parseInt(reported, 10);
  return { code, signal: signalName(code) };
}

function ended(stream: Readable): Promise<void> {
  return new Promise((resolve) => stream.once('close', resolve));
}

async function withinLinger(done: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LINGER_MS);
  });
  await Promise.race([done, timeout]);
  clearTimeout(timer);
}

function signalNumber(name: string | null): number {
  return (constants.signals as Readonly<Record<string, number>>)[name ?? ''] ?? constants.signals.SIGKILL;
}

function signalName(code: number): string | null {
  const found = Object.entries(constants.signals).find(([, number]) => number === code - 128);
  return found?.[0] ?? null;
}
