/** Rows as both dialects hold them. Names are the columns'; times are milliseconds; JSON columns are text; flags are 0 or 1. */
import type { RunStatus, StopReason, TaskStatus, WaitingFor } from '../domain/states.ts';

type Flag = 0 | 1;

/** One run. The `n_` columns are its counters (SPEC S3.3) and what admission needs to know. */
export interface RunRow {
  key: number;
  readonly id: string;
  readonly workflow_name: string | null;
  readonly workflow_version: number | null;
  status: RunStatus;
  stop_reason: StopReason | null;
  /** Set by fail_fast, timeout and budget: only `when: done` tasks go on. */
  stopping: Flag;
  cancelled: Flag;
  paused: Flag;
  is_open: Flag;
  /** All tasks are done and `outputs` is still to be worked out. */
  finishing: Flag;
  readonly priority: number;
  settings: string;
  readonly inputs: string;
  readonly labels: string;
  readonly workdir: string | null;
  readonly cloned_from: string | null;
  outputs: string | null;
  error: string | null;
  usage: string | null;
  /** JSON of what attempts under way have reserved of the budget; null is nothing. */
  reserved: string | null;
  n_pending: number;
  n_moving: number;
  n_waiting: number;
  n_success: number;
  n_failed: number;
  n_tolerated: number;
  n_cancelled: number;
  n_skipped: number;
  n_ready: number;
  /** Rows in `claimable`. */
  n_queued: number;
  n_leased: number;
  n_cursors: number;
  /** Time spent RUNNING before `active_since`, for the run's timeout. */
  active_ms: number;
  active_since: number | null;
  version: number;
  readonly created_at: number;
  started_at: number | null;
  finished_at: number | null;
}

/** One task in one run. */
export interface TaskRow {
  key: number;
  readonly id: string;
  readonly run_key: number;
  readonly task_id: string;
  readonly map_index: number | null;
  status: TaskStatus;
  waiting_for: WaitingFor | null;
  reason: string | null;
  /** PENDING with its parents done, waiting for the engine to work out `if`, gate, `for_each` or `wait`. */
  undecided: Flag;
  /** Nothing but its parents decides about the task. */
  readonly is_plain: Flag;
  /** `when: done`. */
  readonly is_finally: Flag;
  readonly is_tolerated: Flag;
  readonly priority: number;
  readonly queue_key: number;
  deps_remaining: number;
  /** Parents that ended as SUCCESS. */
  deps_ok: number;
  attempt: number;
  attempts_spent: number;
  losses: number;
  /** Releases in a row without progress. */
  releases: number;
  /** Leases in a row that ended before a start. */
  unstarted: number;
  generation: number;
  version: number;
  /** The row is in `claimable`. */
  in_queue: Flag;
  not_before: number | null;
  lease_id: string | null;
  leased_by: string | null;
  lease_expires_at: number | null;
  lease_ms: number | null;
  claim_id: string | null;
  deadline_at: number | null;
  started_at: number | null;
  finished_at: number | null;
  readonly timeout_ms: number | null;
  readonly retry: string | null;
  progress: number | null;
  message: string | null;
  checkpoint: string | null;
  /** How far the decision has come: `if` holds, or nothing is left to decide. A retry does not ask again, a rerun does. */
  gate: 'condition' | 'passed' | null;
  question: string | null;
  question_id: string | null;
  answers: string | null;
  /** The attempt whose output is the task's. */
  output_attempt: number | null;
  error: string | null;
  usage: string | null;
  /** The canonical task, for tasks that no workflow version holds. */
  readonly spec: string | null;
  /** The map that the task is an item of. */
  readonly map_key: number | null;
  /** Of a map: how many items its list has; null while the list is not known. */
  map_size: number | null;
  /** Of a map: how many of its items are FAILED. */
  map_failed: number;
  /** Of a map with `max_parallel`: slots that are free. Of one of its items that is not over: 1 when it holds a slot, 0 when not. Null elsewhere. */
  map_slots: number | null;
  /** JSON of what the task asks of limits and budgets, and where it stands with them; null asks nothing. */
  limits: string | null;
}

/** How one claim of a task run ended; also what a repeated settlement is answered from. */
export interface AttemptRow {
  readonly task_key: number;
  readonly attempt: number;
  readonly lease_id: string;
  readonly outcome: 'complete' | 'fail' | 'release' | 'pause' | 'expired' | 'cancelled';
  readonly digest: string | null;
  readonly answer: string | null;
  readonly error: string | null;
  readonly usage: string | null;
  readonly leased_by: string | null;
  readonly started_at: number | null;
  readonly finished_at: number;
  readonly acknowledged: Flag;
}

/** A durable piece of data. Small content is inline, larger content in the blob store. */
export interface ArtifactRow {
  readonly task_key: number;
  readonly attempt: number;
  /** 0 is the output. The list of a map stands at attempt 0, under its generation + 1. */
  readonly ordinal: number;
  readonly kind: 'output' | 'file' | 'items' | 'errors';
  readonly name: string;
  readonly content_type: string;
  readonly bytes: number;
  readonly inline: Uint8Array | string | null;
  readonly blob_ref: string | null;
  readonly created_at: number;
}

/** A committed change. */
export interface EventRow {
  /** Where the event stands, in a spelling that only its store understands. */
  readonly cursor: string;
  readonly run_id: string | null;
  readonly task_run_id: string | null;
  readonly task_id: string | null;
  /** The place in the list, of an item of a map. */
  readonly map_index: number | null;
  readonly type: string;
  readonly at: number;
  readonly data: string;
}

/** Something to do at a time. `subject` is a task key, or a run key for `run_timeout`. */
export interface TimerRow {
  readonly due_at: number;
  readonly kind: 'retry' | 'wait' | 'question' | 'run_timeout';
  readonly subject: number;
}

/** Work that is done in chunks: unlocking the children of `subject`, making or ending the items of the map `subject`, stopping or cancelling a run, admitting its READY tasks. */
export interface CursorRow {
  readonly key: number;
  readonly kind: 'unlock' | 'expand' | 'retire' | 'stop' | 'cancel' | 'admit';
  readonly run_key: number;
  readonly subject: number;
  readonly position: number;
  readonly data: string | null;
}

/** A process that takes work. */
export interface WorkerRow {
  readonly id: string;
  readonly boot_id: string;
  readonly host: string;
  readonly pid: number;
  readonly process_start: string | null;
  readonly status: 'ACTIVE' | 'DRAINING' | 'GONE';
  readonly info: string;
  readonly started_at: number;
  readonly seen_at: number;
}

/** A version of a workflow. */
export interface WorkflowRow {
  readonly name: string;
  readonly version: number;
  readonly hash: string;
  readonly definition: string;
  readonly created_at: number;
}

/** An immutable note on a run or a task. */
export interface ContextRow {
  readonly id: string;
  readonly run_id: string;
  readonly task_run_id: string | null;
  readonly parent_id: string | null;
  readonly label: string | null;
  readonly data: string;
  readonly created_by: string | null;
  readonly created_at: number;
}

/** The recorded answer to an operation with an idempotency key. */
export interface IdempotencyRow {
  readonly scope: string;
  readonly idempotency_key: string;
  readonly digest: string;
  readonly answer: string;
  readonly run_key: number | null;
  readonly created_at: number;
}

/** A right to call the server. The token itself is known to its owner only. */
export interface TokenRow {
  readonly id: string;
  readonly name: string;
  /** JSON list of scopes. */
  readonly scopes: string;
  /** SHA-256 of the token, in hex. */
  readonly hash: string;
  readonly created_at: number;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
}

/** A named limit, as the last process that configured it has said. */
export interface LimitRow {
  readonly name: string;
  /** JSON of its definition. */
  readonly definition: string;
  readonly updated_at: number;
}

/** What one attempt was allowed under one limit. */
export interface GrantRow {
  readonly limit_name: string;
  readonly task_key: number;
  readonly attempt: number;
  readonly requests: number;
  readonly tokens: number;
  /** When its slot is free again. */
  readonly held_until: number;
  /** From when its requests and tokens age. */
  readonly spent_at: number;
}

/** What is used of a limit: slots now, requests and tokens after a moment. */
export interface LimitUseRow {
  readonly name: string;
  readonly since: number;
  readonly slots: number;
  readonly requests: number;
  readonly tokens: number;
}

/** A READY task that a limit or a budget holds back. `place` is the limit's name, or a place of the engine's own. */
export interface HeldRow {
  readonly place: string;
  readonly queue_key: number;
  readonly rank: number;
  readonly task_key: number;
  readonly run_key: number;
}

/** How much there is to do, for gauges. */
export interface StatsRow {
  /** Rows that can be claimed now. */
  readonly queued: number;
  /** When the oldest run with something to claim was created. */
  readonly oldest_at: number | null;
  readonly leased: number;
  readonly asking: number;
  /** Timers that are not due yet. */
  readonly delayed: number;
}

/** A stretch of an attempt's log, with the task it belongs to. */
export interface RunLogRow {
  readonly key: number;
  readonly task_run_id: string;
  readonly task_id: string;
  readonly attempt: number;
  readonly at: number;
  readonly stream: string;
  readonly text: string;
}

/** What a broker is to be told: attempt `attempt` of a task can be claimed, from `available_at` on. */
export interface OutboxRow {
  readonly task_key: number;
  readonly run_key: number;
  readonly queue_key: number;
  /** Higher priority is a lower rank. */
  readonly rank: number;
  readonly attempt: number;
  /** 0 until `available_at`. */
  readonly due: Flag;
  readonly available_at: number;
  readonly created_at: number;
}

/** A message that a daemon has in hand. */
export interface TakenMessage {
  readonly task_key: number;
  readonly run_key: number;
  readonly queue_key: number;
  readonly rank: number;
  readonly attempt: number;
  /** How often the broker has refused it. */
  readonly retries: number;
  readonly task_run_id: string;
  readonly run_id: string;
  /** JSON; the trace of the run is in it. */
  readonly run_settings: string;
}

/** A message as operators see it. */
export interface OutboxListRow {
  readonly key: number;
  readonly task_run_id: string;
  readonly run_id: string;
  readonly task_id: string;
  readonly attempt: number;
  readonly due: Flag;
  readonly available_at: number;
  readonly created_at: number;
  readonly retries: number;
  readonly last_error: string | null;
  readonly owner: string | null;
  readonly claimed_until: number | null;
}

/** A message that the broker has refused too often. */
export interface DeadLetterRow {
  readonly key: number;
  readonly task_key: number;
  readonly run_key: number;
  readonly task_run_id: string;
  readonly run_id: string;
  readonly task_id: string;
  readonly attempt: number;
  readonly retries: number;
  readonly last_error: string | null;
  readonly created_at: number;
  readonly died_at: number;
}

/** How much there is to send, for gauges. */
export interface OutboxStatsRow {
  /** Messages that could be sent now. */
  readonly depth: number;
  readonly oldest_at: number | null;
  /** Not due yet: retries of tasks, and messages that the broker did not take. */
  readonly delayed: number;
  /** In the hands of a daemon. */
  readonly in_flight: number;
  /** Sent, and their tasks not claimed yet. */
  readonly outstanding: number;
  readonly dead: number;
  /** Written by a later version; left alone. */
  readonly unknown: number;
}
