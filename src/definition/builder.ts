/** Workflows as TypeScript values. `workflow()` and `task()` add types, nothing else: the result is the file as an object. */
import type { TaskInput, WorkflowInput } from './workflow-schema.ts';

/** Absent keys may be left out; the schema's own optional keys also allow undefined. */
type Written<T> = { readonly [Key in keyof T]: Exclude<T[Key], undefined> };

/** A task whose `needs` may name only the tasks of `Id`. */
export type TaskDefinition<Id extends string = string> = Partial<Written<Omit<TaskInput, 'needs'>>> & {
  readonly needs?: Id | readonly Id[];
};

/** A workflow whose tasks are known by name at compile time. */
export type WorkflowDefinition<Id extends string = string> = Pick<WorkflowInput, 'name'> &
  Partial<Written<Omit<WorkflowInput, 'name' | 'tasks'>>> & {
    readonly tasks: { readonly [Key in Id]: TaskDefinition<NoInfer<Id>> };
  };

/** Declares a workflow. A `needs` that names no task of it is a compile error. */
export function workflow<const Id extends string>(
  definition: WorkflowDefinition<Id>,
): WorkflowDefinition<Id> {
  return definition;
}

/** Declares one task, for definitions that are put together from parts. */
export function task<const Id extends string = never>(definition: TaskDefinition<Id>): TaskDefinition<Id> {
  return definition;
}
