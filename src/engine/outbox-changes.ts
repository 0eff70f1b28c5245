/** What one transaction has to say to a broker: a message for every entry into QUEUED, none for a task that has left it (I9). */
import type { OutboxRow, TaskRow } from '../stores/rows.ts';
import type { Tx } from '../stores/store.ts';

/** The messages of one transaction. */
export class OutboxChanges {
  readonly #added = new Map<TaskRow, OutboxRow>();
  readonly #removed: number[] = [];
  readonly #heard = new Set<TaskRow>();

  /** A task has become QUEUED; one that is delayed is told of with its time, so that its timer need not. */
  enter(task: TaskRow, now: number): void {
    this.#added.set(task, outboxRow(task, now));
  }

  /** The message of a task has arrived: there is none left to take back. */
  hear(task: TaskRow): void {
    this.#heard.add(task);
  }

  /** A task is QUEUED no more. */
  leave(task: TaskRow): void {
    if (!this.#added.delete(task) && !this.#heard.has(task)) this.#removed.push(task.key);
  }

  async flush(tx: Tx): Promise<void> {
    await tx.outbox.remove(this.#removed);
    await tx.outbox.add([...this.#added.values()]);
  }
}

/** The message of a QUEUED task: it can start the next attempt and no other (SPEC S10.1). */
function outboxRow(task: TaskRow, now: number): OutboxRow {
  const { key: task_key, run_key, queue_key, priority, attempt, in_queue, not_before } = task;
  return {
    task_key,
    run_key,
    queue_key,
    rank: -priority,
    attempt: attempt + 1,
    due: in_queue,
    available_at: in_queue === 1 ? now : (not_before ?? now),
    created_at: now,
  };
}
