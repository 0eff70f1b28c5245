/**
 * The main module of a script's process: imports the bundle, calls the function as (args, ctx), and says how it ended. It
 * must not import anything that is slow to load. A TERM aborts `ctx.signal`; a script that does not listen ends at once.
 */
import { getEventListeners } from 'node:events';
import { env } from 'node:process';
import { pathToFileURL } from 'node:url';
import type { ScriptEnd, ScriptMessage, ScriptQuestion, ScriptStart } from './messages.ts';

const TERM_EXIT_CODE = 143;
const stopping = new AbortController();
let question: ScriptQuestion | null = null;
let isEnding = false;

process.once('message', (start) => {
  void callFunction(start as ScriptStart).then(finish, (error: unknown) => finish(describeThrown(error)));
});
process.on('uncaughtException', (error: unknown) => finish(describeThrown(error)));
process.on('SIGTERM', () => {
  if (getEventListeners(stopping.signal, 'abort').length === 0) process.exit(TERM_EXIT_CODE);
  stopping.abort();
});

async function callFunction(start: ScriptStart): Promise<ScriptEnd> {
  const module = (await import(pathToFileURL(start.file).href)) as Record<string, unknown>;
  const call = module[start.exportName];
  if (typeof call !== 'function') {
    const exported = Object.keys(module).join(', ') || 'nothing';
    const message = `${start.module} has no function \`${start.exportName}\`; it exports ${exported}`;
    return { type: 'threw', name: 'TerminalError', message, stack: '' };
  }
  return { type: 'returned', value: (await call(start.args, scriptContext(start))) as unknown };
}

function scriptContext(start: ScriptStart): Readonly<Record<string, unknown>> {
  const { task, workdir, trace, answers, lastCheckpoint } = start;
  return Object.freeze({
    task,
    workdir,
    trace,
    answers,
    lastCheckpoint,
    env,
    signal: stopping.signal,
    log: (text: unknown) => say({ type: 'log', text: String(text) }),
    progress: (fraction: number, message?: string) =>
      say({ type: 'progress', fraction, ...(message === undefined ? {} : { message }) }),
    checkpoint: (value: unknown) => say({ type: 'checkpoint', value }),
    usage: (usage: object) => say({ type: 'usage', usage }),
    artifact: (artifact: { name: string; content_type?: string; bytes: string | Uint8Array }) =>
      say({
        type: 'artifact',
        name: artifact.name,
        content_type: artifact.content_type ?? 'application/octet-stream',
        base64: Buffer.from(artifact.bytes as Uint8Array).toString('base64'),
      }),
    ask: (asked: ScriptQuestion) => {
      if (Object.hasOwn(answers, asked.key)) return answers[asked.key];
      question = asked;
      throw new PauseSignal('waiting for an answer');
    },
  });
}

/** Ends the function where it asks; which question it was is kept aside, as the error may be wrapped on its way. */
class PauseSignal extends Error {
  override readonly name = 'PauseSignal';
}

function say(message: ScriptMessage, then?: () => void): void {
  process.send?.(message, undefined, undefined, then);
}

function describeThrown(error: unknown): ScriptEnd {
  if (question !== null) return { type: 'paused', question };
  if (!(error instanceof Error)) return { type: 'threw', name: '', message: String(error), stack: '' };
  const { name, message, stack = '' } = error;
  const delayMs = 'delayMs' in error && typeof error.delayMs === 'number' ? { delayMs: error.delayMs } : {};
  return { type: 'threw', name, message, stack, ...delayMs };
}

/** Tells the worker, lets pending output out, and leaves. Only the first end counts. */
function finish(end: ScriptEnd): void {
  if (isEnding) return;
  isEnding = true;
  const leave = (): void => {
    process.stdout.write('', () => process.stderr.write('', () => process.exit(0)));
  };
  try {
    say(end, leave);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    say({ type: 'not_json', message }, leave);
  }
}
