/**
 * Why an attempt failed: the classes of SPEC S5.1 as data, and the one place that turns raw facts into class and code
 * (SPEC S5.2). Whether a failure leads to another try also depends on the task's policy: that is `retry.ts`.
 */
import { invariant, unreachable } from '../base/invariant.ts';
import { classifyNetworkCode } from './network-failure.ts';

/** Every class with the codes Relay itself gives in it; a handler may add codes of its own. */
export const FAILURE_CODES = Object.freeze({
  transport: [
    'DNS_FAILED',
    'CONNECTION_REFUSED',
    'CONNECTION_RESET',
    'NETWORK_FAILED',
    'TLS_FAILED',
    'CERTIFICATE_INVALID',
    'BAD_URL',
    'ANSWER_MALFORMED',
  ],
  timeout: ['TIMEOUT', 'CONNECTION_TIMEOUT'],
  http: ['HTTP_STATUS'],
  output: [
    'OUTPUT_NOT_JSON',
    'OUTPUT_SCHEMA',
    'OUTPUT_MISSING',
    'OUTPUT_EMPTY',
    'OUTPUT_TOO_LONG',
    'OUTPUT_TRUNCATED',
  ],
  budget: ['BUDGET_EXCEEDED'],
  limit: ['LIMIT_IMPOSSIBLE'],
  template: ['TEMPLATE_FAILED'],
  rejected: ['REJECTED'],
  worker_lost: ['WORKER_LOST'],
  handler: ['HANDLER_THREW', 'HANDLER_EXIT', 'HANDLER_TERMINAL'],
} as const satisfies Record<string, readonly string[]>);

/** The class of a failure. */
export type FailureClass = keyof typeof FAILURE_CODES;
/** A code that Relay itself gives. */
type FailureCode = (typeof FAILURE_CODES)[FailureClass][number];

/** What a person can do about a failure of each class. */
export const ADVICE: Readonly<Record<FailureClass, string>> = Object.freeze({
  transport: 'Check the host name, the port, the certificate and that this machine may reach the service.',
  timeout: 'Raise `timeout` (or `request_timeout`), or give the task less to do.',
  http: 'Read the answer in the message; check URL, credentials and request, or add the status to `expect`.',
  output:
    'Look at the raw output; loosen `output`, ask for the format in the prompt, or allow `output.repair`.',
  budget: 'Raise the budget with `relay runs retry --budget`, or lower `max_tokens`.',
  limit: 'The request is larger than the named limit allows; raise the limit or make the request smaller.',
  template:
    'Mend the expression the message names; `relay validate` finds most of these before a run starts.',
  rejected: 'A person said no, or nobody answered in time; rerun the task to ask again.',
  worker_lost:
    'See why the worker went away (memory, eviction, host); raise `max_losses` if that is ordinary.',
  handler: 'Read the error and the task log; mend the script or command and replay the task.',
});

/** A failure as it is stored and shown. */
export interface TaskFailure {
  readonly class: FailureClass;
  /** A `FailureCode`, or a handler's own. */
  readonly code: string;
  readonly message: string;
  readonly attempt?: number;
  /** The HTTP status, when there was one. */
  readonly status?: number;
  /** The other side's own word for it, such as `insufficient_quota`. */
  readonly provider_code?: string;
  /** How long the other side asked to be left alone. */
  readonly retryAfterMs?: number;
  readonly hint?: string;
}

/** What can be wrong with an output. */
export type OutputProblem = 'not_json' | 'schema' | 'missing' | 'empty' | 'too_long' | 'truncated';

/** What happened, before it has a class. */
export type FailureFacts =
  | { readonly kind: 'http'; readonly status: number; readonly expect?: readonly number[] }
  | { readonly kind: 'network'; readonly code: string }
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'output'; readonly problem: OutputProblem }
  | { readonly kind: 'timeout' | 'thrown' | 'template' | 'rejected' | 'budget' }
  | { readonly kind: 'limit' | 'worker_lost' | 'bad_url' | 'malformed' | 'terminal' };

/** A class, a code, and whether another try may help. */
export interface Classified {
  readonly class: FailureClass;
  readonly code: FailureCode;
  readonly retryable: boolean;
}

/** The class and code of what happened; output errors count as retryable, and the policy has the last word on them. */
export function classify(facts: FailureFacts): Classified {
  const named = nameOf(facts);
  const status = facts.kind === 'http' ? { status: facts.status } : {};
  return { ...named, retryable: isRetryable({ ...named, ...status }) };
}

/** Whether another try may help, by class, code and status alone. */
export function isRetryable(failure: Pick<TaskFailure, 'class' | 'code' | 'status'>): boolean {
  if (NEVER_RETRIED_CLASSES.has(failure.class) || NEVER_RETRIED_CODES.has(failure.code)) return false;
  return failure.class !== 'http' || (failure.status !== undefined && isRetryableStatus(failure.status));
}

/** Whether an HTTP status is a success for a request: one of `expect`, or any 2xx when nothing is said. */
export function isExpectedStatus(status: number, expect?: readonly number[]): boolean {
  return expect === undefined ? status >= 200 && status <= 299 : expect.includes(status);
}

const NEVER_RETRIED_CLASSES: ReadonlySet<FailureClass> = new Set(['budget', 'limit', 'template', 'rejected']);
const NEVER_RETRIED_CODES: ReadonlySet<string> = new Set<FailureCode>([
  'BAD_URL',
  'CERTIFICATE_INVALID',
  'HANDLER_TERMINAL',
]);

const OUTPUT_CODES: Readonly<Record<OutputProblem, FailureCode>> = Object.freeze({
  not_json: 'OUTPUT_NOT_JSON',
  schema: 'OUTPUT_SCHEMA',
  missing: 'OUTPUT_MISSING',
  empty: 'OUTPUT_EMPTY',
  too_long: 'OUTPUT_TOO_LONG',
  truncated: 'OUTPUT_TRUNCATED',
});

function nameOf(facts: FailureFacts): Omit<Classified, 'retryable'> {
  switch (facts.kind) {
    case 'http':
      invariant(!isExpectedStatus(facts.status, facts.expect), 'an expected status is not a failure');
      return { class: 'http', code: 'HTTP_STATUS' };
    case 'network':
      return classifyNetworkCode(facts.code);
    case 'bad_url':
      return { class: 'transport', code: 'BAD_URL' };
    case 'malformed':
      return { class: 'transport', code: 'ANSWER_MALFORMED' };
    case 'timeout':
      return { class: 'timeout', code: 'TIMEOUT' };
    case 'exit':
      return { class: 'handler', code: 'HANDLER_EXIT' };
    case 'thrown':
      return { class: 'handler', code: 'HANDLER_THREW' };
    case 'terminal':
      return { class: 'handler', code: 'HANDLER_TERMINAL' };
    case 'output':
      return { class: 'output', code: OUTPUT_CODES[facts.problem] };
    case 'template':
      return { class: 'template', code: 'TEMPLATE_FAILED' };
    case 'rejected':
      return { class: 'rejected', code: 'REJECTED' };
    case 'budget':
      return { class: 'budget', code: 'BUDGET_EXCEEDED' };
    case 'limit':
      return { class: 'limit', code: 'LIMIT_IMPOSSIBLE' };
    case 'worker_lost':
      return { class: 'worker_lost', code: 'WORKER_LOST' };
    default:
      return unreachable(facts);
  }
}

function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || (status >= 500 && status <= 599);
}
