/** A terminal task goes back to PENDING, by a recorded action of an operator only (TRANSITIONS 35–37). What it does next is the caller's matter. */
import type { TaskRow } from '../stores/rows.ts';
import { forgetNeeds } from './task-limits.ts';
import type { Work } from './work.ts';

/** Clears what the task has done; `gate` lets its decisions be taken again, the list of a map included. */
export function resetTask(
  work: Work,
  task: TaskRow,
  what: { readonly attempts: boolean; readonly gate: boolean; readonly generation: boolean },
): void {
  work.move(task, 'PENDING', { event: 'task.replayed', by: 'operator' });
  forgetNeeds(task);
  if (what.attempts) {
    task.attempts_spent = 0;
    task.losses = 0;
    task.releases = 0;
    task.unstarted = 0;
  }
  if (what.gate) {
    task.gate = null;
    task.answers = null;
    task.map_size = null;
    task.map_failed = 0;
    task.map_slots = null;
  }
  if (what.generation) {
    task.generation += 1;
    task.checkpoint = null;
  }
  task.question = null;
  task.question_id = null;
  task.error = null;
  task.output_attempt = null;
  task.finished_at = null;
  task.started_at = null;
  task.not_before = null;
  task.progress = null;
  task.message = null;
}
