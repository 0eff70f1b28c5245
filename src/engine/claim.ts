/** Handing out work: one atomic move per task, highest priority first, then oldest (SPEC S4.4). */
import type { TaskRow } from '../stores/rows.ts';
import type { ClaimableRow } from '../stores/store.ts';
import { admit, advance, CHUNK, cancelTask, stopReasonOf } from './advance.ts';
import { newLeaseId } from './lease-id.ts';
import type { Cause } from './task-events.ts';
import type { Work } from './work.ts';

/** What a worker wants. */
export interface ClaimRequest {
  readonly worker: string;
  readonly limit: number;
  /** Queues the worker can serve. */
  readonly queues: readonly number[] | 'all';
  readonly lease_ms: number;
  /** RUNNING at once, or LEASED until the worker says so. */
  readonly start: boolean;
  readonly claim_id: string | null;
  /** Only tasks of this run. */
  readonly run_key: number | null;
  /** Whether to look into the queue, or take only what this very transaction makes claimable. */
  readonly probes: boolean;
}

/** The longest attempt when a task does not say (SPEC S14.6). */
export const ATTEMPT_TIMEOUT_MS = 3_600_000;
/** What an attempt gets beyond its timeout before the reaper ends it. */
export const DEADLINE_GRACE_MS = 30_000;

const ROUNDS_MAX = 8;

/** Claims up to `limit` tasks. A repeated `claim_id` gives the leases of the first call that are still alive. */
export async function claim(work: Work, request: ClaimRequest): Promise<TaskRow[]> {
  if (request.claim_id !== null) {
    await work.adopt(await work.tx.tasks.byClaim(request.claim_id));
    const earlier = [...work.loadedTasks()].filter((task) => task.claim_id === request.claim_id);
    if (earlier.length > 0) return earlier;
  }
  const claimed: TaskRow[] = [];
  const cause: Cause = { event: 'task.claimed', data: { worker: request.worker } };
  for (let round = 0; round < ROUNDS_MAX && claimed.length < request.limit; round++) {
    // After a round that met paused or stopped tasks, more are looked at: they must not hide what is behind them.
    const wanted = request.limit - claimed.length;
    const candidates = await findCandidates(work, request, round === 0 ? wanted : Math.max(wanted, CHUNK));
    let isAnyRefused = false;
    for (const task of candidates) {
      if (claimed.length === request.limit) break;
      if (isClaimable(work, task)) claimed.push(lease(work, task, { request, cause }));
      else isAnyRefused = true;
    }
    if (!isAnyRefused) break;
    await advance(work);
  }
  if (claimed.length > 0) await admit(work);
  return claimed;
}

/** Rows of the queue table and rows that this very transaction made claimable, in one order. */
async function findCandidates(work: Work, request: ClaimRequest, limit: number): Promise<TaskRow[]> {
  const fresh = work.newlyClaimable().filter((task) => fits(task, request));
  // Rows taken out earlier in this work still stand in the table, so that many more are read.
  const stored = request.probes ? await peek(work, request, limit + work.queueRemovals) : [];
  const tasks = await work.tasks(stored.map((row) => row.task_key));
  const all = [...new Set([...tasks, ...fresh])].filter(
    (task) => task.status === 'QUEUED' && task.in_queue === 1,
  );
  return all.sort((a, b) => b.priority - a.priority || a.key - b.key).slice(0, limit);
}

async function peek(work: Work, request: ClaimRequest, limit: number): Promise<readonly ClaimableRow[]> {
  if (request.run_key === null) return work.tx.claimable.peek(request.queues, limit);
  return work.tx.claimable.ofRun(request.run_key, request.queues, limit);
}

function fits(task: TaskRow, { queues, run_key }: ClaimRequest): boolean {
  return (
    (queues === 'all' || queues.includes(task.queue_key)) && (run_key === null || task.run_key === run_key)
  );
}

/** A task of a paused or stopped run is moved to where it belongs instead, so that it is not met again. */
function isClaimable(work: Work, task: TaskRow): boolean {
  const run = work.runOf(task);
  if (run.cancelled === 1 || (run.stopping === 1 && task.is_finally === 0)) {
    cancelTask(work, task, stopReasonOf(run));
    return false;
  }
  if (run.paused === 1) {
    work.move(task, 'READY', { event: 'task.ready', reason: 'paused' });
    task.waiting_for = 'paused';
    return false;
  }
  return true;
}

function lease(
  work: Work,
  task: TaskRow,
  { request, cause }: { readonly request: ClaimRequest; readonly cause: Cause },
): TaskRow {
  const timeout_ms = task.timeout_ms ?? ATTEMPT_TIMEOUT_MS;
  work.move(task, request.start ? 'RUNNING' : 'LEASED', cause);
  task.attempt += 1;
  task.lease_id = newLeaseId(task.key, task.attempt);
  task.leased_by = request.worker;
  task.lease_ms = request.lease_ms;
  task.deadline_at = work.now + timeout_ms;
  task.lease_expires_at = work.now + Math.min(request.lease_ms, timeout_ms + DEADLINE_GRACE_MS);
  task.claim_id = request.claim_id;
  task.started_at = request.start ? work.now : null;
  task.not_before = null;
  task.progress = null;
  task.message = null;
  work.runOf(task).n_leased += 1;
  return task;
}
