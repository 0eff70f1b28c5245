/** Actions of an operator on a run: cancel, pause, resume, close. Each sets the truth at once; large runs are swept behind it. */
import { RelayError } from '../base/errors.ts';
import { isTerminal } from '../domain/states.ts';
import type { RunRow, TaskRow } from '../stores/rows.ts';
import { admit, advance, cancelChunk, cancelTask } from './advance.ts';
import { isExpanded, retireItems } from './map-row.ts';
import type { Work } from './work.ts';

/** Cancels a run; repeating it changes nothing. A run that has ended otherwise is RUN_TERMINAL. */
export async function cancelRun(work: Work, run: RunRow, by: string): Promise<void> {
  if (run.cancelled === 1) return;
  requireActive(run);
  run.cancelled = 1;
  work.runEvent(run, 'run.cancelled', { by });
  const position = await cancelChunk(work, run, 0);
  if (position !== null)
    work.addCursor({ kind: 'cancel', run_key: run.key, subject: run.key, position, data: null });
  await advance(work);
}

/** Cancels one task, a map with its items; its descendants are skipped, and the rest follows the run's policy. */
export async function cancelOneTask(work: Work, task: TaskRow): Promise<void> {
  if (task.status === 'CANCELLED') return;
  if (isTerminal(task.status)) throw new RelayError('RUN_TERMINAL', `task ${task.task_id} is ${task.status}`);
  const hasItems = isExpanded(task);
  cancelTask(work, task, 'cancelled');
  if (hasItems) retireItems(work, task);
  await advance(work);
}

/** No new hand-outs; leased work finishes and people may answer. */
export function pauseRun(work: Work, run: RunRow, by: string): void {
  if (run.paused === 1) return;
  requireActive(run);
  run.paused = 1;
  work.runEvent(run, 'run.paused', { by });
}

/** Undoes a pause. */
export async function resumeRun(work: Work, run: RunRow, by: string): Promise<void> {
  if (run.paused === 0) return;
  run.paused = 0;
  work.runEvent(run, 'run.resumed', { by });
  await admit(work);
}

/** An open run takes no more tasks and ends when what it has is done; one that never got a task ends as CANCELLED. */
export async function closeRun(work: Work, run: RunRow, by: string): Promise<void> {
  if (isTerminal(run.status)) return;
  run.is_open = 0;
  work.changeRun(run);
  const total =
    run.n_pending +
    run.n_moving +
    run.n_waiting +
    run.n_success +
    run.n_failed +
    run.n_cancelled +
    run.n_skipped;
  if (total === 0) await cancelRun(work, run, by);
}

function requireActive(run: RunRow): void {
  if (isTerminal(run.status)) throw new RelayError('RUN_TERMINAL', `run ${run.id} is ${run.status}`);
}
