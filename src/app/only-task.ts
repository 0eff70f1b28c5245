/**
 * One task of a workflow by itself, with what it refers to taken from an earlier run (`relay run --only TASK --from RUN_ID`). Outputs
 * travel as an input of the new run: inputs are data and never rendered, so an output that looks like a template stays what it is.
 */
import { bytesOf } from '#client';
import { RelayError } from '../base/errors.ts';
import { didYouMean } from '../base/suggest.ts';
import type { Task, Workflow } from '../definition/workflow.ts';
import { compileValue, referencedTasks } from '../engine/compiled-value.ts';
import { compileList } from '../engine/plan.ts';
import type { RelayApi, RunView, TaskView } from './api.ts';

/** A run of one task. */
export interface OnlyTask {
  readonly definition: Workflow;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly labels: Readonly<Record<string, string>>;
}

const NAME_CHARS_MAX = 128;

/** Makes the workflow and the inputs. The earlier run is only read. */
export async function onlyTask(
  api: RelayApi,
  request: { readonly workflow: Workflow; readonly task_id: string; readonly from: string },
): Promise<OnlyTask> {
  const { workflow, task_id, from } = request;
  const task = workflow.tasks[task_id];
  if (task === undefined) {
    throw new RelayError('NOT_FOUND', `${workflow.name} has no task \`${task_id}\``, {
      hint: didYouMean(task_id, Object.keys(workflow.tasks)),
    });
  }
  const earlier = await api.runs.get(from);
  const needed = referencesOf(task);
  const outputs = await outputsOf(api, earlier, needed);
  const input = freeName(Object.keys(workflow.inputs ?? {}));
  const stands = needed.map((id) => [
    id,
    { needs: [], uses: 'transform', with: { value: `{{ inputs.${input}[${JSON.stringify(id)}] }}` } },
  ]);
  // Its own condition and `when` were about another run; that it should run now was just said.
  const { if: _if, when: _when, ...rest } = task;
  const declared = { ...workflow.inputs, [input]: { type: 'object' } };
  return {
    definition: {
      ...workflow,
      name: `${workflow.name}.only.${task_id}`.slice(0, NAME_CHARS_MAX),
      inputs: declared,
      outputs: { [task_id]: `{{ tasks[${JSON.stringify(task_id)}].output }}` },
      tasks: { ...Object.fromEntries(stands), [task_id]: { ...rest, needs: needed } },
    } as Workflow,
    inputs: { ...declaredInputs(earlier, workflow), [input]: outputs },
    labels: { only_task: task_id, from_run: from },
  };
}

/** Tasks whose results the templates of a task read. */
function referencesOf(task: Task): readonly string[] {
  const references = [
    ...compileValue(task.with).references,
    ...compileValue(task.gate?.message ?? '').references,
    ...(compileList(task.for_each)?.references ?? []),
  ];
  return referencedTasks(references);
}

async function outputsOf(
  api: RelayApi,
  run: RunView,
  ids: readonly string[],
): Promise<Readonly<Record<string, unknown>>> {
  const tasks = new Map<string, TaskView>();
  for (let page = { items: run.tasks, next: run.tasks_next_cursor }; ; ) {
    for (const task of page.items) if (task.map_index === null) tasks.set(task.task_id, task);
    if (page.next === null || ids.every((id) => tasks.has(id))) break;
    const more = await api.runs.tasks(run.id, { cursor: page.next, limit: 1_000 });
    page = { items: more.items, next: more.next_cursor };
  }
  const missing = ids.filter((id) => !['SUCCESS', 'SKIPPED'].includes(tasks.get(id)?.status ?? ''));
  if (missing.length > 0) {
    const list = missing.map((id) => `\`${id}\` (${tasks.get(id)?.status ?? 'not in that run'})`);
    throw new RelayError('USAGE', `run ${run.id} has no output of ${list.join(', ')}`, {
      hint: 'name a run in which these tasks succeeded',
    });
  }
  const values: [string, unknown][] = [];
  for (const id of ids) values.push([id, await outputOf(api, tasks.get(id))]);
  return Object.fromEntries(values);
}

async function outputOf(api: RelayApi, task: TaskView | undefined): Promise<unknown> {
  if (task === undefined || task.output_ref === null) return task?.output ?? null;
  const bytes = await bytesOf(await api.tasks.artifact(task.output_ref));
  return JSON.parse(new TextDecoder().decode(bytes)) as unknown;
}

function declaredInputs(run: RunView, workflow: Workflow): Record<string, unknown> {
  const names = Object.keys(workflow.inputs ?? {});
  const given = (run.inputs ?? {}) as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    names.filter((name) => Object.hasOwn(given, name)).map((name) => [name, given[name]]),
  );
}

function freeName(taken: readonly string[]): string {
  let name = 'outputs_of_run';
  while (taken.includes(name)) name += '_';
  return name;
}
