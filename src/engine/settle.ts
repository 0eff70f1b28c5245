/** Results of attempts: fenced by the lease, recorded once, answered the same way when repeated (SPEC S4.5, S4.6). */
import { parseDuration } from '../base/duration.ts';
import { newQuestionId } from '../base/ids.ts';
import { invariant } from '../base/invariant.ts';
import type { TaskFailure } from '../domain/failure.ts';
import {
  DEFAULT_RETRY_POLICY,
  decideAfterFailure,
  type Random,
  type RetryPolicy,
  releaseDelayMs,
} from '../domain/retry.ts';
import type { AttemptRow, TaskRow } from '../stores/rows.ts';
import type { Question, SettlementResult, Usage } from '../worker/work-source.ts';
import { cancelTask, endIfStopped, isStopped, stopReasonOf } from './advance.ts';
import { addCompanions, type Companions, refuseCompanions } from './companions.ts';
import type { StoredQuestion } from './decide.ts';
import { parseLeaseId } from './lease-id.ts';
import type { StoredPayload } from './payload.ts';
import type { Plans } from './plans.ts';
import { addUsage } from './usage.ts';
import type { Work } from './work.ts';

/** A settlement that is ready to be written: payloads are stored, the digest tells whether a repeat has the same content. */
export type PreparedSettlement = {
  readonly lease_id: string;
  readonly digest: string;
  readonly usage: Usage | null;
} & (
  | {
      readonly kind: 'complete';
      readonly output: StoredPayload;
      readonly files: readonly NamedPayload[];
      readonly companions: Companions | null;
    }
  | { readonly kind: 'fail'; readonly failure: TaskFailure; readonly files: readonly NamedPayload[] }
  | { readonly kind: 'release'; readonly delay_ms: number }
  | { readonly kind: 'pause'; readonly status: 'BLOCKED' | 'WAITING_INPUT'; readonly question: Question }
);

/** A file of an attempt, stored. */
interface NamedPayload {
  readonly name: string;
  readonly payload: StoredPayload;
}

/** Applies settlements; each gets its own answer, and none can harm another. */
export async function settle(
  work: Work,
  settlements: readonly PreparedSettlement[],
  context: { readonly random: Random; readonly plans: Plans },
): Promise<SettlementResult[]> {
  const places = settlements.map((settlement) => parseLeaseId(settlement.lease_id));
  await work.tasks(places.flatMap((place) => place?.task_key ?? []));
  const results: SettlementResult[] = [];
  for (let index = 0; index < settlements.length; index++) {
    const settlement = settlements[index] as PreparedSettlement;
    const place = places[index] ?? null;
    const task = place === null ? undefined : work.taskAt(place.task_key);
    if (task === undefined) results.push(stale(settlement.lease_id));
    else if (task.lease_id !== settlement.lease_id) results.push(await answerStale(work, task, settlement));
    else if (mustEnd(work, task)) {
      cancelTask(work, task, stopReasonOf(work.runOf(task)));
      results.push(await answerStale(work, task, settlement));
    } else {
      results.push(await applyWhole(work, task, settlement, context));
      endIfStopped(work, task);
    }
  }
  return results;
}

/** A completion whose tasks or notes cannot be added has not done what it says: its attempt fails. */
async function applyWhole(
  work: Work,
  task: TaskRow,
  settlement: PreparedSettlement,
  { random, plans }: { random: Random; plans: Plans },
): Promise<SettlementResult> {
  if (settlement.kind !== 'complete' || settlement.companions === null)
    return apply(work, task, settlement, random);
  const { lease_id, digest, usage, companions, files } = settlement;
  const failure = await refuseCompanions(work, task, companions);
  if (failure !== null)
    return apply(work, task, { kind: 'fail', lease_id, digest, usage, failure, files }, random);
  const result = apply(work, task, settlement, random);
  await addCompanions(work, task, { companions, plans });
  return result;
}

/** The run was stopped and its sweep has not come to this task yet: the stop was first, so it wins (SPEC S5.8). */
function mustEnd(work: Work, task: TaskRow): boolean {
  return isStopped(work.runOf(task), task);
}

function apply(work: Work, task: TaskRow, settlement: PreparedSettlement, random: Random): SettlementResult {
  if (settlement.usage !== null) addUsage(work, task, settlement.usage);
  switch (settlement.kind) {
    case 'complete':
      end(work, task, settlement, COMPLETED);
      complete(work, task, settlement);
      return answer(task, settlement, null);
    case 'fail': {
      const after = decideFailure(work, task, settlement.failure, random);
      end(work, task, settlement, after);
      addFiles(work, task, settlement.files);
      fail(work, task, after);
      return answer(task, settlement, after.not_before);
    }
    case 'release': {
      const not_before = releaseAt(work, task, settlement.delay_ms);
      end(work, task, settlement, { status: 'QUEUED', not_before });
      release(work, task, not_before);
      return answer(task, settlement, not_before);
    }
    case 'pause':
      end(work, task, settlement, { status: settlement.status, not_before: null });
      pause(work, task, settlement);
      return answer(task, settlement, null);
  }
}

/** Records how an attempt ended; what a completion is answered goes without saying. */
function end(
  work: Work,
  task: TaskRow,
  { kind, digest, usage }: PreparedSettlement,
  after: Pick<AfterFailure, 'not_before'> & { readonly status: string; readonly failure?: TaskFailure },
): void {
  const { status, failure } = after;
  work.endAttempt(task, {
    outcome: kind,
    digest,
    answer: status === 'SUCCESS' ? null : JSON.stringify({ status, not_before: toIso(after.not_before) }),
    error: failure === undefined ? null : JSON.stringify(failure),
    usage: usage === null ? null : JSON.stringify(usage),
  });
}

function answer(
  task: TaskRow,
  { lease_id }: PreparedSettlement,
  not_before: number | null,
): SettlementResult {
  return { lease_id, ok: true, status: task.status, not_before: toIso(not_before) };
}

const COMPLETED = Object.freeze({ status: 'SUCCESS', not_before: null });

function complete(
  work: Work,
  task: TaskRow,
  settlement: Extract<PreparedSettlement, { kind: 'complete' }>,
): void {
  const { content_type, bytes, inline, blob_ref } = settlement.output;
  work.addArtifact(task, {
    ordinal: 0,
    kind: 'output',
    name: 'output',
    content_type,
    bytes,
    inline,
    blob_ref,
  });
  addFiles(work, task, settlement.files);
  task.error = null;
  task.releases = 0;
  task.unstarted = 0;
  work.move(task, 'SUCCESS', { event: 'task.completed' });
}

/** Number 0 is the output, so files begin with 1. */
function addFiles(work: Work, task: TaskRow, files: readonly NamedPayload[]): void {
  for (const [index, { name, payload }] of files.entries()) {
    work.addArtifact(task, { ordinal: index + 1, kind: 'file', name, ...payload });
  }
}

interface AfterFailure {
  readonly status: 'QUEUED' | 'FAILED';
  readonly not_before: number | null;
  readonly reason: string | null;
  readonly failure: TaskFailure;
}

/** Spends an attempt, unless the input could not even be rendered (TRANSITIONS 20–22). */
function decideFailure(work: Work, task: TaskRow, failure: TaskFailure, random: Random): AfterFailure {
  const told = { ...failure, attempt: task.attempt };
  if (failure.class === 'template')
    return { status: 'FAILED', not_before: null, reason: 'terminal', failure: told };
  task.attempts_spent += 1;
  const decision = decideAfterFailure(policyOf(task), {
    attemptsSpent: task.attempts_spent,
    failure: told,
    nowMs: work.now,
    random,
  });
  return decision.outcome === 'retry'
    ? { status: 'QUEUED', not_before: decision.notBeforeMs, reason: null, failure: told }
    : { status: 'FAILED', not_before: null, reason: decision.reason, failure: told };
}

function fail(work: Work, task: TaskRow, after: AfterFailure): void {
  task.error = JSON.stringify(after.failure);
  task.releases = 0;
  task.unstarted = 0;
  const { class: failureClass, code, message } = after.failure;
  const data = { error: { class: failureClass, code, message: message.slice(0, 500) } };
  if (after.status === 'QUEUED') {
    const notBefore = after.not_before ?? work.now;
    const cause = { event: 'task.retry_scheduled', data: { ...data, not_before: toIso(notBefore) } } as const;
    work.enqueue(task, cause, { notBefore, kind: 'retry' });
  } else work.move(task, 'FAILED', { event: 'task.failed', reason: after.reason, data });
}

/** Nothing is spent; releases in a row without progress wait longer and longer (SPEC S5.4). */
function releaseAt(work: Work, task: TaskRow, delay_ms: number): number | null {
  task.releases += 1;
  const delay = Math.max(delay_ms, releaseDelayMs(task.releases));
  return delay > 0 ? work.now + delay : null;
}

function release(work: Work, task: TaskRow, not_before: number | null): void {
  const at = not_before === null ? undefined : ({ notBefore: not_before, kind: 'retry' } as const);
  work.enqueue(task, { event: 'task.released' }, at);
}

function pause(work: Work, task: TaskRow, settlement: Extract<PreparedSettlement, { kind: 'pause' }>): void {
  const { question, status } = settlement;
  work.move(task, status, { event: 'task.paused', data: { message: question.message } });
  task.question_id = newQuestionId();
  const timeoutMs = question.timeout === undefined ? null : parseDuration(question.timeout);
  const timeout_at = timeoutMs === null ? null : work.now + timeoutMs;
  task.question = JSON.stringify({ kind: 'worker', ...question, timeout_at } satisfies StoredQuestion);
  if (timeout_at !== null) work.addTimer({ due_at: timeout_at, kind: 'question', subject: task.key });
}

/** The retry policy of a task; null in the row is the default. */
export function policyOf(task: TaskRow): RetryPolicy {
  return task.retry === null ? DEFAULT_RETRY_POLICY : (JSON.parse(task.retry) as RetryPolicy);
}

/** A lease that is over: the first answer again, a conflict, or STALE_LEASE; usage still counts once (TRANSITIONS 39). */
async function answerStale(
  work: Work,
  task: TaskRow,
  settlement: PreparedSettlement,
): Promise<SettlementResult> {
  const place = parseLeaseId(settlement.lease_id);
  invariant(place !== null, 'a lease that named a task can be parsed');
  const recorded =
    work.endedAttempt(task.key, place.attempt) ??
    (await work.tx.attempts.find([[task.key, place.attempt]]))[0];
  if (recorded === undefined || recorded.lease_id !== settlement.lease_id) return stale(settlement.lease_id);
  if (recorded.digest === null) return acknowledge(work, task, recorded, settlement);
  // The digest holds the kind as it was sent; an output that was refused is recorded as a failure.
  if (recorded.digest === settlement.digest) {
    const first =
      recorded.answer === null
        ? COMPLETED
        : (JSON.parse(recorded.answer) as { status: string; not_before: string | null });
    return { lease_id: settlement.lease_id, ok: true, ...first };
  }
  const message = `this lease was settled before as ${recorded.outcome} with other content`;
  return { lease_id: settlement.lease_id, ok: false, code: 'IDEMPOTENCY_CONFLICT', message };
}

/** The lease was revoked or had expired; the first word of its worker is an event, its usage is added. */
async function acknowledge(
  work: Work,
  task: TaskRow,
  recorded: AttemptRow,
  settlement: PreparedSettlement,
): Promise<SettlementResult> {
  if (recorded.acknowledged === 0 && !work.isAcknowledged(task.key, recorded.attempt)) {
    const usage = settlement.usage === null ? null : JSON.stringify(settlement.usage);
    work.acknowledge([task.key, recorded.attempt, usage]);
    if (recorded.outcome === 'cancelled' && task.limits !== null) work.freeSlots(task.key, recorded.attempt);
    if (settlement.usage !== null && recorded.usage === null) addUsage(work, task, settlement.usage);
    // A cancel of this very transaction has an event of its own.
    if (recorded.outcome === 'cancelled' && work.endedAttempt(task.key, recorded.attempt) === undefined) {
      work.note(task, {
        event: 'task.cancel_acknowledged',
        reason: task.reason,
        data: { of_attempt: recorded.attempt },
      });
    }
  }
  return stale(settlement.lease_id);
}

function stale(lease_id: string): SettlementResult {
  const message = 'the lease has ended: the task was cancelled, or given to another worker';
  return { lease_id, ok: false, code: 'STALE_LEASE', message };
}

function toIso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
