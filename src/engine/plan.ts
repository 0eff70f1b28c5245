/** A workflow made ready to run: templates compiled, policies in milliseconds. Built once per version and kept. */
import { parseDuration } from '../base/duration.ts';
import type { HandlerCatalog } from '../definition/handler-spec.ts';
import type { Task, Workflow } from '../definition/workflow.ts';
import { DEFAULT_RETRY_POLICY, type RetryPolicy } from '../domain/retry.ts';
import { compileExpression } from '../template/compile.ts';
import type { Template } from '../template/template.ts';
import { type CompiledValue, compileValue } from './compiled-value.ts';
import { newTaskLimits } from './task-limits.ts';

/** One task of a plan. */
export interface PlannedTask {
  readonly id: string;
  readonly task: Task;
  readonly config: CompiledValue;
  readonly condition: Template | boolean | null;
  /** The list of a map. */
  readonly list: Pick<CompiledValue, 'references' | 'render'> | null;
  readonly gateMessage: CompiledValue | null;
  readonly settledBy: 'worker' | 'timer' | 'person';
  /** Nothing but its parents decides about the task. */
  readonly isPlain: boolean;
  /** The script to hand over with the config; it is code, never rendered. */
  readonly bundle: string | null;
  /** Names the queue: the handler, and what the task asks of a worker. */
  readonly queue: string;
  readonly retry: RetryPolicy | null;
  readonly timeoutMs: number | null;
  /** What a new row says it asks of limits and budgets. */
  readonly limits: string | null;
}

/** All tasks of a workflow version. */
export interface Plan {
  readonly workflow: Workflow;
  readonly tasks: ReadonlyMap<string, PlannedTask>;
  readonly outputs: ReadonlyMap<string, CompiledValue>;
}

/** Compiles a canonical workflow. It has been validated, so nothing here can fail for a user's mistake. */
export function buildPlan(workflow: Workflow, handlers: HandlerCatalog): Plan {
  const tasks = new Map(
    Object.entries(workflow.tasks).map(([id, task]) => [id, planTask(id, task, handlers, workflow.bundles)]),
  );
  const outputs = new Map(
    Object.entries(workflow.outputs ?? {}).map(([name, value]) => [name, compileValue(value)]),
  );
  return { workflow, tasks, outputs };
}

/** Compiles one canonical task, also one of an open run. */
export function planTask(
  id: string,
  task: Task,
  handlers: HandlerCatalog,
  bundles: Workflow['bundles'] = {},
): PlannedTask {
  const { settledBy = 'worker', bundledKey, reserve } = handlers.get(task.uses) ?? {};
  const condition = typeof task.if === 'string' ? compileExpression(task.if) : (task.if ?? null);
  return {
    id,
    task,
    config: compileValue(task.with),
    condition,
    list: compileList(task.for_each),
    gateMessage: task.gate === undefined ? null : compileValue(task.gate.message),
    settledBy,
    isPlain:
      condition === null && task.gate === undefined && task.for_each === undefined && settledBy === 'worker',
    bundle: bundledKey === undefined ? null : (bundles[String(task.with[bundledKey])] ?? null),
    queue: `${task.uses} ${JSON.stringify(task.worker ?? {})}`,
    retry: task.retry === undefined ? null : retryPolicy(task.retry),
    timeoutMs: task.timeout === undefined ? null : parseDuration(task.timeout),
    limits: newTaskLimits([...new Set(task.limits)], reserve !== undefined),
  };
}

/** `for_each`: a text is one expression, with or without braces; a list may hold templates. */
export function compileList(list: Task['for_each']): PlannedTask['list'] {
  if (list === undefined) return null;
  return typeof list === 'string' ? compileExpression(list) : compileValue(list);
}

function retryPolicy(retry: NonNullable<Task['retry']>): RetryPolicy {
  const ms = (text: string | undefined, otherwise: number): number =>
    text === undefined ? otherwise : (parseDuration(text) ?? otherwise);
  const defaults = DEFAULT_RETRY_POLICY;
  return {
    maxAttempts: retry.max_attempts ?? defaults.maxAttempts,
    maxLosses: retry.max_losses ?? defaults.maxLosses,
    initialMs: ms(retry.initial, defaults.initialMs),
    factor: retry.factor ?? defaults.factor,
    maxMs: ms(retry.max, defaults.maxMs),
    jitter: retry.jitter ?? defaults.jitter,
    onOutputError: retry.on_output_error ?? defaults.onOutputError,
    afterMaxMs: ms(retry.after_max, defaults.afterMaxMs),
  };
}
