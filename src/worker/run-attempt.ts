/** One attempt from lease to settlement: config, handler, output, and what a stop means for the result (SPEC S5, S6.3, S7.2). */
import type { z } from 'zod';
import { AttemptFailure } from '../domain/attempt-failure.ts';
import { type Handler, TerminalError } from '../handlers/handler.ts';
import type { Attempt } from './attempt.ts';
import { checkOutput } from './check-output.ts';
import { type ContextHost, createContext } from './handler-context.ts';
import { toJsonValue } from './json-value.ts';
import { PauseSignal } from './pause-signal.ts';
import { timeoutFailure, toFailure } from './to-failure.ts';
import type { OutputSpec, Settlement } from './work-source.ts';

/** What running attempts needs from the worker. */
export interface AttemptHost extends ContextHost {
  readonly handlers: ReadonlyMap<string, Handler>;
}

/** How long a task that this worker cannot run is left for others. */
const NOT_SERVED_DELAY_MS = 5_000;

/** Runs the handler to its end and says how to settle; null when there is nothing left to settle. */
export async function runAttempt(attempt: Attempt, host: AttemptHost): Promise<Settlement | null> {
  const { lease } = attempt;
  const handler = host.handlers.get(lease.handler);
  if (handler === undefined) {
    return { kind: 'release', lease_id: lease.lease_id, delay_ms: NOT_SERVED_DELAY_MS };
  }
  try {
    const config = parseConfig(handler, lease.config);
    const value = await handler.run(createContext(attempt, config, host));
    if (attempt.isOver) return null;
    const output = value === undefined ? undefined : asJson(value);
    if (lease.output !== null) await requireFitting(lease.output, output);
    return settleReturned(attempt, completion(attempt, output), host);
  } catch (error) {
    return settleThrown(attempt, error, host);
  }
}

/** How a stopped attempt is settled: only running out of time spends an attempt, and a lost lease leaves nothing to say. */
export function settleStopped(attempt: Attempt, host: AttemptHost): Settlement | null {
  const { lease, stopCause } = attempt;
  if (stopCause === 'lost') return null;
  if (stopCause !== 'timeout') return { kind: 'release', lease_id: lease.lease_id, ...usageOf(attempt) };
  const failure = timeoutFailure(lease.timeout_ms, { attempt: lease.attempt, redact: host.redact });
  return { kind: 'fail', lease_id: lease.lease_id, failure, ...usageOf(attempt), ...artifactsOf(attempt) };
}

/** How an attempt is settled when not even its error could be understood. */
export function settleCrashed({ lease }: Attempt, error: unknown): Settlement {
  const message = `Relay could not settle the attempt: ${error instanceof Error ? error.message : String(error)}`;
  const failure = { class: 'handler', code: 'HANDLER_THREW', message, attempt: lease.attempt } as const;
  return { kind: 'fail', lease_id: lease.lease_id, failure };
}

function parseConfig(handler: Handler, config: unknown): unknown {
  const parsed = handler.config.safeParse(config);
  if (parsed.success) return parsed.data;
  throw new TerminalError(`\`with\` is not what ${handler.name} takes: ${describeIssues(parsed.error)}`);
}

function describeIssues(error: z.ZodError): string {
  return error.issues
    .slice(0, 5)
    .map(({ path, message }) => (path.length === 0 ? message : `\`${path.join('.')}\`: ${message}`))
    .join('; ');
}

async function requireFitting(spec: OutputSpec, output: unknown): Promise<void> {
  const fault = await checkOutput(spec, output);
  if (fault === null) return;
  throw new AttemptFailure({ kind: 'output', problem: fault.problem }, fault.message);
}

function completion(attempt: Attempt, output: unknown): Settlement {
  const settlement = { kind: 'complete', lease_id: attempt.lease.lease_id, output: output ?? null } as const;
  if (attempt.usage === null && attempt.artifacts === null) return settlement;
  return { ...settlement, ...usageOf(attempt), ...artifactsOf(attempt) };
}

function asJson(value: unknown): unknown {
  try {
    return toJsonValue(value);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const message = `the handler returned a value that is not JSON: ${reason}`;
    throw new AttemptFailure({ kind: 'output', problem: 'not_json' }, message, { cause: error });
  }
}

/** A result counts unless the attempt was too late, cancelled or lost; past the lease it is offered, and fenced if need be. */
function settleReturned(attempt: Attempt, settlement: Settlement, host: AttemptHost): Settlement | null {
  const isStillWanted = attempt.stopCause === 'expired' || attempt.stopCause === 'shutdown';
  return attempt.stopCause === null || isStillWanted ? settlement : settleStopped(attempt, host);
}

/** What is thrown after a stop is the stop's doing, not a failure; a question that was asked in time still counts. */
function settleThrown(attempt: Attempt, error: unknown, host: AttemptHost): Settlement | null {
  const { lease, question, stopCause } = attempt;
  const isStillWanted = stopCause === null || stopCause === 'expired' || stopCause === 'shutdown';
  if (question !== null && isStillWanted) {
    const { status = 'WAITING_INPUT', ...asked } = question;
    return { kind: 'pause', lease_id: lease.lease_id, status, question: asked, ...usageOf(attempt) };
  }
  if (stopCause !== null) return settleStopped(attempt, host);
  if (isUnexpected(error)) host.log(attempt, 'stderr', `${error.stack}\n`);
  const failure = toFailure(error, { attempt: lease.attempt, redact: host.redact });
  return { kind: 'fail', lease_id: lease.lease_id, failure, ...usageOf(attempt), ...artifactsOf(attempt) };
}

/** Errors that name their own cause need no stack; any other does, in the log. */
function isUnexpected(error: unknown): error is Error {
  if (!(error instanceof Error) || error.stack === undefined) return false;
  return !(error instanceof AttemptFailure || error instanceof PauseSignal) && error.name !== 'TerminalError';
}

/** Files of a failed attempt count too: they show what went wrong. */
function artifactsOf({ artifacts }: Attempt): { artifacts?: NonNullable<Attempt['artifacts']> } {
  return artifacts === null ? {} : { artifacts };
}

function usageOf({ usage }: Attempt): { usage?: NonNullable<Attempt['usage']> } {
  return usage === null ? {} : { usage };
}
