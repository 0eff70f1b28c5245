/** Whole things where the API gives pages. */
import type { Page, RelayApi, RunView, TaskView } from '../app/api.ts';

const PAGE = 1_000;

/** A run with all its tasks. */
export async function wholeRun(api: RelayApi, run_id: string): Promise<RunView> {
  return withAllTasks(api, await api.runs.get(run_id));
}

/** A run that is at hand, with the tasks beyond its first page. */
export async function withAllTasks(api: RelayApi, run: RunView): Promise<RunView> {
  if (run.tasks_next_cursor === null) return run;
  const tasks: TaskView[] = [...run.tasks];
  for (let cursor: string | null = run.tasks_next_cursor; cursor !== null; ) {
    const page: Page<TaskView> = await api.runs.tasks(run.id, { cursor, limit: PAGE });
    tasks.push(...page.items);
    cursor = page.next_cursor;
  }
  return { ...run, tasks, tasks_next_cursor: null };
}
