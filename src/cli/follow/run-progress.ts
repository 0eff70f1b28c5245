/** How far a run is, kept up to date from its events alone: one line per task, in the order of the graph. */
import type { EventView, RelayApi, RunSummary } from '../../app/api.ts';
import { buildGraph, phases } from '../../domain/graph.ts';
import { isTerminal, type RunStatus, type TaskStatus } from '../../domain/states.ts';

/** What a view can show of one task. Times are milliseconds. */
export interface TaskProgress {
  readonly task_id: string;
  task_run_id: string | null;
  status: TaskStatus;
  attempt: number;
  reason: string | null;
  startedAt: number | null;
  finishedAt: number | null;
  /** When a task that is to be tried again may start. */
  notBefore: number | null;
  /** The last error, as one line. */
  error: string | null;
  progress: number | null;
  /** What the task says of itself, or the last line that it logged. */
  message: string | null;
  /** How far a map is; its items have no lines of their own. */
  items: ItemProgress | null;
}

/** The items of a map, counted. */
interface ItemProgress {
  total: number;
  done: number;
  failed: number;
  working: number;
}

/** A change of one task or item, for views that print every change. */
export interface TaskChange {
  /** The line of the task; of an item, that of its map. */
  readonly task: TaskProgress;
  readonly event: EventView;
}

/** A run and its tasks as far as their events have been read. */
export class RunProgress {
  readonly run: RunSummary;
  readonly tasks: TaskProgress[] = [];
  readonly #byId = new Map<string, TaskProgress>();
  readonly #counts = new Map<TaskStatus, number>();
  readonly #items = new Map<string, TaskStatus>();
  status: RunStatus;
  isPaused = false;
  isCancelling = false;

  private constructor(run: RunSummary) {
    this.run = run;
    this.status = run.status;
  }

  /** The lines of a run before anything has happened; what has happened is in its events. */
  static async of(run: RunSummary, api: RelayApi): Promise<RunProgress> {
    const progress = new RunProgress(run);
    if (run.workflow_name === null) return progress;
    const { definition } = await api.workflows.get(run.workflow_name, run.workflow_version ?? undefined);
    const { tasks } = definition as { tasks: Readonly<Record<string, { needs: readonly string[] }>> };
    const nodes = Object.entries(tasks).map(([id, { needs }]) => ({ id, needs }));
    for (const id of phases(buildGraph(nodes)).flat()) progress.#add(id);
    return progress;
  }

  get startedAt(): number {
    return Date.parse(this.run.created_at);
  }

  /** How many tasks have a status. */
  count(...statuses: readonly TaskStatus[]): number {
    return statuses.reduce((sum, status) => sum + (this.#counts.get(status) ?? 0), 0);
  }

  /** Takes an event in; tells which task it changed. */
  apply(event: EventView): TaskChange | null {
    if (event.task_run_id === null || event.task_id === null) {
      this.#applyToRun(event);
      return null;
    }
    if (event.map_index !== null) return this.#applyToItem(event, event.task_id);
    const task = this.#taskOf(event.task_id, event.task_run_id);
    const { to, attempt, reason } = event.data as { to?: TaskStatus; attempt?: number; reason?: string };
    if (to === undefined) return null;
    const at = Date.parse(event.at);
    this.#count(task.status, -1);
    this.#count(to, 1);
    const wasWorking = isWorking(task.status);
    task.status = to;
    task.attempt = attempt ?? task.attempt;
    task.reason = reason ?? null;
    task.notBefore = typeof event.data.not_before === 'string' ? Date.parse(event.data.not_before) : null;
    task.error = errorOf(event) ?? (isTerminal(to) && to !== 'FAILED' ? null : task.error);
    if (isWorking(to) && !wasWorking) Object.assign(task, { startedAt: at, progress: null, message: null });
    task.finishedAt = isTerminal(to) ? at : null;
    if (to === 'PENDING') task.startedAt = null;
    if (event.type === 'task.expanded') {
      const { total } = event.data as { total: number };
      task.items = { ...(task.items ?? NO_ITEMS), total };
      task.startedAt = at;
    }
    return { task, event };
  }

  /** An item moves the numbers of its map. */
  #applyToItem(event: EventView, task_id: string): TaskChange | null {
    const task = this.#byId.get(`task ${task_id}`);
    const { to } = event.data as { to?: TaskStatus };
    if (task === undefined || to === undefined) return null;
    const id = event.task_run_id ?? '';
    const before = this.#items.get(id);
    this.#items.set(id, to);
    if (before !== undefined) this.#count(before, -1);
    this.#count(to, 1);
    const items = task.items ?? { ...NO_ITEMS };
    task.items = items;
    for (const [status, by] of [[before, -1] as const, [to, 1] as const]) {
      if (status === undefined) continue;
      // What a shorter list has left over is not part of it.
      if (isTerminal(status) && status !== 'SKIPPED') items.done += by;
      if (status === 'FAILED') items.failed += by;
      if (isWorking(status)) items.working += by;
    }
    return { task, event };
  }

  #applyToRun({ type, data }: EventView): void {
    if (type === 'run.status.changed') this.status = data.to as RunStatus;
    if (type === 'run.paused') this.isPaused = true;
    if (type === 'run.resumed' || type === 'run.retried') this.isPaused = false;
    if (type === 'run.cancelled') this.isCancelling = true;
    if (type === 'run.retried') this.isCancelling = false;
  }

  /** The first task run of a task takes its line; tasks of an open run get lines of their own. */
  #taskOf(task_id: string, task_run_id: string): TaskProgress {
    const known = this.#byId.get(task_run_id);
    if (known !== undefined) return known;
    const waiting = this.#byId.get(`task ${task_id}`);
    const task = waiting?.task_run_id === null ? waiting : this.#add(task_id);
    task.task_run_id = task_run_id;
    this.#byId.set(task_run_id, task);
    return task;
  }

  #add(task_id: string): TaskProgress {
    const task: TaskProgress = {
      task_id,
      task_run_id: null,
      status: 'PENDING',
      attempt: 0,
      reason: null,
      startedAt: null,
      finishedAt: null,
      notBefore: null,
      error: null,
      progress: null,
      message: null,
      items: null,
    };
    this.tasks.push(task);
    this.#byId.set(`task ${task_id}`, task);
    this.#count('PENDING', 1);
    return task;
  }

  #count(status: TaskStatus, by: number): void {
    this.#counts.set(status, (this.#counts.get(status) ?? 0) + by);
  }
}

const NO_ITEMS: Readonly<ItemProgress> = Object.freeze({ total: 0, done: 0, failed: 0, working: 0 });

/** Whether a map waits for its items. */
export function isMapping({ status, items }: TaskProgress): boolean {
  return status === 'PENDING' && items !== null && items.total > 0;
}

/** Whether a worker holds a task with this status. */
export function isWorking(status: TaskStatus): boolean {
  return status === 'LEASED' || status === 'RUNNING';
}

function errorOf({ data }: EventView): string | null {
  const { error } = data as { error?: { message?: unknown } };
  return typeof error?.message === 'string' ? error.message : null;
}
