/** Tasks that are added to a run while it goes on (SPEC S4.10): read as a workflow in which the tasks of the run stand as they are. */
import type { HandlerCatalog } from '../definition/handler-spec.ts';
import { checkWorkflowValue, requireWorkflow } from '../definition/load.ts';
import type { Task, Workflow } from '../definition/workflow.ts';

/** A task with its name in the run. */
export interface NamedTask {
  readonly id: string;
  readonly task: Task;
}

/** Tasks as they are written, by id. */
export type WrittenTasks = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The canonical tasks, those that others need first; INVALID_WORKFLOW with all that is wrong. */
export async function readNewTasks(
  tasks: WrittenTasks,
  { known, handlers }: { known: Iterable<string>; handlers: HandlerCatalog },
): Promise<readonly NamedTask[]> {
  const stubs = [...known].filter((id) => !Object.hasOwn(tasks, id));
  const foreign = Object.values(tasks)
    .map((task) => task.uses)
    .filter((uses): uses is string => typeof uses === 'string' && !handlers.has(uses));
  const definition = {
    name: 'open-run',
    handlers: [...new Set(foreign)],
    tasks: {
      ...Object.fromEntries(stubs.map((id) => [id, { uses: 'transform', with: { value: null } }])),
      ...tasks,
    },
  };
  const workflow = requireWorkflow(await checkWorkflowValue(definition, { handlers }));
  return inOrder(Object.keys(tasks), workflow);
}

/** Those that others need come first: a task may only name what is there. */
function inOrder(ids: readonly string[], workflow: Workflow): readonly NamedTask[] {
  const listed = new Map<string, Task>();
  const add = (id: string): void => {
    const task = workflow.tasks[id];
    if (task === undefined || listed.has(id) || !ids.includes(id)) return;
    for (const need of task.needs) add(need);
    listed.set(id, task);
  };
  for (const id of ids) add(id);
  return [...listed].map(([id, task]) => ({ id, task }));
}
