/** Model calls that wait until others of their run have ended and given back what they had reserved (SPEC S8.2). */
import { type Amount, addAmounts, amountOf } from '../domain/limits.ts';
import type { RunRow } from '../stores/rows.ts';
import { budgetOf, checkBudget } from './limit-admission.ts';
import { AT_BUDGET, isHeldBack, readLimits } from './task-limits.ts';
import type { Work } from './work.ts';

/** Rows that one transaction looks at. */
const BATCH = 500;

/** Calls that waited for others to end go on, in their order, as far as there is room. */
export async function wakeForBudget(work: Work, run: RunRow): Promise<void> {
  const budget = budgetOf(run);
  if (budget === null) return;
  const rows = await work.tx.held.ofRun(run.key, AT_BUDGET, BATCH + work.heldRemovals);
  let promised: Amount = { tokens: 0, cost_usd: 0 };
  for (const task of await work.tasks(rows.map(({ task_key }) => task_key))) {
    const limits = readLimits(task);
    if (!isHeldBack(task) || limits?.place !== AT_BUDGET) continue;
    promised = addAmounts(promised, amountOf(limits.needs ?? []));
    // One that can never fit goes on too: the claim says so.
    if (checkBudget(run, budget, promised) === 'later') return;
    work.letGo(task);
  }
}
