/** Handing out work: one atomic move per task, highest priority first, then oldest (SPEC S4.4). */
import type { TaskRow } from '../stores/rows.ts';
import type { ClaimableRow } from '../stores/store.ts';
import {
  admit,
  advance,
  cancelTask,
  isStopped,
  roomOf,
  stopReasonOf,
  stopRun,
  unlockMore,
} from './advance.ts';
import { newLeaseId } from './lease-id.ts';
import { judge, limitsOfAll } from './limit-admission.ts';
import { CHUNK } from './run-counters.ts';
import type { Cause } from './task-events.ts';
import { isHeldBack, readLimits } from './task-limits.ts';
import type { TaskMessage } from './task-message.ts';
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
  /** Only these tasks, each for this attempt and no other: what a broker has delivered. */
  readonly messages?: readonly TaskMessage[] | undefined;
}

/** The longest attempt when a task does not say (SPEC S14.6). */
export const ATTEMPT_TIMEOUT_MS = 3_600_000;
/** What an attempt gets beyond its timeout before the reaper ends it. */
export const DEADLINE_GRACE_MS = 30_000;

const ROUNDS_MAX = 8;

/** On what terms one claim hands out. */
interface Terms {
  readonly request: ClaimRequest;
  readonly cause: Cause;
  /** Limits that had no room for somebody before. */
  readonly shut: Set<string>;
  readonly claimed: TaskRow[];
}

/** Claims up to `limit` tasks. A repeated `claim_id` gives the leases of the first call that are still alive. */
export async function claim(work: Work, request: ClaimRequest): Promise<TaskRow[]> {
  if (request.claim_id !== null) {
    await work.adopt(await work.tx.tasks.byClaim(request.claim_id));
    const earlier = [...work.loadedTasks()].filter((task) => task.claim_id === request.claim_id);
    if (earlier.length > 0) return earlier;
  }
  if (request.messages !== undefined) return claimTold(work, request, request.messages);
  const claimed: TaskRow[] = [];
  const cause: Cause = { event: 'task.claimed', data: { worker: request.worker } };
  const terms: Terms = { request, cause, shut: new Set(), claimed };
  for (let round = 0; round < ROUNDS_MAX && claimed.length < request.limit; round++) {
    // After a round that met paused, stopped or limited tasks, more are looked at: they must not hide what is behind them.
    const wanted = request.limit - claimed.length;
    const candidates = await findCandidates(work, request, round === 0 ? wanted : Math.max(wanted, CHUNK));
    const isAnyRefused = await handOut(work, candidates, terms);
    if (isAnyRefused) await advance(work);
    else if (claimed.length === request.limit || !(await unlockMore(work, request.limit - claimed.length)))
      break;
  }
  if (claimed.length > 0) await admit(work);
  return claimed;
}

/** Leases candidates in their order, as many as are wanted; tells whether some had to be moved out of the way. */
async function handOut(work: Work, candidates: readonly TaskRow[], terms: Terms): Promise<boolean> {
  const names = limitsOfAll(work, candidates);
  if (names.length > 0) await work.ledger.load(names);
  let isAnyRefused = false;
  for (const task of candidates) {
    if (terms.claimed.length === terms.request.limit) break;
    const outcome = consider(work, task, terms);
    if (outcome === 'leased') terms.claimed.push(task);
    else if (outcome !== 'stays') isAnyRefused = true;
    if (outcome === 'over budget') await stopForBudget(work, task);
  }
  return isAnyRefused;
}

/**
 * Claims what messages are about. A message for attempt n starts attempt n or nothing: one that comes twice or too late, or for
 * a task that this worker does not serve, finds no task to claim (SPEC S10.1).
 */
async function claimTold(
  work: Work,
  request: ClaimRequest,
  messages: readonly TaskMessage[],
): Promise<TaskRow[]> {
  // Messages of one task may come together, an old and a new one.
  const told = new Set(messages.map(({ task_run_id, attempt }) => `${task_run_id} ${attempt}`));
  const ids = [...new Set(messages.map(({ task_run_id }) => task_run_id))];
  const keys = ids.length === 0 ? [] : await work.tx.tasks.keysOf(ids);
  const meant = (await work.tasks(keys.map(({ key }) => key))).filter(
    (task) => told.has(`${task.id} ${task.attempt + 1}`) && task.in_queue === 1 && fits(task, request),
  );
  for (const task of meant) work.outbox?.hear(task);
  const cause: Cause = { event: 'task.claimed', data: { worker: request.worker } };
  const terms: Terms = { request, cause, shut: new Set(), claimed: [] };
  // What limits hold back has no message; whoever has room left takes it along.
  const held = work.book.hasHeld ? await findHeld(work, request, request.limit) : [];
  await handOut(work, [...meant, ...held], terms);
  await advance(work);
  return terms.claimed;
}

/** Rows of the queue table, rows that this very transaction made claimable, and rows whose limit has room, in one order. */
async function findCandidates(work: Work, request: ClaimRequest, limit: number): Promise<TaskRow[]> {
  const fresh = work.newlyClaimable().filter((task) => fits(task, request));
  const held = work.book.hasHeld ? await findHeld(work, request, limit) : [];
  // Rows taken out earlier in this work still stand in the table, so that many more are read.
  const stored = request.probes ? await peek(work, request, limit + work.queueRemovals) : [];
  const tasks = await work.tasks(stored.map((row) => row.task_key));
  const queued = [...tasks, ...fresh].filter((task) => task.status === 'QUEUED' && task.in_queue === 1);
  return [...new Set([...queued, ...held])].sort((a, b) => b.priority - a.priority || a.key - b.key);
}

/** The first tasks that wait for limits with room, as many as there is room for. */
async function findHeld(work: Work, { queues, run_key }: ClaimRequest, limit: number): Promise<TaskRow[]> {
  const names = await work.tx.held.limits(queues);
  await work.ledger.load(names);
  const found: TaskRow[] = [];
  for (const name of names) {
    const wanted = Math.min(limit, work.ledger.room(name));
    if (wanted <= 0) continue;
    const rows =
      run_key === null
        ? await work.tx.held.first(name, queues, wanted + work.heldRemovals)
        : await work.tx.held.ofRun(run_key, name, wanted + work.heldRemovals);
    const tasks = await work.tasks(rows.map(({ task_key }) => task_key));
    found.push(...tasks.filter((task) => isHeldBack(task) && readLimits(task)?.place === name));
  }
  return found.filter((task) => queues === 'all' || queues.includes(task.queue_key));
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

/** Leases a task, or moves it to where it belongs, so that it is not met again; one that waits where it should stays. */
function consider(work: Work, task: TaskRow, terms: Terms): 'leased' | 'moved' | 'stays' | 'over budget' {
  // A budget that was used up a moment ago has cancelled it.
  if (task.status !== 'QUEUED' && !isHeldBack(task)) return 'stays';
  if (!mayRun(work, task)) return 'moved';
  if (task.limits === null) {
    lease(work, task, terms);
    return 'leased';
  }
  const admission = judge(work, task, terms.shut);
  if (admission.kind === 'later') {
    if (isHeldBack(task) && readLimits(task)?.place === admission.place) return 'stays';
    work.hold(task, admission.place);
    return 'moved';
  }
  if (isHeldBack(task)) work.enqueue(task, { event: 'task.queued' });
  if (admission.kind === 'never') {
    const { failure } = admission;
    task.error = JSON.stringify(failure);
    work.move(task, 'FAILED', { event: 'task.failed', reason: 'terminal', data: { error: failure } });
    return failure.class === 'budget' ? 'over budget' : 'moved';
  }
  lease(work, task, terms);
  if (admission.shares.length > 0 || admission.reserved !== null) work.grant(task, admission);
  return 'leased';
}

/** A task of a paused, stopped or full run is not for now. */
function mayRun(work: Work, task: TaskRow): boolean {
  const run = work.runOf(task);
  if (isStopped(run, task)) {
    cancelTask(work, task, stopReasonOf(run));
    return false;
  }
  if (isHeldBack(task) && (run.paused === 1 || roomOf(run) <= 0)) {
    work.letGo(task);
    return false;
  }
  if (run.paused === 1) {
    work.move(task, 'READY', { event: 'task.ready', reason: 'paused' });
    task.waiting_for = 'paused';
    return false;
  }
  return true;
}

/** A budget that is used up stops its run: what is leased finishes and counts, the rest is cancelled (SPEC S8.2). */
async function stopForBudget(work: Work, task: TaskRow): Promise<void> {
  const run = work.runOf(task);
  if (run.stopping === 1 || run.cancelled === 1) return;
  run.stop_reason = 'budget';
  run.error = task.error;
  await stopRun(work, run);
}

function lease(work: Work, task: TaskRow, { request, cause }: Terms): void {
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
  work.aftermath.hasClaimed = true;
}
