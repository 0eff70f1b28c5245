/**
 * A run's status from how many of its task runs are in which class (SPEC S3.3), without looking at any of them.
 * Claim, start and release stay inside the class `moving`, so they touch no run. Keeping the counters durable is the
 * store's work; no counter is ever negative.
 */
import { invariant } from '../base/invariant.ts';
import type { RunStatus, StopReason, TaskStatus } from './states.ts';

/** The classes that a run counts its task runs by. */
const COUNTER_CLASSES = Object.freeze([
  'pending',
  'moving',
  'waiting',
  'success',
  'failed',
  'tolerated',
  'cancelled',
  'skipped',
] as const);
/** The class that a task run is counted in. */
export type CounterClass = (typeof COUNTER_CLASSES)[number];

/** How many task runs of one run are in each class. */
export type RunCounters = Readonly<Record<CounterClass, number>>;

/** What else the status of a run depends on. */
export interface RunFacts {
  readonly paused: boolean;
  /** Whether any task run holds a lease; it matters only while the run is paused. */
  readonly leased: boolean;
  /** Whether the run as a whole was cancelled. */
  readonly cancelled: boolean;
  readonly stopReason: StopReason | null;
  /** Whether a durable cursor still has task runs to unlock or to make. */
  readonly unlocking: boolean;
  /** Whether the run was started with `auto_close: false` and is not closed yet. */
  readonly open: boolean;
}

/** The counters of a run without task runs. */
export const NO_TASKS: RunCounters = Object.freeze({
  pending: 0,
  moving: 0,
  waiting: 0,
  success: 0,
  failed: 0,
  tolerated: 0,
  cancelled: 0,
  skipped: 0,
});

const CLASS_OF: Readonly<Record<TaskStatus, CounterClass>> = Object.freeze({
  PENDING: 'pending',
  READY: 'moving',
  QUEUED: 'moving',
  LEASED: 'moving',
  RUNNING: 'moving',
  BLOCKED: 'waiting',
  WAITING_INPUT: 'waiting',
  SUCCESS: 'success',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
  SKIPPED: 'skipped',
});

/** The status of a run: the first rule of SPEC S3.3 that fits. */
export function deriveRunStatus(counters: RunCounters, facts: RunFacts): RunStatus {
  const unfinished = counters.pending + counters.moving + counters.waiting;
  return unfinished > 0 || facts.unlocking ? statusOfActive(counters, facts) : statusOfIdle(counters, facts);
}

/** The class a task run counts in; a FAILED one whose failure is tolerated is counted apart. */
export function classOf(status: TaskStatus, { tolerated }: { readonly tolerated: boolean }): CounterClass {
  return status === 'FAILED' && tolerated ? 'tolerated' : CLASS_OF[status];
}

/** The counters after one task run went from a class to another; `none` is a task run that is new. */
export function applyMove(counters: RunCounters, from: CounterClass | 'none', to: CounterClass): RunCounters {
  if (from === to) return counters;
  const next = { ...counters };
  if (from !== 'none') {
    invariant(counters[from] > 0, `no task run is counted as ${from}, so none can leave it`);
    next[from] -= 1;
  }
  next[to] += 1;
  return Object.freeze(next);
}

function statusOfActive(counters: RunCounters, facts: RunFacts): RunStatus {
  if (facts.paused && !facts.leased) return 'WAITING';
  if (counters.moving > 0 || facts.unlocking) return 'RUNNING';
  if (counters.waiting > 0) return 'WAITING';
  // Only PENDING rows and nobody to wake them: seen in the middle of a transaction, never after one.
  return 'RUNNING';
}

function statusOfIdle(counters: RunCounters, facts: RunFacts): RunStatus {
  const total = COUNTER_CLASSES.reduce((sum, name) => sum + counters[name], 0);
  if (facts.cancelled) return 'CANCELLED';
  if (facts.stopReason !== null) return 'FAILED';
  // Cancel and stop come before "no task yet": an open run that never got a task must not hang in PENDING for ever.
  if (total === 0) return 'PENDING';
  // An idle open run may get more tasks, also after a failure (SPEC S4.10); cancel and stop end it all the same.
  if (facts.open) return 'WAITING';
  if (counters.failed > 0) return 'FAILED';
  return counters.cancelled === total ? 'CANCELLED' : 'SUCCESS';
}
