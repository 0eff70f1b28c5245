/** Sums of what attempts used, kept on the task and on the run. */
import { addCosts, addModelUses } from '../domain/model-use.ts';
import type { TaskRow } from '../stores/rows.ts';
import type { Usage } from '../worker/work-source.ts';
import type { Work } from './work.ts';

/** Adds one attempt's usage to its task and run. A cost that is unknown makes the sum unknown. */
export function addUsage(work: Work, task: TaskRow, usage: Usage): void {
  const run = work.runOf(task);
  task.usage = sum(task.usage, usage);
  run.usage = sum(run.usage, usage);
  work.change(task);
  work.changeRun(run);
}

function sum(stored: string | null, usage: Usage): string {
  const before = stored === null ? {} : (JSON.parse(stored) as Usage);
  const add = (key: 'tokens_in' | 'tokens_out' | 'tokens_cached'): number =>
    (before[key] ?? 0) + (usage[key] ?? 0);
  const cost_usd = addCosts(costOf(before), costOf(usage));
  const isByModel = before.models !== undefined || usage.models !== undefined;
  return JSON.stringify({
    tokens_in: add('tokens_in'),
    tokens_out: add('tokens_out'),
    tokens_cached: add('tokens_cached'),
    cost_usd,
    ...(isByModel ? { models: addModelUses(before.models, usage.models) } : {}),
  });
}

/** What was not said to cost anything is free; null is unknown. */
function costOf({ cost_usd = 0 }: Usage): number | null {
  return cost_usd;
}
