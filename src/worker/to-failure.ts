/** From whatever a handler threw to the failure that is stored (SPEC S5.1, S5.2). */
import { AttemptFailure } from '../domain/attempt-failure.ts';
import { classify, type FailureFacts, type TaskFailure } from '../domain/failure.ts';
import { cleanText } from './clean-text.ts';

const MESSAGE_CHARS_MAX = 4_000;

/** Who failed, and how secrets are kept out of what is said about it. */
export interface FailureContext {
  readonly attempt: number;
  readonly redact: (text: string) => string;
}

/** The failure that a thrown value stands for. `TerminalError` and `RetryAfter` are known by name: they may be copies. */
export function toFailure(thrown: unknown, context: FailureContext): TaskFailure {
  if (thrown instanceof AttemptFailure) {
    return describe(thrown.facts, thrown.message, context, thrown.extra);
  }
  if (!(thrown instanceof Error)) return describe({ kind: 'thrown' }, String(thrown), context);
  const { name, message } = thrown;
  if (name === 'TerminalError') return describe({ kind: 'terminal' }, message, context);
  if (name === 'RetryAfter' && 'delayMs' in thrown && typeof thrown.delayMs === 'number') {
    const retryAfterMs = Number.isFinite(thrown.delayMs) ? Math.max(0, thrown.delayMs) : 0;
    return describe({ kind: 'thrown' }, message, context, { retryAfterMs });
  }
  const text = name === 'Error' || name === '' ? message : `${name}: ${message}`;
  return describe({ kind: 'thrown' }, text === '' ? 'an error without a message' : text, context);
}

/** The failure of an attempt that took too long. */
export function timeoutFailure(timeoutMs: number, context: FailureContext): TaskFailure {
  return describe({ kind: 'timeout' }, `the attempt took longer than ${timeoutMs} ms`, context);
}

function describe(
  facts: FailureFacts,
  message: string,
  { attempt, redact }: FailureContext,
  extra: Partial<TaskFailure> = {},
): TaskFailure {
  const { class: failureClass, code } = classify(facts);
  const text = cleanText(redact(message), MESSAGE_CHARS_MAX);
  return { class: failureClass, code, ...extra, message: text, attempt };
}
