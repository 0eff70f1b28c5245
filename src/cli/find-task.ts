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
  const map_index = index === undefined ? undefined : Number(index);
  const [task] = (await api.runs.tasks(id, { task_id, map_index, limit: 1 })).items;
  if (task !== undefined) return task;
  if (map_index !== undefined) await refuseItem(api, id, { task_id, map_index });
  const { tasks } = await api.runs.get(id);
  throw new RelayError('NOT_FOUND', `run ${id} has no task \`${task_id}\``, {
    hint:
      didYouMean(
        task_id,
        tasks.map((each) => each.task_id),
      ) ?? `\`relay runs show ${id}\` lists its tasks`,
  });
}

/** The task is there, the item is not. */
async function refuseItem(
  api: RelayApi,
  run_id: string,
  { task_id, map_index }: { task_id: string; map_index: number },
): Promise<void> {
  const [map] = (await api.runs.tasks(run_id, { task_id, limit: 1 })).items;
  if (map === undefined) return;
  const has = map.items === null ? 'has no `for_each`' : `has ${map.items.total} items, counted from 0`;
  throw new RelayError('NOT_FOUND', `there is no item ${map_index}: \`${task_id}\` ${has}`);
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
