/** Context snapshots (SPEC S12.4): immutable notes on a run or a task, each linked to the one it follows. */
import { randomUUID } from 'node:crypto';
import { RelayError } from '../base/errors.ts';
import type { RunRow, TaskRow } from '../stores/rows.ts';
import { cleanText } from '../worker/clean-text.ts';
import type { Work } from './work.ts';

const LABEL_CHARS_MAX = 1_000;

/** A note to append. */
export interface NewContext {
  readonly data: unknown;
  readonly label?: string;
  readonly parent_id?: string;
  readonly task_run_id?: string;
}

/** Appends a note to a run, or to one of its tasks; gives its id. */
export async function appendContext(
  work: Work,
  run: RunRow,
  snapshot: NewContext & { readonly by: string },
): Promise<string> {
  const { parent_id = null, label = null, by } = snapshot;
  const task = await checkContext(work, run, snapshot);
  const id = randomUUID();
  await work.tx.contexts.insert({
    id,
    run_key: run.key,
    task_key: task?.key ?? null,
    parent_id,
    label: label === null ? null : cleanText(label, LABEL_CHARS_MAX),
    data: JSON.stringify(snapshot.data ?? null),
    created_by: cleanText(by, LABEL_CHARS_MAX),
    created_at: work.now,
  });
  work.runEvent(run, 'context_snapshot.appended', { id, parent_id });
  return id;
}

/** The task that a note is on, if any; NOT_FOUND when it, or the note that this one follows, is not of the run. */
export async function checkContext(work: Work, run: RunRow, note: NewContext): Promise<TaskRow | null> {
  const { parent_id, task_run_id } = note;
  const task = task_run_id === undefined ? null : await work.tx.tasks.byId(task_run_id);
  if (task_run_id !== undefined && task?.run_key !== run.key)
    throw new RelayError('NOT_FOUND', `run ${run.id} has no task run ${task_run_id}`);
  const earlier = parent_id === undefined ? [] : await work.tx.contexts.ofRun(run.key);
  if (parent_id !== undefined && !earlier.some((row) => row.id === parent_id))
    throw new RelayError('NOT_FOUND', `run ${run.id} has no context snapshot ${parent_id}`);
  return task;
}
