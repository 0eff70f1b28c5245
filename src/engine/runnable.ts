/** What the language knows and the engine does not run yet. A promise that would be ignored in silence is refused instead. */
import { RelayError } from '../base/errors.ts';
import type { Workflow } from '../definition/workflow.ts';

/** Refuses a workflow before anything is stored. */
export function requireRunnable(workflow: Workflow): void {
  const tasks = Object.entries(workflow.tasks);
  const limited = tasks.find(([, task]) => (task.limits ?? []).length > 0);
  if (limited !== undefined) throw refusal(`task \`${limited[0]}\` has \`limits\``);
  if (workflow.budget !== undefined) throw refusal('the workflow has a `budget`');
}

function refusal(what: string): RelayError {
  return new RelayError('NOT_SUPPORTED', `${what}, which this version cannot enforce yet`);
}
