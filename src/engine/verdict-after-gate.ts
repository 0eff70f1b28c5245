/** What a task's definition says once its gate is passed: usually nothing more, for `wait` the time to wait, for a map its list. */
import type { TaskRow } from '../stores/rows.ts';
import { decisionReferences, evaluate, type Verdict } from './decide.ts';
import type { EngineContext } from './engine-context.ts';
import type { Work } from './work.ts';

/** The decision that follows an approval. Rare and bounded, so it is worked out inside the transaction. */
export async function verdictAfterGate(context: EngineContext, work: Work, task: TaskRow): Promise<Verdict> {
  const run = work.runOf(task);
  const planned = await context.plans.task(task, run, work.tx);
  // A list may be large and is stored before it is applied, so it is worked out like any other, after this commit.
  if (planned.list !== null && task.map_key === null) return { kind: 'later' };
  if (planned.settledBy === 'worker') return { kind: 'go' };
  const [scope = {}] = await context.scopes.build(work.tx, [
    { task, run, references: decisionReferences(planned, task) },
  ]);
  const isItem = task.map_key !== null;
  return evaluate(planned, scope, { decided: 'passed', now: work.now, isItem, itemsMax: context.itemsMax });
}
