/** A task run from the command line: by its own id, or by the id of its run and its name in the workflow. */
import type { RelayApi, TaskView } from '../app/api.ts';
import { RelayError } from '../base/errors.ts';
import { didYouMean } from '../base/suggest.ts';

/** The arguments of every command about one task run. */
export const TASK_ARGUMENTS = {
  first: ['<task-run>', 'a task run; or a run, when a task follows'],
  second: ['[task]', 'the task in that run, as the workflow names it; an item is task[3]'],
} as const;

/** Finds it, or says what is missing. */
export async function findTask(api: RelayApi, id: string, name: string | undefined): Promise<TaskView> {
  if (name === undefined) return byId(api, id);
  const [, task_id = name, index] = /^(.*)\[(\d+)\]$/.exec(name) ?? [];
  const found = await api.runs.tasks(id, { task_id, limit: 1_000 });
  const wanted = index === undefined ? null : Number(index);
  const task = found.items.find(({ map_index }) => map_index === wanted) ?? found.items[0];
  if (task !== undefined) return task;
  const { tasks } = await api.runs.get(id);
  throw new RelayError('NOT_FOUND', `run ${id} has no task \`${task_id}\``, {
    hint:
      didYouMean(
        task_id,
        tasks.map((each) => each.task_id),
      ) ?? `\`relay runs show ${id}\` lists its tasks`,
  });
}

async function byId(api: RelayApi, id: string): Promise<TaskView> {
  try {
    return await api.tasks.get(id);
  } catch (error) {
    if (!(error instanceof RelayError) || error.code !== 'NOT_FOUND') throw error;
    const run = await api.runs.get(id).catch(() => null);
    if (run === null) throw error;
    const [first] = run.tasks;
    throw new RelayError('USAGE', `${id} is a run; name one of its tasks as well`, {
      hint: first === undefined ? undefined : `for example: ${id} ${first.task_id}`,
    });
  }
}
