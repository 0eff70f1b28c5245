/** Leased rows → leases with their config rendered, from committed data only and after the commit (SPEC S2.4). */
import { isStoreError } from '../base/errors.ts';
import type { TaskFailure } from '../domain/failure.ts';
import type { RunRow, TaskRow } from '../stores/rows.ts';
import type { Store } from '../stores/store.ts';
import { type Scope, TemplateError } from '../template/template.ts';
import type { Lease } from '../worker/work-source.ts';
import { ATTEMPT_TIMEOUT_MS } from './claim.ts';
import type { PlannedTask } from './plan.ts';
import type { Plans } from './plans.ts';
import { runTrace } from './run-settings.ts';
import type { Scopes } from './scope.ts';

/** A row that was just leased. */
export interface Leased {
  readonly task: TaskRow;
  readonly run: RunRow;
}

/** What can be worked on, and what failed before any work. */
export interface Rendered {
  readonly leases: readonly Lease[];
  readonly failed: readonly { readonly lease_id: string; readonly failure: TaskFailure }[];
}

const NOTHING: Readonly<Record<string, never>> = Object.freeze({});

interface RenderContext {
  readonly store: Store;
  readonly plans: Plans;
  readonly scopes: Scopes;
}

/** Renders the inputs of leases. What fails ends its own attempt; the others are not touched by it. */
export async function renderLeases(leased: readonly Leased[], context: RenderContext): Promise<Rendered> {
  try {
    return await renderTogether(leased, context);
  } catch (error) {
    if (isStoreError(error)) throw error;
    if (leased.length === 1) {
      const message = `the input cannot be put together: ${error instanceof Error ? error.message : error}`;
      const failure: TaskFailure = { class: 'template', code: 'TEMPLATE_FAILED', message };
      return { leases: [], failed: [{ lease_id: leased[0]?.task.lease_id ?? '', failure }] };
    }
    const parts: Rendered[] = [];
    for (const each of leased) parts.push(await renderLeases([each], context));
    return {
      leases: parts.flatMap(({ leases }) => leases),
      failed: parts.flatMap(({ failed }) => failed),
    };
  }
}

async function renderTogether(leased: readonly Leased[], context: RenderContext): Promise<Rendered> {
  const literal = literalPlans(leased, context.plans);
  if (literal !== null) return collect(leased, literal, new Map());
  return context.store.read(async (tx) => {
    const planned: PlannedTask[] = [];
    for (const { task, run } of leased) planned.push(await context.plans.task(task, run, tx));
    const requests = leased.flatMap((each, index) => {
      const { isLiteral = true, references = [] } = planned[index]?.config ?? {};
      return isLiteral ? [] : [{ ...each, references }];
    });
    const scopes = await context.scopes.build(tx, requests);
    const scopeOf = new Map(requests.map(({ task }, index) => [task, scopes[index] ?? {}]));
    return collect(leased, planned, scopeOf);
  });
}

/** The plans of tasks whose config is the same for all; null when one must be rendered, or is not in memory. */
function literalPlans(leased: readonly Leased[], plans: Plans): readonly PlannedTask[] | null {
  const planned: PlannedTask[] = [];
  for (const { task, run } of leased) {
    const plan = plans.known(task, run);
    if (plan === null || !plan.config.isLiteral) return null;
    planned.push(plan);
  }
  return planned;
}

function collect(
  leased: readonly Leased[],
  planned: readonly PlannedTask[],
  scopeOf: ReadonlyMap<TaskRow, Scope>,
): Rendered {
  const leases: Lease[] = [];
  const failed: { lease_id: string; failure: TaskFailure }[] = [];
  let trace: Lease['trace'] | undefined;
  for (let index = 0; index < planned.length; index++) {
    const each = leased[index] as Leased;
    const plan = planned[index] as PlannedTask;
    const lease_id = each.task.lease_id ?? '';
    // Neighbours are often of one run.
    if (trace === undefined || each.run !== leased[index - 1]?.run) trace = runTrace(each.run);
    try {
      const scope = scopeOf.get(each.task) ?? NOTHING;
      const config = plan.config.render(scope) as Record<string, unknown>;
      const secrets = secretsOf(scope);
      const lease = toLease(each, plan, { config, trace });
      leases.push(secrets.length === 0 ? lease : { ...lease, secrets });
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error;
      const { message } = error;
      const hint = secretHint(message) ?? error.hint;
      const failure: TaskFailure = {
        class: 'template',
        code: 'TEMPLATE_FAILED',
        message,
        ...(hint === undefined ? {} : { hint }),
      };
      failed.push({ lease_id, failure });
    }
  }
  return { leases, failed };
}

function toLease(
  { task, run }: Leased,
  plan: PlannedTask,
  { config, trace }: Pick<Lease, 'config' | 'trace'>,
): Lease {
  return {
    lease_id: task.lease_id ?? '',
    run_id: run.id,
    task_run_id: task.id,
    task_id: task.task_id,
    map_index: task.map_index,
    attempt: task.attempt,
    handler: plan.task.uses,
    config: plan.bundle === null ? config : { ...config, bundle: plan.bundle },
    output: (plan.task.output as Lease['output']) ?? null,
    lease_ms: task.lease_ms ?? 0,
    timeout_ms: task.timeout_ms ?? ATTEMPT_TIMEOUT_MS,
    checkpoint: task.checkpoint === null ? undefined : (JSON.parse(task.checkpoint) as unknown),
    answers: task.answers === null ? NOTHING : (JSON.parse(task.answers) as Record<string, unknown>),
    workdir: run.workdir,
    trace,
  };
}

/** A worker elsewhere cannot know which part of its config is secret; it is told, so that it can mask what it keeps. */
function secretsOf({ secrets }: Readonly<Record<string, unknown>>): readonly string[] {
  if (typeof secrets !== 'object' || secrets === null) return [];
  return Object.values(secrets).filter((value) => typeof value === 'string');
}

/** A secret that is not set looks like a name that does not exist; the remedy is another. */
function secretHint(message: string): string | undefined {
  const name = /`secrets\.(\w+)`/.exec(message)?.[1];
  return name === undefined ? undefined : `set the environment variable ${name} where the engine runs`;
}
