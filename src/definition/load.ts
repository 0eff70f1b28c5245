/**
 * The door of this room: text or a value in, a checked canonical workflow out, or every problem it has (SPEC S1.4).
 * A check never stops at the first problem: values of the wrong shape are taken out and the rest is checked as well.
 */
import { RelayError } from '../base/errors.ts';
import { DEFINITION_LIMITS, type DefinitionLimits } from '../base/limits.ts';
import type { Graph } from '../domain/graph.ts';
import { checkGraph, resolveNeeds } from './check-graph.ts';
import { checkJsonSchemas } from './check-schemas.ts';
import { checkNames, checkTaskCount, checkTasks } from './check-tasks.ts';
import { checkTemplates } from './check-templates.ts';
import { parseSource } from './document.ts';
import type { HandlerCatalog } from './handler-spec.ts';
import { fromNodeList, isNodeList } from './node-list.ts';
import { toPlainValue } from './plain-value.ts';
import { type Finding, formatPath, type Path, type Problem, Problems, type Translate } from './problem.ts';
import { salvage } from './salvage.ts';
import { valueAt } from './schema-problems.ts';
import { canonicalWorkflow, MERGED_KEYS, mergeDefaults, type Workflow } from './workflow.ts';
import { nodeListSchema, type WorkflowInput, workflowSchema } from './workflow-schema.ts';

/** What a check of a definition found. `workflow` is null exactly when there are errors. */
export interface CheckedWorkflow {
  readonly workflow: Workflow | null;
  readonly graph: Graph | null;
  readonly errors: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** Problems beyond the listed ones. */
  readonly dropped: number;
}

/** What a definition is checked against. */
export interface LoadOptions {
  readonly handlers: HandlerCatalog;
  readonly limits?: DefinitionLimits;
}

/** Checks the text of a YAML or JSON file. */
export async function checkWorkflowText(text: string, options: LoadOptions): Promise<CheckedWorkflow> {
  const { value, findings, locate } = parseSource(text);
  const problems = new Problems(locate);
  for (const finding of findings) problems.error(finding);
  if (value === undefined) return result(problems, null, null);
  return checkValue(value, problems.translated(withoutEchoes(findings)), options);
}

/** Checks a value, such as `workflow({...})` or a parsed JSON body. Problems then have a path but no line. */
export async function checkWorkflowValue(value: unknown, options: LoadOptions): Promise<CheckedWorkflow> {
  const problems = new Problems(() => null);
  const plain = toPlainValue(value);
  for (const finding of plain.findings) problems.error(finding);
  return checkValue(plain.value, problems.translated(withoutEchoes(plain.findings)), options);
}

/** The canonical workflow, or INVALID_WORKFLOW with all problems in its details. */
export function requireWorkflow(checked: CheckedWorkflow): Workflow {
  if (checked.workflow !== null) return checked.workflow;
  const [first] = checked.errors;
  const count = checked.errors.length + checked.dropped;
  const more = count > 1 ? ` (and ${count - 1} more)` : '';
  const where = first?.path ? `${first.path}: ` : '';
  throw new RelayError('INVALID_WORKFLOW', `the workflow is not valid: ${where}${first?.message}${more}`, {
    details: { errors: checked.errors, warnings: checked.warnings },
  });
}

async function checkValue(
  value: unknown,
  problems: Problems,
  options: LoadOptions,
): Promise<CheckedWorkflow> {
  if (isNodeList(value)) {
    const list = salvage(nodeListSchema, value, { problems, standIn: nodeListStandIn });
    if (list === null) return result(problems, null, null);
    const { workflow, findings, translate } = fromNodeList(list.value, options.handlers);
    for (const finding of findings) list.problems.error(finding);
    return checkInput(workflow, list.problems.translated(translate), options);
  }
  const shown = problems.translated(toDefaults(value));
  const input = salvage(workflowSchema, value, { problems: shown, standIn: workflowStandIn });
  if (input === null) return result(problems, null, null);
  return checkInput(input.value, input.problems, options);
}

async function checkInput(
  input: WorkflowInput,
  problems: Problems,
  options: LoadOptions,
): Promise<CheckedWorkflow> {
  const { handlers, limits = DEFINITION_LIMITS } = options;
  const tasks = new Map(
    Object.entries(input.tasks).map(([id, task]) => [id, mergeDefaults(task, input.defaults)]),
  );
  checkNames(input, problems);
  checkTaskCount(tasks.size, limits, problems);
  if (tasks.size > limits.tasksMax) return result(problems, null, null);
  checkTasks(tasks, { handlers, declared: input.handlers ?? [], limits, problems });
  const inferred = checkTemplates(input, tasks, handlers, problems);
  const needs = resolveNeeds(tasks, inferred, problems);
  const graph = checkGraph(needs, inferred, problems);
  await checkJsonSchemas(input, tasks, problems);
  const workflow = problems.hasErrors ? null : canonicalWorkflow(input, tasks, needs);
  return result(problems, workflow, graph);
}

/** A value that could not be read has a stand-in, and what later checks say of that is not the user's mistake. */
function withoutEchoes(findings: readonly Finding[]): Translate {
  const unread = findings.filter(({ code, path }) => !code.startsWith('duplicate') && path.length > 0);
  if (unread.length === 0) return (finding) => finding;
  const paths = new Set(unread.map(({ path }) => formatPath(path)));
  return (finding) => {
    const isEcho = finding.path.some((_, index) => paths.has(formatPath(finding.path.slice(0, index + 1))));
    return isEcho ? null : finding;
  };
}

/** A task that is no mapping still exists for those that need it. */
function workflowStandIn(path: Path): unknown {
  if (path.length === 2 && path[0] === 'tasks') return {};
  return path.length === 1 && path[0] === 'name' ? 'unnamed' : undefined;
}

function nodeListStandIn(path: Path): unknown {
  return path.length === 1 && path[0] === 'name' ? 'unnamed' : undefined;
}

/** A problem with a value that a task has from `defaults` is to be mended there. */
function toDefaults(file: unknown): Translate {
  return (finding) => {
    const [top, id = '', ...rest] = finding.path;
    if (top !== 'tasks' || rest.length === 0) return finding;
    const setting = rest.slice(0, MERGED_KEYS.some((key) => key === rest[0]) ? 2 : 1);
    const isOwn = valueAt(file, ['tasks', id, ...setting]) !== undefined;
    if (isOwn || valueAt(file, ['defaults', ...setting]) === undefined) return finding;
    return { ...finding, path: ['defaults', ...rest] };
  };
}

function result(problems: Problems, workflow: Workflow | null, graph: Graph | null): CheckedWorkflow {
  const { errors, warnings, dropped } = problems;
  return { workflow, graph: workflow === null ? null : graph, errors, warnings, dropped };
}
