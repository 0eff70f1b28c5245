/** What a completion brings along in its own transaction: tasks for its run (SPEC S4.10) and notes (S12.4). */
import { RelayError } from '../base/errors.ts';
import { classify, type TaskFailure } from '../domain/failure.ts';
import type { TaskRow } from '../stores/rows.ts';
import { appendContext, checkContext, type NewContext } from './context-snapshot.ts';
import type { NamedTask } from './new-tasks.ts';
import type { Plans } from './plans.ts';
import { addTasks, checkNewTasks } from './submit.ts';
import type { Work } from './work.ts';

/** Tasks and notes of a completion. */
export interface Companions {
  readonly tasks: readonly NamedTask[];
  readonly notes: readonly NewContext[];
}

/** Why a completion cannot bring these along, as a failure of its attempt; null when it can. Changes nothing. */
export async function refuseCompanions(
  work: Work,
  task: TaskRow,
  companions: Companions,
): Promise<TaskFailure | null> {
  const run = work.runOf(task);
  try {
    if (companions.tasks.length > 0) await checkNewTasks(work, run, companions.tasks);
    for (const note of companions.notes) await checkContext(work, run, note);
    return null;
  } catch (error) {
    if (!(error instanceof RelayError)) throw error;
    const { class: failureClass, code } = classify({ kind: 'output', problem: 'schema' });
    return { class: failureClass, code, message: error.message };
  }
}

/** Adds what was checked. */
export async function addCompanions(
  work: Work,
  task: TaskRow,
  { companions, plans }: { companions: Companions; plans: Plans },
): Promise<void> {
  const run = work.runOf(task);
  const by = task.leased_by ?? `task ${task.task_id}`;
  if (companions.tasks.length > 0) await addTasks(work, run, companions.tasks, plans);
  for (const note of companions.notes) await appendContext(work, run, { ...note, task_run_id: task.id, by });
}
