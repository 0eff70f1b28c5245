/**
 * The words for where a task run and a run stand, and for why (SPEC S3.1, S3.3, S3.5).
 * Which status may follow which is not said here: that is `transitions.ts`.
 */

/** Every status of a task run, in the order of a life without accidents. */
export const TASK_STATUSES = Object.freeze([
  'PENDING',
  'READY',
  'QUEUED',
  'LEASED',
  'RUNNING',
  'BLOCKED',
  'WAITING_INPUT',
  'SUCCESS',
  'FAILED',
  'CANCELLED',
  'SKIPPED',
] as const);
/** The status of a task run. */
export type TaskStatus = (typeof TASK_STATUSES)[number];

/** The statuses in which a task run is over; only an operator's recorded action leaves them. */
export const TERMINAL_TASK_STATUSES = Object.freeze(['SUCCESS', 'FAILED', 'CANCELLED', 'SKIPPED'] as const);

/** The statuses in which a worker holds a lease; the lease columns are set in these and no others. */
export const LEASED_TASK_STATUSES = Object.freeze(['LEASED', 'RUNNING'] as const);

/** Every status of a run. */
export const RUN_STATUSES = Object.freeze([
  'PENDING',
  'RUNNING',
  'WAITING',
  'SUCCESS',
  'FAILED',
  'CANCELLED',
] as const);
/** The status of a run. */
export type RunStatus = (typeof RUN_STATUSES)[number];

/** What a task run that is not over can be waiting for. */
export const WAITING_FOR = Object.freeze([
  'dependency',
  'capacity',
  'limit',
  'budget',
  'pool',
  'person',
  'time',
  'paused',
] as const);
/** What one task run is waiting for. */
export type WaitingFor = (typeof WAITING_FOR)[number];

/** Why a dead task is FAILED: its tries are used up, or another try could not help. */
export type FailureReason = 'exhausted' | 'terminal';

/** Why a run is FAILED although no task of it need be: its time, its budget, or its `outputs`. */
export const STOP_REASONS = Object.freeze(['timeout', 'budget', 'outputs'] as const);
/** Why one run was stopped. */
export type StopReason = (typeof STOP_REASONS)[number];

const TERMINAL: ReadonlySet<string> = new Set(TERMINAL_TASK_STATUSES);

/** Whether a task run or a run with this status is over. */
export function isTerminal(status: TaskStatus | RunStatus): boolean {
  return TERMINAL.has(status);
}
