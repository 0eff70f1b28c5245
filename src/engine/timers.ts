/** What is due at a time: retries and waits, unanswered questions, runs that take too long. */
import type { TaskRow, TimerRow } from '../stores/rows.ts';
import { advance, hasRoom, stopRun } from './advance.ts';
import { answer } from './answer.ts';
import { completeWait, type StoredQuestion } from './decide.ts';
import type { EngineContext } from './engine-context.ts';
import { runSettings } from './run-settings.ts';
import { verdictAfterGate } from './verdict-after-gate.ts';
import type { Work } from './work.ts';

const BATCH = 200;

/** Handles a batch of due timers; tells how many there were and when the next one is due. */
export async function runTimers(context: EngineContext): Promise<{ fired: number; next: number | null }> {
  const now = context.clock.now();
  const [due, next] = await context.store.read(
    async (tx) => [await tx.timers.due(now, BATCH), await tx.timers.next()] as const,
  );
  if (due.length === 0) return { fired: 0, next };
  await context.committer.commit(async (work) => {
    const timers = await work.tx.timers.due(work.now, BATCH);
    for (const timer of timers) {
      work.removeTimer(timer);
      await fire(context, work, timer);
    }
    await advance(work);
  });
  return { fired: due.length, next: now };
}

/** A timer of something that has moved on meanwhile is stale and does nothing. */
async function fire(context: EngineContext, work: Work, timer: TimerRow): Promise<void> {
  if (timer.kind === 'run_timeout') {
    await timeOutRun(work, timer.subject);
    return;
  }
  const [task] = await work.tasks([timer.subject]);
  if (task === undefined) return;
  if (timer.kind === 'question') await timeOutQuestion(context, work, task);
  else if (task.status === 'QUEUED' && task.in_queue === 0 && task.not_before === timer.due_at) {
    if (timer.kind === 'wait') completeWait(work, task, timer.due_at);
    else handOut(work, task);
  }
}

/** A delayed task is due: into the queue when its run has room, else it waits as READY like the others. */
function handOut(work: Work, task: TaskRow): void {
  const run = work.runOf(task);
  if (hasRoom(work, task)) work.makeClaimable(task);
  else {
    work.move(task, 'READY', { event: 'task.ready', reason: run.paused === 1 ? 'paused' : 'capacity' });
    task.waiting_for = run.paused === 1 ? 'paused' : 'capacity';
  }
}

async function timeOutQuestion(context: EngineContext, work: Work, task: TaskRow): Promise<void> {
  if (task.question_id === null) return;
  const question = JSON.parse(task.question ?? '{}') as StoredQuestion;
  if ((question.timeout_at ?? Number.POSITIVE_INFINITY) > work.now) return;
  const kind = question.on_timeout ?? 'reject';
  const next = await verdictAfterGate(context, work, task);
  await answer(work, task, { kind, by: 'timeout', reason: 'nobody answered in time' }, next);
}

/** Only time spent RUNNING counts; a timer that comes early is set again. */
async function timeOutRun(work: Work, run_key: number): Promise<void> {
  const [run] = await work.runs([run_key]);
  if (run === undefined || run.active_since === null || run.stopping === 1 || run.cancelled === 1) return;
  // All its tasks are done; only `outputs` are left to be worked out.
  if (run.finishing === 1) return;
  const { timeout_ms } = runSettings(run);
  if (timeout_ms === null) return;
  const leftMs = timeout_ms - run.active_ms - (work.now - run.active_since);
  if (leftMs > 0) {
    work.addTimer({ due_at: work.now + leftMs, kind: 'run_timeout', subject: run_key });
    return;
  }
  run.stop_reason = 'timeout';
  run.error = JSON.stringify({
    class: 'timeout',
    code: 'TIMEOUT',
    message: `the run took longer than ${timeout_ms} ms`,
  });
  await stopRun(work, run);
}
