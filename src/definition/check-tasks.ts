/** Checks that need no other task: names, bounds, handlers and their config, keys that have no effect. */
import type { DefinitionLimits } from '../base/limits.ts';
import { didYouMean } from '../base/suggest.ts';
import { TEMPLATE_ROOTS } from './check-templates.ts';
import type { HandlerCatalog, HandlerSpec } from './handler-spec.ts';
import type { Finding, Path, Problems } from './problem.ts';
import { checkShape, valueAt } from './schema-problems.ts';
import { isTemplated } from './template-sites.ts';
import type { MergedTask } from './workflow.ts';
import type { WorkflowInput } from './workflow-schema.ts';

const ID = /^[A-Za-z_][A-Za-z0-9_-]{0,127}$/;
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const WORKFLOW_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const RESERVED = new Set<string>([...TEMPLATE_ROOTS, '__proto__']);

/** What a check of tasks is told about the world. */
interface CheckContext {
  readonly handlers: HandlerCatalog;
  /** Handlers that the file declares and some worker serves. */
  readonly declared: readonly string[];
  readonly limits: DefinitionLimits;
  readonly problems: Problems;
}

/** Checks the names that a workflow declares. */
export function checkNames(input: WorkflowInput, problems: Problems): void {
  const check = (value: string, path: Path, pattern: RegExp, rule: string): void => {
    if (pattern.test(value)) return;
    const message = `\`${value}\` is not a valid name`;
    const isKey = path.at(-1) === value;
    problems.error({ code: 'bad_id', message, hint: rule, path, atKey: isKey });
  };
  const word = 'letters, digits and _, not starting with a digit';
  check(input.name, ['name'], WORKFLOW_NAME, 'letters, digits, `.`, `_` and `-`, at most 128');
  for (const name of Object.keys(input.inputs ?? {})) check(name, ['inputs', name], NAME, word);
  for (const name of Object.keys(input.outputs ?? {})) check(name, ['outputs', name], NAME, word);
  for (const key of ['secrets', 'env'] as const) {
    for (const [index, name] of (input[key] ?? []).entries()) check(name, [key, index], NAME, word);
  }
}

/** Checks how many tasks there are. */
export function checkTaskCount(count: number, limits: DefinitionLimits, problems: Problems): void {
  const path: Path = ['tasks'];
  if (count === 0) {
    const message = 'the workflow has no tasks';
    problems.error({ code: 'no_tasks', message, hint: 'add one under `tasks`', path });
  } else if (count > limits.tasksMax) {
    const message = `the workflow has ${count} tasks; the limit is ${limits.tasksMax}`;
    const hint = 'use `for_each` for many alike, or raise definition_limits.tasks_max in the config file';
    problems.error({ code: 'too_many_tasks', message, hint, path });
  }
}

/** Checks each task by itself. */
export function checkTasks(tasks: ReadonlyMap<string, MergedTask>, context: CheckContext): void {
  let bytes = 0;
  for (const [id, task] of tasks) {
    const at: Path = ['tasks', id];
    checkTaskId(id, at, context.problems);
    checkHandler(task, at, context);
    checkItemKeys(task, at, context.problems);
    bytes += checkConfigSize(task, at, context);
    if (bytes > context.limits.fileBytesMax * 4) {
      const message = `with \`defaults\` merged in, the tasks up to \`${id}\` have more than ${context.limits.fileBytesMax * 4} bytes of \`with\``;
      const hint = 'pass large data as an input or a file';
      context.problems.error({ code: 'config_too_large', message, hint, path: ['defaults'], atKey: true });
      return;
    }
  }
}

function checkConfigSize(task: MergedTask, at: Path, { limits, problems }: CheckContext): number {
  const bytes = Buffer.byteLength(JSON.stringify(task.with ?? {}));
  if (bytes <= limits.taskConfigBytesMax) return bytes;
  const message = `\`with\` of task \`${at[1]}\` has ${bytes} bytes; the limit is ${limits.taskConfigBytesMax}`;
  const hint = 'pass large data as an input or a file';
  problems.error({ code: 'config_too_large', message, hint, path: [...at, 'with'], atKey: true });
  return bytes;
}

function checkItemKeys(task: MergedTask, at: Path, problems: Problems): void {
  if (task.for_each !== undefined) return;
  for (const key of ['on_item_failure', 'max_parallel'] as const) {
    if (task[key] === undefined) continue;
    const message = `\`${key}\` has no effect on a task without \`for_each\``;
    const hint = 'add `for_each`, or remove the key';
    problems.error({ code: 'not_applicable', message, hint, path: [...at, key], atKey: true });
  }
}

function checkTaskId(id: string, path: Path, problems: Problems): void {
  if (RESERVED.has(id)) {
    const message = `a task cannot be called \`${id}\`: templates use this name`;
    problems.error({ code: 'reserved_id', message, hint: 'choose another id', path, atKey: true });
  } else if (!ID.test(id)) {
    const hint = 'letters, digits, `_` and `-`, starting with a letter or `_`, at most 128';
    problems.error({ code: 'bad_id', message: `\`${id}\` is not a valid task id`, hint, path, atKey: true });
  }
}

function checkHandler(task: MergedTask, at: Path, { handlers, declared, problems }: CheckContext): void {
  if (task.uses === undefined) {
    const message = `task \`${at[1]}\` does not say which handler it uses`;
    const hint = `add \`uses:\` with one of ${[...handlers.keys()].join(', ')}`;
    problems.error({ code: 'missing_handler', message, hint, path: [...at, 'uses'], atKey: true });
    return;
  }
  const handler = handlers.get(task.uses);
  if (handler !== undefined) checkConfig(handler, task.with ?? {}, { at, problems });
  else if (!declared.includes(task.uses)) {
    const hint =
      didYouMean(task.uses, [...handlers.keys(), ...declared]) ??
      `declare it in \`handlers: [${task.uses}]\` if one of your workers serves it`;
    const message = `there is no handler \`${task.uses}\``;
    problems.error({ code: 'undeclared_handler', message, hint, path: [...at, 'uses'] });
  }
}

function checkConfig(
  handler: HandlerSpec,
  config: Readonly<Record<string, unknown>>,
  { at, problems }: { at: Path; problems: Problems },
): void {
  const path: Path = [...at, 'with'];
  const isMissing = (finding: Finding): boolean => finding.code === 'missing_key';
  for (const finding of checkShape(handler.config, config, { path, name: '`with`' }).findings ?? []) {
    // A templated text may render to what the schema wants, so only its rendered value can be judged.
    if (isTemplated(valueAt(config, finding.path.slice(path.length)))) continue;
    const { message: reason, ...rest } = finding;
    const message = `\`${handler.name}\`: ${reason}`;
    problems.error({
      ...rest,
      code: 'invalid_config',
      message,
      atKey: isMissing(finding) || rest.atKey === true,
    });
  }
  for (const doubt of handler.doubts?.(config) ?? []) {
    problems.warn({ ...doubt, code: 'unavailable', path: [...path, ...doubt.path] });
  }
}
