/** Runs a `shell` task: start, stream, wait, and turn stdout into the output (SPEC S9.3). */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { AttemptFailure } from '../../domain/attempt-failure.ts';
import { type HandlerContext, TerminalError } from '../handler.ts';
import { BoundedText, TextTail } from '../process/bounded-output.ts';
import { type GuardedExit, type GuardedProcess, startGuarded } from '../process/guarded-process.ts';
import { taskEnvironment } from '../process/task-environment.ts';
import type { ShellConfig } from '../shell.ts';
import { collectFiles } from './collect-files.ts';

const STDOUT_BYTES_MAX = 16 * 1024 * 1024;
const TAIL_CHARS = 8_192;
const TAIL_LINES = 10;

/** Runs the command to its end and gives the parsed stdout. */
export async function runShell(context: HandlerContext<ShellConfig>): Promise<unknown> {
  const { config, signal } = context;
  const cwd = resolve(context.workdir, config.cwd ?? '.');
  await requireFolder(cwd);
  signal.throwIfAborted();
  const { stdout, exit, tail } = await runToEnd(context, cwd);
  signal.throwIfAborted();
  if (stdout.isOver) {
    const message = `stdout is longer than ${STDOUT_BYTES_MAX} bytes`;
    const hint = 'write large results to a file and name it in `files`';
    throw new AttemptFailure({ kind: 'output', problem: 'too_long' }, message, { hint });
  }
  if (exit.code !== 0) {
    throw new AttemptFailure({ kind: 'exit', code: exit.code }, describeExit(exit, tail, stdout));
  }
  const output = parseOutput(stdout.text.trim(), config.parse ?? 'text');
  for (const file of await collectFiles(cwd, config.files ?? [])) context.artifact(file);
  return output;
}

async function runToEnd(
  context: HandlerContext<ShellConfig>,
  cwd: string,
): Promise<{ stdout: BoundedText; tail: TextTail; exit: GuardedExit }> {
  const { run, env } = context.config;
  const child = startGuarded({
    argv: typeof run === 'string' ? ['/bin/sh', '-c', run] : run,
    cwd,
    env: taskEnvironment(context, env),
  });
  const stdout = new BoundedText(STDOUT_BYTES_MAX);
  const tail = new TextTail(TAIL_CHARS);
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    context.log(text, 'stdout');
    if (!stdout.add(text)) child.end();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    context.log(text, 'stderr');
    tail.add(text);
  });
  return { stdout, tail, exit: await exitOrAbort(child, context.signal) };
}

async function exitOrAbort(child: GuardedProcess, signal: AbortSignal): Promise<GuardedExit> {
  signal.addEventListener('abort', child.end, { once: true });
  try {
    return await child.exit;
  } finally {
    signal.removeEventListener('abort', child.end);
  }
}

async function requireFolder(cwd: string): Promise<void> {
  const found = await stat(cwd).catch(() => null);
  if (found?.isDirectory() !== true) throw new TerminalError(`\`cwd\` is not a folder: ${cwd}`);
}

function describeExit({ code, signal }: GuardedExit, tail: TextTail, stdout: BoundedText): string {
  const lines = tail.lines(TAIL_LINES) || stdout.text.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
  const what = signal === null ? `exit code ${code}` : `exit code ${code} (ended by ${signal})`;
  return lines === '' ? `${what}; nothing was written to stderr` : `${what}:\n${lines}`;
}

function parseOutput(text: string, parse: 'text' | 'json' | 'lines'): unknown {
  if (parse === 'text') return text;
  if (parse === 'lines') return text === '' ? [] : text.split(/\r?\n/);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const message = `stdout is not JSON: ${reason}; it begins with ${JSON.stringify(text.slice(0, 200))}`;
    throw new AttemptFailure({ kind: 'output', problem: 'not_json' }, message, { cause: error });
  }
}
