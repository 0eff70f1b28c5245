/** What a run counts of its tasks, and what follows from the counts: its status and its active time (SPEC S1.2, S3.3). */
import { type CounterClass, classOf, deriveRunStatus } from '../domain/run-status.ts';
import type { RunStatus } from '../domain/states.ts';
import type { RunRow, TaskRow, TimerRow } from '../stores/rows.ts';
import { runSettings } from './run-settings.ts';

type Counter = `n_${CounterClass}`;

const COUNTERS: Readonly<Record<CounterClass, Counter>> = Object.freeze({
  pending: 'n_pending',
  moving: 'n_moving',
  waiting: 'n_waiting',
  success: 'n_success',
  failed: 'n_failed',
  tolerated: 'n_tolerated',
  cancelled: 'n_cancelled',
  skipped: 'n_skipped',
});

/** The counter that a task is counted by. */
export function counterOf(task: TaskRow): Counter {
  return COUNTERS[classOf(task.status, { tolerated: task.is_tolerated === 1 })];
}

/** The status that follows from the counters alone. */
export function statusOf(run: RunRow): RunStatus {
  const counters = {
    pending: run.n_pending,
    moving: run.n_moving,
    waiting: run.n_waiting,
    success: run.n_success,
    failed: run.n_failed,
    tolerated: run.n_tolerated,
    cancelled: run.n_cancelled,
    skipped: run.n_skipped,
  };
  return deriveRunStatus(counters, {
    paused: run.paused === 1,
    leased: run.n_leased > 0,
    cancelled: run.cancelled === 1,
    stopReason: run.stop_reason,
    unlocking: run.n_cursors > 0,
    open: run.is_open === 1,
  });
}

/** Time waiting for people or paused does not count against the run's timeout; gives the timer that watches over it. */
export function countActiveTime(run: RunRow, now: number, isActive: boolean): TimerRow | null {
  if (run.active_since !== null) run.active_ms += Math.max(0, now - run.active_since);
  run.active_since = isActive ? now : null;
  run.started_at ??= isActive ? now : null;
  const { timeout_ms } = runSettings(run);
  if (!isActive || timeout_ms === null) return null;
  const due_at = now + Math.max(0, timeout_ms - run.active_ms);
  return { due_at, kind: 'run_timeout', subject: run.key };
}

/** Rows that one transaction moves because of one parent or one stopped run. */
export const CHUNK = 500;

/** With no more tasks than this ready or in the queue, a run can take another chunk of children without leaving them READY. */
export function fewOf(run: RunRow): number {
  return Math.max(runSettings(run).window - CHUNK, CHUNK / 2);
}

/** Whether a run has few tasks that are ready or in the queue. */
export function hasFew(run: RunRow): boolean {
  return run.n_ready + run.n_queued <= fewOf(run);
}
