/** Messages that the broker has refused too often: recorded as such, and given another chance by an operator (SPEC S10.7). */
import type { OutboxOutcome, Tx } from '../stores/store.ts';
import { LimitBook } from './limit-book.ts';
import { Work } from './work.ts';

/** Puts them back into the outbox; those whose tasks have moved on are only taken off the list. Returns how many went back. */
export async function replayDeadLetters(work: Work, keys: readonly number[], by: string): Promise<number> {
  const replayed = await work.tx.outbox.replay(keys, work.now);
  const tasks = await work.tasks(replayed);
  for (const task of tasks) work.note(task, { event: 'outbox.replayed', data: { by } });
  if (tasks.length > 0) work.aftermath.hasQueued = true;
  return tasks.length;
}

/** Records what became of messages; each that is dead is an event of its task. Returns the keys that were still the owner's. */
export async function settleOutbox(tx: Tx, outcome: OutboxOutcome): Promise<ReadonlySet<number>> {
  if (outcome.dead.length === 0) return new Set(await tx.outbox.settle(outcome));
  const work = new Work(tx, outcome.now, { book: new LimitBook(), hasBroker: false });
  const errors = new Map(outcome.dead.map((row) => [row.task_key, row]));
  // Runs first, as everywhere: an event of a task is written under the lock of its run.
  const tasks = await work.tasks(errors.keys());
  const own = new Set(await tx.outbox.settle(outcome));
  for (const task of tasks.filter(({ key }) => own.has(key))) {
    const { retries, last_error } = errors.get(task.key) ?? {};
    work.note(task, { event: 'outbox.dead_lettered', data: { retries, error: last_error } });
  }
  await work.flush();
  return own;
}
