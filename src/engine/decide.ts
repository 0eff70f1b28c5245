/**
 * What becomes of a task whose parents are done, where a template has a say (TRANSITIONS 6–12). `evaluate` works it out from
 * committed data, outside any transaction; `applyVerdict` makes it durable if the task still waits for it.
 */
import { parseDuration } from '../base/duration.ts';
import { newQuestionId } from '../base/ids.ts';
import { invariant } from '../base/invariant.ts';
import type { TaskFailure } from '../domain/failure.ts';
import type { TaskRow } from '../stores/rows.ts';
import { type Scope, TemplateError } from '../template/template.ts';
import { isTruthy } from '../template/truth.ts';
import { makeReady } from './advance.ts';
import type { CompiledValue } from './compiled-value.ts';
import { acceptList, endMap, type MapEnd } from './map-row.ts';
import type { PlannedTask } from './plan.ts';
import type { Cause } from './task-events.ts';
import type { Work } from './work.ts';

/** What a person is asked, as stored with the task. */
export interface StoredQuestion {
  readonly kind: 'gate' | 'approval' | 'worker';
  readonly key?: string;
  readonly message: string;
  readonly schema?: unknown;
  /** As a worker said it; what counts is the time. */
  readonly timeout?: string;
  readonly timeout_at?: number | null;
  readonly on_timeout?: 'approve' | 'reject';
  readonly on_reject?: 'fail' | 'skip';
}

/** The outcome of a decision. */
export type Verdict =
  | { readonly kind: 'skip' }
  | { readonly kind: 'fail'; readonly failure: TaskFailure }
  | { readonly kind: 'ask'; readonly question: StoredQuestion }
  | { readonly kind: 'wait'; readonly dueAt: number }
  /** What `for_each` gave; it is stored before it is applied. */
  | { readonly kind: 'list'; readonly items: readonly unknown[]; readonly slots: number | null }
  | { readonly kind: 'items'; readonly list: Parameters<typeof acceptList>[2] }
  | { readonly kind: 'gathered'; readonly end: MapEnd }
  /** The rest is decided in a commit of its own. */
  | { readonly kind: 'later' }
  | { readonly kind: 'go' };

/** Everything a decision may read: for a map its list, for an item only what the handler is given. */
export function decisionReferences(planned: PlannedTask, task: TaskRow): CompiledValue['references'] {
  const config = planned.settledBy === 'worker' ? [] : planned.config.references;
  if (task.map_key !== null) return config;
  const condition = typeof planned.condition === 'object' ? (planned.condition?.references ?? []) : [];
  const own = planned.list === null ? config : planned.list.references;
  return [...condition, ...(planned.gateMessage?.references ?? []), ...own];
}

/** Works out the first of `if`, gate, `approval`, `wait` that has something to say. What was decided before is not asked again (SPEC S4.2). */
export function evaluate(
  planned: PlannedTask,
  scope: Scope,
  state: { decided: TaskRow['gate']; now: number; isItem: boolean; itemsMax: number },
): Verdict {
  try {
    const { condition } = planned;
    if (state.decided === null && condition !== null) {
      if (!isTruthy(typeof condition === 'boolean' ? condition : condition.render(scope)))
        return { kind: 'skip' };
    }
    if (planned.task.gate !== undefined && state.decided !== 'passed')
      return askGate(planned, withoutSecrets(scope), state.now);
    if (planned.list !== null && !state.isItem)
      return listItems(planned, planned.list.render(scope), state.itemsMax);
    if (planned.settledBy === 'person') return askApproval(planned, withoutSecrets(scope), state.now);
    if (planned.settledBy === 'timer') return waitFor(planned, scope, state.now);
    return { kind: 'go' };
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    return failTemplate(error.message, error.hint);
  }
}

function listItems({ task }: PlannedTask, items: unknown, itemsMax: number): Verdict {
  if (!Array.isArray(items)) {
    const kind = typeof items === 'object' ? 'an object' : `a ${typeof items}`;
    const found = items === null || items === undefined ? 'nothing' : kind;
    return failTemplate(`\`for_each\` gave ${found}, not a list`, 'give it a list, such as `tasks.x.output`');
  }
  if (items.length > itemsMax)
    return failTemplate(
      `\`for_each\` gave ${items.length} items; at most ${itemsMax} are allowed`,
      'split the list, or raise map_items_max in the config file',
    );
  return { kind: 'list', items, slots: task.max_parallel ?? null };
}

/** What a person is asked is stored and shown. */
function withoutSecrets(scope: Scope): Scope {
  const names = Object.keys((scope.secrets ?? {}) as object);
  return { ...scope, secrets: Object.fromEntries(names.map((name) => [name, '***'])) };
}

function askGate(planned: PlannedTask, scope: Scope, now: number): Verdict {
  const gate = planned.task.gate;
  const timeout = gate?.timeout === undefined ? null : parseDuration(gate.timeout);
  return {
    kind: 'ask',
    question: {
      kind: 'gate',
      message: String(planned.gateMessage?.render(scope) ?? ''),
      ...(gate?.form === undefined ? {} : { schema: gate.form }),
      timeout_at: timeout === null ? null : now + timeout,
      on_timeout: gate?.on_timeout ?? 'reject',
      on_reject: gate?.on_reject ?? 'fail',
    },
  };
}

function askApproval(planned: PlannedTask, scope: Scope, now: number): Verdict {
  const config = planned.config.render(scope) as {
    message?: unknown;
    form?: unknown;
    timeout?: unknown;
    on_timeout?: unknown;
  };
  const timeout = config.timeout === undefined ? null : parseDuration(String(config.timeout));
  if (config.timeout !== undefined && timeout === null)
    return failTemplate(`\`timeout\` is not a duration: ${String(config.timeout)}`);
  return {
    kind: 'ask',
    question: {
      kind: 'approval',
      message: String(config.message ?? ''),
      ...(config.form === undefined ? {} : { schema: config.form }),
      timeout_at: timeout === null ? null : now + timeout,
      on_timeout: config.on_timeout === 'approve' ? 'approve' : 'reject',
    },
  };
}

function waitFor(planned: PlannedTask, scope: Scope, now: number): Verdict {
  const config = planned.config.render(scope) as { for?: unknown; until?: unknown };
  if (config.for !== undefined) {
    const ms = parseDuration(String(config.for));
    return ms === null
      ? failTemplate(`\`for\` is not a duration: ${String(config.for)}`)
      : { kind: 'wait', dueAt: now + ms };
  }
  const dueAt = Date.parse(String(config.until));
  return Number.isNaN(dueAt)
    ? failTemplate(`\`until\` is not a time: ${String(config.until)}`)
    : { kind: 'wait', dueAt };
}

function failTemplate(message: string, hint?: string): Verdict {
  const failure: TaskFailure = {
    class: 'template',
    code: 'TEMPLATE_FAILED',
    message,
    ...(hint === undefined ? {} : { hint }),
  };
  return { kind: 'fail', failure };
}

/** Makes a verdict durable: from PENDING when the task was undecided, from BLOCKED when its gate was just passed. */
export function applyVerdict(work: Work, task: TaskRow, verdict: Verdict, decision?: Cause): void {
  switch (verdict.kind) {
    case 'skip':
      work.move(task, 'SKIPPED', { event: 'task.skipped', reason: 'condition_false' });
      return;
    case 'fail':
      task.error = JSON.stringify(verdict.failure);
      work.move(task, 'FAILED', {
        event: 'task.failed',
        reason: 'terminal',
        data: { error: verdict.failure },
      });
      return;
    case 'ask':
      task.gate = verdict.question.kind === 'gate' ? 'condition' : 'passed';
      ask(work, task, verdict.question, decision);
      return;
    case 'wait':
      task.gate = 'passed';
      if (verdict.dueAt <= work.now) completeWait(work, task, verdict.dueAt, decision);
      else
        work.enqueue(task, decision ?? { event: 'task.queued' }, { notBefore: verdict.dueAt, kind: 'wait' });
      return;
    case 'items':
      acceptList(work, task, verdict.list);
      return;
    case 'gathered':
      endMap(work, task, verdict.end);
      return;
    case 'later':
      work.move(task, 'PENDING', decision ?? { event: 'task.approved' });
      task.gate = 'passed';
      task.undecided = 1;
      return;
    case 'go':
      task.gate = 'passed';
      makeReady(work, task, decision);
      return;
    case 'list':
      invariant(false, 'a list is stored before it is applied');
  }
}

/** A `wait` is over; its output says until when it waited. */
export function completeWait(work: Work, task: TaskRow, dueAt: number, decision?: Cause): void {
  const text = JSON.stringify({ until: new Date(dueAt).toISOString() });
  const payload = { content_type: 'application/json', bytes: text.length, inline: text, blob_ref: null };
  // No claim has counted it; a rerun must not meet the output of the time before.
  task.attempt += 1;
  work.addArtifact(task, { ordinal: 0, kind: 'output', name: 'output', ...payload });
  task.not_before = null;
  work.move(task, 'SUCCESS', decision ?? { event: 'task.completed' });
}

/** A task that is BLOCKED already has passed its gate and asks the question of its own next. */
function ask(work: Work, task: TaskRow, question: StoredQuestion, decision?: Cause): void {
  const data = { message: question.message.slice(0, 500) };
  if (task.status !== 'BLOCKED') work.move(task, 'BLOCKED', { event: 'task.blocked', data });
  else work.note(task, { event: 'task.approved', ...decision, data: { ...decision?.data, ...data } });
  task.question_id = newQuestionId();
  task.question = JSON.stringify(question);
  if (question.timeout_at !== null && question.timeout_at !== undefined)
    work.addTimer({ due_at: question.timeout_at, kind: 'question', subject: task.key });
}
