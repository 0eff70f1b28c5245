/**
 * Runs a `script` task in a process of its own, so that a crash, an endless loop or a `process.exit` in a user's code
 * harms nobody else. The function's result arrives as a message; what it prints is the attempt's log.
 */
import { execPath } from 'node:process';
import { fileURLToPath } from 'node:url';
import { unreachable } from '../../base/invariant.ts';
import { AttemptFailure } from '../../domain/attempt-failure.ts';
import { type HandlerContext, RetryAfter, TerminalError } from '../handler.ts';
import { TextTail } from '../process/bounded-output.ts';
import { type GuardedProcess, startGuardedNode } from '../process/guarded-process.ts';
import { taskEnvironment } from '../process/task-environment.ts';
import type { ScriptConfig } from '../script.ts';
import { bundleScript, resolveScript } from './bundle.ts';
import { writeBundle } from './bundle-file.ts';
import { type ScriptEnd, type ScriptMessage, type ScriptStart, scriptMessage } from './messages.ts';

const TAIL_CHARS = 8_192;
const TAIL_LINES = 10;
/** How long a script whose function has ended may take to leave. */
const LEAVE_MS = 2_000;

/** Calls the function and gives what it returned. */
export async function runScript(context: HandlerContext<ScriptConfig>): Promise<unknown> {
  const { config, signal, workdir } = context;
  const code = config.bundle ?? (await bundleScript(resolveScript(workdir, config.module))).code;
  const file = await writeBundle(code);
  const entry = await childEntry();
  signal.throwIfAborted();
  const child = startGuardedNode({ argv: [execPath, entry], cwd: workdir, env: taskEnvironment(context) });
  const tail = forwardOutput(child, context);
  const end = await converse(child, context, startMessage(context, file));
  if (end.outcome !== null) return finish(context, end.outcome);
  signal.throwIfAborted();
  if (end.code === 0) {
    throw new AttemptFailure({ kind: 'thrown' }, 'the script ended its process before its function returned');
  }
  const lines = tail.lines(TAIL_LINES);
  const message = `the script's process ended with exit code ${end.code}${lines === '' ? '' : `:\n${lines}`}`;
  throw new AttemptFailure({ kind: 'exit', code: end.code }, message);
}

/** The child's main module as something Node can run: compiled beside this file, or bundled when this is source. */
async function childEntry(): Promise<string> {
  if (!import.meta.url.endsWith('.ts')) return fileURLToPath(new URL('./child.js', import.meta.url));
  const source = fileURLToPath(new URL('./child.ts', import.meta.url));
  return writeBundle((await bundleScript(source)).code);
}

function startMessage(context: HandlerContext<ScriptConfig>, file: string): ScriptStart {
  const { config, task, workdir, trace, answers, lastCheckpoint } = context;
  const { module, args } = config;
  const exportName = config.export ?? 'default';
  return { file, module, exportName, args, task, workdir, trace, answers, lastCheckpoint };
}

function forwardOutput(child: GuardedProcess, context: HandlerContext<ScriptConfig>): TextTail {
  const tail = new TextTail(TAIL_CHARS);
  child.stdout.setEncoding('utf8').on('data', (text: string) => context.log(text, 'stdout'));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    context.log(text, 'stderr');
    tail.add(text);
  });
  return tail;
}

async function converse(
  child: GuardedProcess,
  context: HandlerContext<ScriptConfig>,
  start: ScriptStart,
): Promise<{ outcome: ScriptEnd | null; code: number }> {
  const { leader } = child;
  const { signal } = context;
  let outcome: ScriptEnd | null = null;
  let leaving: NodeJS.Timeout | undefined;
  leader.on('message', (message) => {
    const parsed = scriptMessage.safeParse(message);
    const end = parsed.success ? hear(context, parsed.data) : null;
    if (end === null) return;
    outcome ??= end;
    leaving ??= setTimeout(child.end, LEAVE_MS);
  });
  // A script that is gone already cannot be told anything; how it went is what `exit` says.
  leader.send(start, () => {});
  signal.addEventListener('abort', child.end, { once: true });
  try {
    const { code } = await child.exit;
    return { outcome, code };
  } finally {
    clearTimeout(leaving);
    signal.removeEventListener('abort', child.end);
    if (leader.connected) leader.disconnect();
  }
}

/** Passes a message on to the attempt; gives it back when it is the last one. */
function hear(context: HandlerContext<ScriptConfig>, message: ScriptMessage): ScriptEnd | null {
  switch (message.type) {
    case 'log':
      context.log(message.text.endsWith('\n') ? message.text : `${message.text}\n`);
      return null;
    case 'progress':
      context.progress(message.fraction, message.message);
      return null;
    case 'checkpoint':
      context.checkpoint(message.value);
      return null;
    case 'usage':
      context.usage(message.usage);
      return null;
    case 'artifact': {
      const { name, content_type, base64 } = message;
      context.artifact({ name, content_type, bytes: Buffer.from(base64, 'base64') });
      return null;
    }
    default:
      return message;
  }
}

function finish(context: HandlerContext<ScriptConfig>, end: ScriptEnd): unknown {
  switch (end.type) {
    case 'returned':
      return end.value;
    case 'paused':
      return context.ask(end.question);
    case 'not_json': {
      const message = `the script returned a value that is not JSON: ${end.message}`;
      throw new AttemptFailure({ kind: 'output', problem: 'not_json' }, message);
    }
    case 'threw':
      throw thrownError(context, end);
    default:
      return unreachable(end);
  }
}

function thrownError(
  context: HandlerContext<ScriptConfig>,
  { name, message, stack, delayMs }: Extract<ScriptEnd, { type: 'threw' }>,
): Error {
  if (name === 'TerminalError') return new TerminalError(message);
  if (name === 'RetryAfter') return new RetryAfter(delayMs ?? 0, message);
  if (stack !== '') context.log(`${stack}\n`, 'stderr');
  const text = name === '' || name === 'Error' ? message : `${name}: ${message}`;
  return new AttemptFailure({ kind: 'thrown' }, text);
}
