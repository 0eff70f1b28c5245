/** Works out what model calls will ask of limits and budgets, before they are handed out: a follow-up, outside any transaction. */
import { isStoreError } from '../base/errors.ts';
import type { ModelNeed } from '../domain/limits.ts';
import type { RunRow, TaskRow } from '../stores/rows.ts';
import type { Scope } from '../template/template.ts';
import { advance } from './advance.ts';
import type { EngineContext } from './engine-context.ts';
import { budgetOf } from './limit-admission.ts';
import type { PlannedTask } from './plan.ts';
import { isHeldBack, readLimits, TO_ESTIMATE, writeLimits } from './task-limits.ts';
import type { Work } from './work.ts';

const BATCH = 100;

interface Estimate {
  readonly key: number;
  readonly version: number;
  readonly needs: readonly ModelNeed[];
}

/** Estimates a batch and lets its tasks go on; returns how many there were. */
export async function estimateBatch(context: EngineContext): Promise<number> {
  const tasks = await context.store.read(async (tx) => {
    const rows = await tx.held.first(TO_ESTIMATE, 'all', BATCH);
    return rows.length === 0 ? [] : tx.tasks.byKeys(rows.map(({ task_key }) => task_key));
  });
  if (tasks.length === 0) return 0;
  const estimates = await estimateEach(context, tasks);
  await context.committer.commit((work) => apply(work, estimates));
  return estimates.length;
}

/** One input that cannot be put together keeps nobody else waiting: its attempt fails before any call is made. */
async function estimateEach(context: EngineContext, tasks: readonly TaskRow[]): Promise<readonly Estimate[]> {
  try {
    return await estimateTogether(context, tasks);
  } catch (error) {
    const [task] = tasks;
    if (isStoreError(error) || task === undefined) throw error;
    if (tasks.length === 1) return [{ key: task.key, version: task.version, needs: [] }];
    const parts: Estimate[] = [];
    for (const each of tasks) parts.push(...(await estimateEach(context, [each])));
    return parts;
  }
}

function estimateTogether(context: EngineContext, tasks: readonly TaskRow[]): Promise<readonly Estimate[]> {
  const { store, plans, scopes } = context;
  return store.read(async (tx) => {
    const runs = new Map(
      (await tx.runs.byKeys([...new Set(tasks.map(({ run_key }) => run_key))])).map((run) => [run.key, run]),
    );
    const open = [];
    for (const task of tasks) {
      const run = runs.get(task.run_key);
      if (run !== undefined) open.push({ task, run, planned: await plans.task(task, run, tx) });
    }
    const found = await scopes.build(
      tx,
      open.map((each) => ({ ...each, references: each.planned.config.references })),
    );
    return open.map(({ task, run, planned }, index) => {
      const needs = needsOf(context, planned, found[index] ?? {});
      warnOfPrices(context, run, needs);
      return { key: task.key, version: task.version, needs };
    });
  });
}

/** A budget in money cannot count what nobody knows the price of. */
function warnOfPrices({ logger }: EngineContext, run: RunRow, needs: readonly ModelNeed[]): void {
  if ((budgetOf(run)?.cost_usd ?? null) === null) return;
  const hint = 'its calls do not count against cost_usd; give it a price in the config file, or bound tokens';
  for (const { model, cost_usd } of needs)
    if (cost_usd === null) logger.warn('budget.unpriced', { run_id: run.id, model, hint });
}

/** A config that does not fit asks nothing: it fails before any call is made. */
function needsOf({ handlers }: EngineContext, planned: PlannedTask, scope: Scope): readonly ModelNeed[] {
  const handler = handlers.get(planned.task.uses);
  const config = handler?.config.safeParse(planned.config.render(scope));
  if (config?.success !== true) return [];
  return handler?.reserve?.(config.data, planned.task.output ?? null) ?? [];
}

async function apply(work: Work, estimates: readonly Estimate[]): Promise<void> {
  const tasks = new Map((await work.tasks(estimates.map(({ key }) => key))).map((task) => [task.key, task]));
  for (const { key, version, needs } of estimates) {
    const task = tasks.get(key);
    const limits = task === undefined ? null : readLimits(task);
    // Somebody else was faster, or the task was cancelled meanwhile.
    if (task === undefined || limits?.place !== TO_ESTIMATE || !isHeldBack(task) || task.version !== version)
      continue;
    writeLimits(task, limits, { needs });
    work.letGo(task);
  }
  await advance(work);
}
