/** Rows of new runs and tasks, complete and in their first state. */
import type { RunRow, TaskRow } from '../stores/rows.ts';
import type { PlannedTask } from './plan.ts';
import type { RunSettings } from './run-settings.ts';

/** A run before anything has happened to it. */
export function newRunRow(
  values: Pick<
    RunRow,
    | 'id'
    | 'workflow_name'
    | 'workflow_version'
    | 'priority'
    | 'inputs'
    | 'labels'
    | 'workdir'
    | 'cloned_from'
    | 'created_at'
    | 'is_open'
  > & {
    settings: RunSettings;
  },
): RunRow {
  // Written out: a spread of the values would make every run a slow, one-off kind of object.
  return {
    key: 0,
    id: values.id,
    workflow_name: values.workflow_name,
    workflow_version: values.workflow_version,
    status: 'PENDING',
    stop_reason: null,
    stopping: 0,
    cancelled: 0,
    paused: 0,
    is_open: values.is_open,
    finishing: 0,
    priority: values.priority,
    settings: JSON.stringify(values.settings),
    inputs: values.inputs,
    labels: values.labels,
    workdir: values.workdir,
    cloned_from: values.cloned_from,
    outputs: null,
    error: null,
    usage: null,
    reserved: null,
    n_pending: 0,
    n_moving: 0,
    n_waiting: 0,
    n_success: 0,
    n_failed: 0,
    n_tolerated: 0,
    n_cancelled: 0,
    n_skipped: 0,
    n_ready: 0,
    n_queued: 0,
    n_leased: 0,
    n_cursors: 0,
    active_ms: 0,
    active_since: null,
    version: 0,
    created_at: values.created_at,
    started_at: null,
    finished_at: null,
  };
}

/** What a new task run is made from. */
interface NewTask {
  readonly id: string;
  readonly run: RunRow;
  readonly planned: PlannedTask;
  readonly queue_key: number;
  readonly deps: number;
  readonly spec: string | null;
}

/** An item of a map: nothing but its own handler is left to decide about it. */
export function newItemRow(
  values: Pick<NewTask, 'id' | 'run' | 'planned'> & { readonly map: TaskRow; readonly index: number },
): TaskRow {
  const { map, index, planned } = values;
  const row = newTaskRow({ ...values, queue_key: map.queue_key, deps: 0, spec: map.spec });
  return {
    ...row,
    map_key: map.key,
    map_index: index,
    is_plain: planned.settledBy === 'worker' ? 1 : 0,
    is_tolerated: planned.task.on_item_failure === 'collect' ? 1 : 0,
  };
}

/** A task run that waits for its parents. */
export function newTaskRow(values: NewTask): TaskRow {
  const { id, run, planned, queue_key, deps, spec } = values;
  return {
    key: 0,
    id,
    run_key: run.key,
    task_id: planned.id,
    map_index: null,
    status: 'PENDING',
    waiting_for: 'dependency',
    reason: null,
    undecided: 0,
    is_plain: planned.isPlain ? 1 : 0,
    is_finally: planned.task.when === 'done' ? 1 : 0,
    is_tolerated: 0,
    priority: run.priority + (planned.task.priority ?? 0),
    queue_key,
    deps_remaining: deps,
    deps_ok: 0,
    attempt: 0,
    attempts_spent: 0,
    losses: 0,
    releases: 0,
    unstarted: 0,
    generation: 0,
    version: 0,
    in_queue: 0,
    not_before: null,
    lease_id: null,
    leased_by: null,
    lease_expires_at: null,
    lease_ms: null,
    claim_id: null,
    deadline_at: null,
    started_at: null,
    finished_at: null,
    timeout_ms: planned.timeoutMs,
    retry: planned.retry === null ? null : JSON.stringify(planned.retry),
    progress: null,
    message: null,
    checkpoint: null,
    gate: null,
    question: null,
    question_id: null,
    answers: null,
    output_attempt: null,
    error: null,
    usage: null,
    spec,
    map_key: null,
    map_size: null,
    map_failed: 0,
    map_slots: null,
    limits: planned.limits,
  };
}
