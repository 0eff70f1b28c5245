/** Decisions of people (SPEC S7): approve, reject, answer. The first one wins; who and when are in the event. */
import { RelayError } from '../base/errors.ts';
import type { TaskFailure } from '../domain/failure.ts';
import type { TaskRow } from '../stores/rows.ts';
import { advance, hasRoom } from './advance.ts';
import { applyVerdict, type StoredQuestion, type Verdict } from './decide.ts';
import type { Cause } from './task-events.ts';
import type { Work } from './work.ts';

/** What somebody decided. */
export interface Decision {
  readonly kind: 'approve' | 'reject';
  readonly by: string;
  readonly answer?: unknown;
  readonly reason?: string | null | undefined;
  /** The question that was answered; a later one is not meant. */
  readonly question_id?: string | undefined;
}

/** The question a task waits with, or an error that says why there is none. */
export function openQuestion(task: TaskRow, question_id?: string): StoredQuestion {
  const isAsking =
    (task.status === 'BLOCKED' || task.status === 'WAITING_INPUT') && task.question_id !== null;
  if (!isAsking) {
    const wasAsked = task.question !== null;
    const code = wasAsked ? 'ALREADY_DECIDED' : 'NOT_WAITING';
    throw new RelayError(
      code,
      `task ${task.task_id} is ${task.status}${wasAsked ? '; its question has been decided' : ''}`,
    );
  }
  if (question_id !== undefined && question_id !== task.question_id) {
    throw new RelayError(
      'ALREADY_DECIDED',
      `the question ${question_id} has been decided; the task asks another one now`,
    );
  }
  return JSON.parse(task.question ?? '{}') as StoredQuestion;
}

/** Applies a decision. `next` is what the rest of the task's definition says once a gate is passed. */
export async function answer(work: Work, task: TaskRow, decision: Decision, next: Verdict): Promise<void> {
  const question = openQuestion(task, decision.question_id);
  task.question_id = null;
  const data = {
    by: decision.by,
    ...(decision.answer === undefined ? {} : { answer: decision.answer }),
    ...((decision.reason ?? null) === null ? {} : { why: decision.reason }),
  };
  if (question.kind === 'approval') settleApproval(work, task, decision, data);
  else if (decision.kind === 'reject') reject(work, task, question, { decision, data });
  else if (question.kind === 'gate') {
    task.gate = 'passed';
    task.answers = withAnswer(task, 'gate', decision.answer);
    applyVerdict(work, task, next, { event: 'task.approved', data });
  } else {
    task.answers = withAnswer(task, question.key ?? 'answer', decision.answer);
    requeue(work, task, { event: 'task.resumed', data });
  }
  await advance(work);
}

/** Back into the queue, or to those that wait for room: an answer must not exceed `max_parallel`. */
function requeue(work: Work, task: TaskRow, cause: Cause): void {
  if (hasRoom(work, task)) {
    work.enqueue(task, cause);
    return;
  }
  work.move(task, 'QUEUED', cause);
  work.move(task, 'READY', cause);
  task.waiting_for = work.runOf(task).paused === 1 ? 'paused' : 'capacity';
}

function settleApproval(work: Work, task: TaskRow, decision: Decision, data: Record<string, unknown>): void {
  const approved = decision.kind === 'approve';
  const text = JSON.stringify({ approved, by: decision.by, answer: decision.answer ?? null });
  const payload = {
    content_type: 'application/json',
    bytes: Buffer.byteLength(text),
    inline: text,
    blob_ref: null,
  };
  // No claim has counted it; a rerun must not meet the output of the time before.
  task.attempt += 1;
  work.addArtifact(task, { ordinal: 0, kind: 'output', name: 'output', ...payload });
  work.move(task, 'SUCCESS', { event: approved ? 'task.approved' : 'task.rejected', data });
}

function reject(
  work: Work,
  task: TaskRow,
  question: StoredQuestion,
  { decision, data }: { decision: Decision; data: Record<string, unknown> },
): void {
  if (question.kind === 'gate' && question.on_reject === 'skip') {
    work.move(task, 'SKIPPED', { event: 'task.rejected', reason: 'rejected', data });
    return;
  }
  const why = (decision.reason ?? null) === null ? '' : `: ${decision.reason}`;
  const failure: TaskFailure = {
    class: 'rejected',
    code: 'REJECTED',
    message: `rejected by ${decision.by}${why}`,
  };
  task.error = JSON.stringify(failure);
  work.move(task, 'FAILED', { event: 'task.rejected', reason: 'terminal', data });
}

function withAnswer(task: TaskRow, key: string, answer: unknown): string {
  const before = task.answers === null ? {} : (JSON.parse(task.answers) as Record<string, unknown>);
  return JSON.stringify({ ...before, [key]: answer ?? null });
}
