/** Rows as clients see them: ISO times, parsed JSON, no internal keys. */

import { formatDuration } from '../base/duration.ts';
import { traceIdOf } from '../base/trace.ts';
import type { TaskFailure } from '../domain/failure.ts';
import type { Limit } from '../domain/limits.ts';
import type { StoredQuestion } from '../engine/decide.ts';
import type { WorkerInfo } from '../engine/remote-workers.ts';
import { runSettings, runTrace } from '../engine/run-settings.ts';
import { AT_BUDGET, isHeldBack, readLimits, TO_ESTIMATE } from '../engine/task-limits.ts';
import type {
  ArtifactRow,
  AttemptRow,
  ContextRow,
  EventRow,
  LimitRow,
  LimitUseRow,
  RunRow,
  TaskRow,
  WorkerRow,
  WorkflowRow,
} from '../stores/rows.ts';
import type { Usage } from '../worker/work-source.ts';
import type {
  ArtifactView,
  AttemptView,
  ContextView,
  EventView,
  LimitView,
  QuestionView,
  RunSummary,
  RunView,
  TaskView,
  WorkerView,
  WorkflowView,
} from './api.ts';

/** A run without its tasks. */
export function runSummary(run: RunRow): RunSummary {
  return {
    id: run.id,
    status: run.status,
    reason: run.stop_reason ?? (run.paused === 1 ? 'paused' : run.status === 'FAILED' ? 'task_failed' : null),
    workflow_name: run.workflow_name,
    workflow_version: run.workflow_version,
    labels: JSON.parse(run.labels) as Record<string, string>,
    priority: run.priority,
    counts: {
      pending: run.n_pending,
      moving: run.n_moving,
      waiting: run.n_waiting,
      success: run.n_success,
      failed: run.n_failed + run.n_tolerated,
      cancelled: run.n_cancelled,
      skipped: run.n_skipped,
    },
    cloned_from: run.cloned_from,
    trace_id: traceIdOf(runTrace(run)),
    created_at: iso(run.created_at),
    started_at: isoOrNull(run.started_at),
    finished_at: isoOrNull(run.finished_at),
  };
}

/** A run with its tasks. */
export function runView(run: RunRow, tasks: readonly TaskView[], tasks_next_cursor: string | null): RunView {
  return {
    ...runSummary(run),
    inputs: JSON.parse(run.inputs) as unknown,
    outputs: parse(run.outputs),
    error: parse(run.error),
    usage: parse<Usage>(run.usage),
    budget: runSettings(run).budget ?? null,
    tasks,
    tasks_next_cursor,
  };
}

/** A task with its output, which the caller has loaded (or left out as too large). */
export function taskView(
  task: TaskRow,
  run_id: string,
  output: { value: unknown; ref: string | null },
): TaskView {
  return {
    task_run_id: task.id,
    run_id,
    task_id: task.task_id,
    map_index: task.map_index,
    items: itemCounts(task),
    status: task.status,
    reason: task.reason,
    waiting_for: task.waiting_for,
    limit: limitOf(task),
    attempt: task.attempt,
    output: output.value,
    output_ref: output.ref,
    error: task.status === 'SUCCESS' ? null : failureView(task.error),
    progress: task.progress,
    message: task.message,
    question: task.question_id === null ? null : questionView(task),
    not_before: isoOrNull(task.not_before),
    started_at: isoOrNull(task.started_at),
    finished_at: isoOrNull(task.finished_at),
    usage: parse<Usage>(task.usage),
  };
}

/** How far a map is. One that has a list from before and has not come to its items again has done nothing yet. */
function itemCounts({ map_size, started_at, deps_remaining, map_failed }: TaskRow): TaskView['items'] {
  if (map_size === null) return null;
  if (started_at === null) return { total: map_size, done: 0, failed: 0 };
  return { total: map_size, done: map_size - deps_remaining, failed: map_failed };
}

/** The limit that holds a task back. */
function limitOf(task: TaskRow): string | null {
  const place = isHeldBack(task) ? (readLimits(task)?.place ?? null) : null;
  return place === TO_ESTIMATE || place === AT_BUDGET ? null : place;
}

/** What a task asks; it must be asking. */
export function questionView(task: TaskRow): QuestionView {
  const question = JSON.parse(task.question ?? '{}') as StoredQuestion;
  return {
    question_id: task.question_id ?? '',
    kind: question.kind,
    message: question.message,
    schema: question.schema ?? null,
    timeout_at: isoOrNull(question.timeout_at ?? null),
  };
}

/** How an attempt ended. */
export function attemptView(row: AttemptRow): AttemptView {
  return {
    attempt: row.attempt,
    outcome: row.outcome,
    error: failureView(row.error),
    usage: parse<Usage>(row.usage),
    worker: row.leased_by,
    started_at: isoOrNull(row.started_at),
    finished_at: iso(row.finished_at),
  };
}

/** An artifact without its content. */
export function artifactView(row: ArtifactRow): ArtifactView {
  const { kind, name, content_type, bytes, attempt } = row;
  return { id: artifactId(row), kind, name, content_type, bytes, attempt, created_at: iso(row.created_at) };
}

/** The public name of an artifact: its place. */
export function artifactId({
  task_key,
  attempt,
  ordinal,
}: Pick<ArtifactRow, 'task_key' | 'attempt' | 'ordinal'>): string {
  return [task_key, attempt, ordinal].map((part) => part.toString(36)).join('.');
}

/** The place an artifact's name stands for, or null when it is no such name. */
export function parseArtifactId(id: string): [task_key: number, attempt: number, ordinal: number] | null {
  const parts = /^([0-9a-z]{1,10})\.([0-9a-z]{1,6})\.([0-9a-z]{1,6})$/.exec(id);
  if (parts === null) return null;
  const [, task_key = '', attempt = '', ordinal = ''] = parts;
  return [Number.parseInt(task_key, 36), Number.parseInt(attempt, 36), Number.parseInt(ordinal, 36)];
}

/** A committed change. */
export function eventView(row: EventRow): EventView {
  const { type, run_id, task_run_id, task_id, map_index } = row;
  const data = JSON.parse(row.data) as Record<string, unknown>;
  return { cursor: row.cursor, type, at: iso(row.at), run_id, task_run_id, task_id, map_index, data };
}

/** A workflow version. */
export function workflowView(row: WorkflowRow): WorkflowView {
  const { name, version, hash } = row;
  return {
    name,
    version,
    hash,
    created_at: iso(row.created_at),
    definition: JSON.parse(row.definition) as unknown,
  };
}

/** A worker. */
export function workerView(row: WorkerRow): WorkerView {
  const { handlers, labels = {}, pool = null, is_remote = false } = JSON.parse(row.info) as WorkerInfo;
  return {
    id: row.id,
    status: row.status,
    handlers,
    labels,
    pool,
    is_remote,
    started_at: iso(row.started_at),
    seen_at: iso(row.seen_at),
  };
}

/** A named limit and how much of it is used. */
export function limitView(
  row: LimitRow,
  state: {
    readonly limit: Limit;
    readonly used: readonly LimitUseRow[];
    readonly now: number;
    readonly waiting: number;
  },
): LimitView {
  const { limit, used, now, waiting } = state;
  return {
    name: row.name,
    concurrency: limit.concurrency,
    in_use: used[0]?.slots ?? 0,
    windows: limit.windows.map(({ unit, max, ms }) => ({
      unit,
      max,
      per: formatDuration(ms),
      used: used.find(({ since }) => since === now - ms)?.[unit] ?? 0,
    })),
    models: [...limit.models],
    waiting,
    updated_at: iso(row.updated_at),
  };
}

/** A note on a run or a task. */
export function contextView(row: ContextRow): ContextView {
  return { ...row, data: JSON.parse(row.data) as unknown, created_at: iso(row.created_at) };
}

/** A failure in the spelling of the wire. */
function failureView(text: string | null): TaskView['error'] {
  const failure = parse<TaskFailure>(text);
  if (failure === null) return null;
  const { retryAfterMs, ...rest } = failure;
  return retryAfterMs === undefined ? rest : { ...rest, retry_after_ms: retryAfterMs };
}

/** A time as the wire has it. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : iso(ms);
}

function parse<T = unknown>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T);
}
