/** What a run would do, without a run: phases, checked inputs, and the rendered `with` of the tasks that would start first. */
import type { Task, Workflow } from '../definition/workflow.ts';
import { buildGraph, phases } from '../domain/graph.ts';
import { compileValue } from '../engine/compiled-value.ts';
import { checkInputs } from '../engine/inputs.ts';
import { compileList } from '../engine/plan.ts';
import { TemplateError } from '../template/template.ts';

/** Of a long list the first items say enough. */
const ITEMS_SHOWN = 3;

/** A task that would start first. */
interface FirstTask {
  readonly task_id: string;
  readonly uses: string;
  /** `with` after rendering, secrets masked; null when it cannot be rendered. */
  readonly input: unknown;
  readonly problem: string | null;
  /** How many items a map would have, and which of them this is; null for a task without `for_each`. */
  readonly items: { readonly index: number; readonly total: number } | null;
}

/** The plan of a run. */
export interface DryRun {
  readonly workflow_name: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly phases: readonly (readonly string[])[];
  readonly first: readonly FirstTask[];
}

/** Works out the plan. Nothing is stored, started or asked for. */
export async function dryRun(
  workflow: Workflow,
  given: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
): Promise<DryRun> {
  const inputs = await checkInputs(workflow, given);
  const entries = Object.entries(workflow.tasks);
  const graph = buildGraph(entries.map(([id, { needs }]) => ({ id, needs })));
  const named = (names: readonly string[] | undefined, value: (name: string) => string | undefined) =>
    Object.fromEntries(
      (names ?? []).map((name) => [name, value(name)]).filter(([, found]) => found !== undefined),
    );
  const scope = {
    inputs,
    run: {
      id: 'dry-run',
      workflow_name: workflow.name,
      workflow_version: null,
      labels: workflow.labels ?? {},
      created_at: null,
    },
    env: named(workflow.env, (name) => env[name]),
    secrets: named(workflow.secrets, () => '***'),
    tasks: {},
  };
  const first = entries
    .filter(([, { needs }]) => needs.length === 0)
    .flatMap(([task_id, task]) => {
      const own = { ...scope, task: { id: task_id, task_run_id: 'dry-run', attempt: 1 } };
      return firstInputs(task, own).map((input) => ({ task_id, uses: task.uses, ...input }));
    });
  return { workflow_name: workflow.name, inputs, phases: phases(graph), first };
}

type FirstInput = Pick<FirstTask, 'input' | 'problem' | 'items'>;

/** What a task would be given; of a map, what its first items would. */
function firstInputs(task: Task, scope: Readonly<Record<string, unknown>>): readonly FirstInput[] {
  if (task.for_each === undefined) return [{ ...render(compileValue(task.with), scope), items: null }];
  const { input: list, problem } = render(compileList(task.for_each), scope);
  if (problem !== null) return [{ input: null, problem, items: null }];
  if (!Array.isArray(list)) return [{ input: null, problem: '`for_each` does not give a list', items: null }];
  const config = compileValue(task.with);
  const total = list.length;
  if (total === 0) return [{ input: null, problem: null, items: { index: 0, total } }];
  return list.slice(0, ITEMS_SHOWN).map((item: unknown, index) => ({
    ...render(config, { ...scope, item, index }),
    items: { index, total },
  }));
}

function render(
  value: { render(scope: Readonly<Record<string, unknown>>): unknown } | null,
  scope: Readonly<Record<string, unknown>>,
): Pick<FirstTask, 'input' | 'problem'> {
  try {
    return { input: value?.render(scope) ?? null, problem: null };
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    return { input: null, problem: error.message };
  }
}
