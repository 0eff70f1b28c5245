/** The canonical workflow: the one form that is stored, hashed and planned. It is also a valid file. */
import { createHash } from 'node:crypto';
import { type TaskInput, type WorkflowInput, workflowSchema } from './workflow-schema.ts';

/** A task after defaults are merged and dependencies are known. */
export interface Task extends Omit<TaskInput, 'needs' | 'uses' | 'with'> {
  readonly needs: readonly string[];
  readonly uses: string;
  readonly with: Readonly<Record<string, unknown>>;
}

/** A workflow in canonical form. */
export interface Workflow extends Omit<WorkflowInput, 'tasks' | 'defaults'> {
  readonly tasks: Readonly<Record<string, Task>>;
  /** Scripts that tasks run, by module, put in when a run is started from a file; never part of what an author writes. */
  readonly bundles?: Readonly<Record<string, string>>;
}

const hashes = new WeakMap<Workflow, string>();

/** Identifies a canonical form: equal hashes are equal workflows, whatever they were written in. A workflow never changes. */
export function hashWorkflow(workflow: Workflow): string {
  let hash = hashes.get(workflow);
  if (hash === undefined) {
    hash = createHash('sha256').update(JSON.stringify(workflow)).digest('hex');
    hashes.set(workflow, hash);
  }
  return hash;
}

/**
 * Builds the canonical form from a file whose problems have all been mended. `needs` are final, inferred ones included.
 * The schema gives settings the order of its own keys; the order of tasks, and inside `with`, is the author's.
 */
export function canonicalWorkflow(
  input: WorkflowInput,
  tasks: ReadonlyMap<string, MergedTask>,
  needs: ReadonlyMap<string, readonly string[]>,
): Workflow {
  const { defaults: _, ...rest } = input;
  const full = [...tasks].map(([id, task]) => [
    id,
    { ...task, needs: needs.get(id) ?? [], with: task.with ?? {} },
  ]);
  return workflowSchema.parse({ ...rest, tasks: Object.fromEntries(full) }) as Workflow;
}

/** A task with the workflow's defaults in it. */
export type MergedTask = Omit<TaskInput, 'needs'> & { readonly needs: readonly string[] };

/** Keys whose settings are merged one by one; of the others, a task's own value replaces the default. */
export const MERGED_KEYS = ['with', 'retry', 'output', 'worker'] as const;

/** Puts `defaults` into a task. `with` is taken over only by tasks of the handler that the defaults are for. */
export function mergeDefaults(task: TaskInput, defaults: WorkflowInput['defaults']): MergedTask {
  const listed = task.needs ?? [];
  const needs = [...new Set(typeof listed === 'string' ? [listed] : listed)];
  if (defaults === undefined) return { ...task, needs };
  const isSameHandler = defaults.uses === undefined || (task.uses ?? defaults.uses) === defaults.uses;
  const base = isSameHandler ? defaults : { ...defaults, with: undefined };
  const merged: Record<string, unknown> = { ...base, ...task, needs };
  for (const key of MERGED_KEYS) {
    if (base[key] !== undefined && task[key] !== undefined) merged[key] = { ...base[key], ...task[key] };
    if (merged[key] === undefined) delete merged[key];
  }
  return merged as MergedTask;
}
