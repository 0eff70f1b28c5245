/** What a run would do, without a run: phases, checked inputs, and the rendered `with` of the tasks that would start first. */
import type { Workflow } from '../definition/workflow.ts';
import { buildGraph, phases } from '../domain/graph.ts';
import { compileValue } from '../engine/compiled-value.ts';
import { checkInputs } from '../engine/inputs.ts';
import { TemplateError } from '../template/template.ts';

/** A task that would start first. */
interface FirstTask {
  readonly task_id: string;
  readonly uses: string;
  /** `with` after rendering, secrets masked; null when it cannot be rendered. */
  readonly input: unknown;
  readonly problem: string | null;
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
    .map(([task_id, task]) => {
      const own = { ...scope, task: { id: task_id, task_run_id: 'dry-run', attempt: 1 } };
      return { task_id, uses: task.uses, ...render(task.with, own) };
    });
  return { workflow_name: workflow.name, inputs, phases: phases(graph), first };
}

function render(
  config: unknown,
  scope: Readonly<Record<string, unknown>>,
): Pick<FirstTask, 'input' | 'problem'> {
  try {
    return { input: compileValue(config).render(scope), problem: null };
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    return { input: null, problem: error.message };
  }
}
