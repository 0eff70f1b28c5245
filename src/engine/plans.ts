/** Plans by workflow version, kept in memory. A version never changes, so a plan never goes stale. */
import { invariant } from '../base/invariant.ts';
import type { HandlerCatalog } from '../definition/handler-spec.ts';
import { hashWorkflow, type Task, type Workflow } from '../definition/workflow.ts';
import type { RunRow, TaskRow } from '../stores/rows.ts';
import type { Tx } from '../stores/store.ts';
import { buildPlan, type Plan, type PlannedTask, planTask } from './plan.ts';

const PLANS_MAX = 200;

/** Finds or builds the plan of a run or task. */
export class Plans {
  readonly #handlers: HandlerCatalog;
  readonly #onPlan: (workflow: Workflow) => void;
  readonly #plans = new Map<string, Plan>();
  /** The plan that was found last: neighbours in a batch mostly have the same. */
  #last: { readonly name: string | null; readonly version: number | null; readonly plan: Plan } | null = null;

  /** `onPlan` hears of every workflow before any task of it is handed out here. */
  constructor(handlers: HandlerCatalog, onPlan: (workflow: Workflow) => void = () => {}) {
    this.#handlers = handlers;
    this.#onPlan = onPlan;
  }

  /** The plan of a version that is being stored. One that was rolled back may have left a plan under the same number. */
  ensure(version: number, workflow: Workflow): Plan {
    const known = this.#plans.get(`${workflow.name}@${version}`);
    return known !== undefined && isSame(known.workflow, workflow) ? known : this.#add(version, workflow);
  }

  #add(version: number, workflow: Workflow): Plan {
    this.#onPlan(workflow);
    const plan = buildPlan(workflow, this.#handlers);
    this.#last = null;
    this.#plans.set(`${workflow.name}@${version}`, plan);
    if (this.#plans.size > PLANS_MAX) {
      for (const oldest of this.#plans.keys()) {
        this.#plans.delete(oldest);
        break;
      }
    }
    return plan;
  }

  /** The plan of a run; null for an open run. */
  async of(run: RunRow, tx: Tx): Promise<Plan | null> {
    const { workflow_name, workflow_version } = run;
    if (workflow_name === null || workflow_version === null) return null;
    const known = this.#find(run);
    if (known !== undefined) return known;
    const row = await tx.workflows.get(workflow_name, workflow_version);
    invariant(
      row !== null,
      `the workflow ${workflow_name} version ${workflow_version} of run ${run.id} is stored`,
    );
    return this.#add(workflow_version, JSON.parse(row.definition) as Workflow);
  }

  /** The plan of a task when it is in memory. */
  known(task: TaskRow, run: RunRow): PlannedTask | null {
    if (task.spec !== null) return this.single(task.task_id, JSON.parse(task.spec) as Task);
    return this.#find(run)?.tasks.get(task.task_id) ?? null;
  }

  #find({ workflow_name: name, workflow_version: version }: RunRow): Plan | undefined {
    if (this.#last?.name === name && this.#last.version === version) return this.#last.plan;
    const plan = this.#plans.get(`${name}@${version}`);
    if (plan !== undefined) this.#last = { name, version, plan };
    return plan;
  }

  /** The plan of one task, whether its run has a workflow or not. */
  async task(task: TaskRow, run: RunRow, tx: Tx): Promise<PlannedTask> {
    if (task.spec !== null) return this.single(task.task_id, JSON.parse(task.spec) as Task);
    const planned = (await this.of(run, tx))?.tasks.get(task.task_id);
    invariant(planned !== undefined, `the task ${task.task_id} of run ${run.id} is in its workflow`);
    return planned;
  }

  single(id: string, task: Task): PlannedTask {
    return planTask(id, task, this.#handlers);
  }
}

function isSame(one: Workflow, other: Workflow): boolean {
  return one === other || hashWorkflow(one) === hashWorkflow(other);
}
