/** Leases that ended without a word from their worker (SPEC S6.2, TRANSITIONS 25–27), and signs of life that keep them (S6.1). */
import type { TaskFailure } from '../domain/failure.ts';
import { decideAfterLoss, type Random } from '../domain/retry.ts';
import type { TaskRow } from '../stores/rows.ts';
import { cleanText } from '../worker/clean-text.ts';
import type { Heartbeat, HeartbeatAnswer } from '../worker/work-source.ts';
import { advance, endIfStopped, isStopped } from './advance.ts';
import { DEADLINE_GRACE_MS } from './claim.ts';
import { parseLeaseId } from './lease-id.ts';
import { policyOf } from './settle.ts';
import type { Work } from './work.ts';

/** Leases in a row that may end before a start without costing a loss. */
const UNSTARTED_MAX = 5;

/** Ends leases: back to the queue, or FAILED when the losses are used up. */
export async function expire(work: Work, tasks: readonly TaskRow[], random: Random): Promise<number> {
  let count = 0;
  for (const task of tasks) {
    if (task.lease_id === null) continue;
    expireOne(work, task, random);
    endIfStopped(work, task);
    count += 1;
  }
  await advance(work);
  return count;
}

function expireOne(work: Work, task: TaskRow, random: Random): void {
  const wasStarted = task.status === 'RUNNING';
  const isOverdue = task.deadline_at !== null && work.now >= task.deadline_at;
  const message = isOverdue
    ? 'the attempt went on past its timeout and did not end by itself'
    : `the worker ${task.leased_by} was not heard of before its lease ended`;
  const failure: TaskFailure = { class: 'worker_lost', code: 'WORKER_LOST', message, attempt: task.attempt };
  work.endAttempt(task, { outcome: 'expired', error: JSON.stringify(failure) });
  if (!wasStarted && task.unstarted < UNSTARTED_MAX) {
    task.unstarted += 1;
    work.enqueue(task, { event: 'task.lease_expired', reason: 'never_started' });
    return;
  }
  if (wasStarted) task.unstarted = 0;
  task.losses += 1;
  task.error = JSON.stringify(failure);
  const decision = decideAfterLoss(policyOf(task), { losses: task.losses, nowMs: work.now, random });
  if (decision.outcome === 'retry') {
    const at = { notBefore: decision.notBeforeMs, kind: 'retry' } as const;
    work.enqueue(task, { event: 'task.lease_expired', reason: isOverdue ? 'deadline' : 'silence' }, at);
  } else
    work.move(task, 'FAILED', { event: 'task.failed', reason: decision.reason, data: { error: failure } });
}

/** Extends leases and tells each worker what to do about its own. */
export async function extend(work: Work, beats: readonly Heartbeat[]): Promise<HeartbeatAnswer[]> {
  const places = beats.map(({ lease_id }) => parseLeaseId(lease_id)?.task_key ?? 0);
  const tasks = new Map((await work.tasks(places)).map((task) => [task.key, task]));
  return beats.map((beat, index) => {
    const task = tasks.get(places[index] ?? 0);
    if (task === undefined || task.lease_id !== beat.lease_id) {
      const order = task?.status === 'CANCELLED' ? 'cancel' : 'lost';
      return { lease_id: beat.lease_id, order, expires_in_ms: 0 };
    }
    if (isStopped(work.runOf(task), task)) {
      return { lease_id: beat.lease_id, order: 'cancel', expires_in_ms: 0 };
    }
    return extendOne(work, task, beat);
  });
}

function extendOne(work: Work, task: TaskRow, beat: Heartbeat): HeartbeatAnswer {
  const end = (task.deadline_at ?? Number.POSITIVE_INFINITY) + DEADLINE_GRACE_MS;
  task.lease_expires_at = Math.min(work.now + (task.lease_ms ?? 0), end);
  work.change(task);
  const before = task.progress;
  if (beat.progress !== undefined) task.progress = beat.progress;
  if (beat.message !== undefined) task.message = cleanText(beat.message, 1_000);
  if (beat.progress !== undefined || beat.checkpoint !== undefined) task.releases = 0;
  if (task.status === 'LEASED') {
    work.move(task, 'RUNNING', { event: 'task.running' });
    task.started_at = work.now;
    task.unstarted = 0;
  } else if (isMilestone(before, beat.progress)) {
    work.note(task, { event: 'task.heartbeat', data: { progress: beat.progress } });
  }
  if (beat.checkpoint !== undefined) {
    task.checkpoint = JSON.stringify(beat.checkpoint);
    work.note(task, { event: 'task.checkpointed' });
  }
  const expires_in_ms = Math.max(0, task.lease_expires_at - work.now);
  return { lease_id: beat.lease_id, order: 'continue', expires_in_ms };
}

/** Heartbeats are events only when another tenth of the work is done (SPEC S12.1, "sampled"). */
function isMilestone(before: number | null, progress: number | undefined): boolean {
  return progress !== undefined && Math.floor(progress * 10) > Math.floor((before ?? 0) * 10);
}
