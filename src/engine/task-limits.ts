/** What a task asks of limits and budgets, as its row keeps it (`task_runs.limits`), and where it is held back. */
import type { Amount, Ask, ModelNeed } from '../domain/limits.ts';
import type { HeldRow, TaskRow } from '../stores/rows.ts';

/** What an attempt under way was granted by one limit. */
export interface Share extends Ask {
  readonly limit: string;
  /** The models it is for; null is all that the attempt asks. */
  readonly models: readonly string[] | null;
  /** From when it ages; far away where several requests may be made. */
  readonly spent_at: number;
}

/** A share before it is given. */
export type NewShare = Omit<Share, 'spent_at'>;

/** The wishes of a task and how far they have come. */
export interface TaskLimits {
  /** Limits that the workflow names. */
  readonly names: readonly string[];
  /** Whether its handler calls models and can say beforehand what it will ask of them. */
  readonly model: boolean;
  /** What it will ask of models; null until it is worked out. */
  readonly needs: readonly ModelNeed[] | null;
  /** Where it is held back. */
  readonly place: string | null;
  /** What the attempt under way was granted. */
  readonly shares: readonly Share[];
  /** What it has reserved of its run's budget. */
  readonly reserved: Amount | null;
}

/** Held back until it is worked out what the task will ask. */
export const TO_ESTIMATE = ':estimate';
/** Held back until the budget of its run has room. */
export const AT_BUDGET = ':budget';

/** The text for a new row; null when the task asks nothing. */
export function newTaskLimits(names: readonly string[], model: boolean): string | null {
  if (names.length === 0 && !model) return null;
  const limits: TaskLimits = { names, model, needs: null, place: null, shares: [], reserved: null };
  return JSON.stringify(limits);
}

/** What a row says; a row without a text asks nothing. */
export function readLimits(task: TaskRow): TaskLimits | null {
  return task.limits === null ? null : (JSON.parse(task.limits) as TaskLimits);
}

/** Changes what a row says. */
export function writeLimits(task: TaskRow, limits: TaskLimits, change: Partial<TaskLimits>): void {
  task.limits = JSON.stringify({ ...limits, ...change });
}

/** Whether a limit or a budget holds the task back. */
export function isHeldBack(task: TaskRow): boolean {
  return task.status === 'READY' && (task.waiting_for === 'limit' || task.waiting_for === 'budget');
}

/** The row that finds a held task. */
export function heldRow(task: TaskRow, place: string): HeldRow {
  return {
    place,
    queue_key: task.queue_key,
    rank: -task.priority,
    task_key: task.key,
    run_key: task.run_key,
  };
}

/** The task starts again: what it will ask may be another. */
export function forgetNeeds(task: TaskRow): void {
  const limits = readLimits(task);
  if (limits !== null) writeLimits(task, limits, { needs: null });
}
