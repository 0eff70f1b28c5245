/** Compiles every template of a workflow and checks each name it uses; references to tasks become dependencies (SPEC S1.4, S1.5). */
import { didYouMean, nearest } from '../base/suggest.ts';
import { compileExpression, compileTemplate } from '../template/compile.ts';
import { type Reference, type Template, TemplateError } from '../template/template.ts';
import type { HandlerCatalog } from './handler-spec.ts';
import type { Finding, Problems } from './problem.ts';
import { outputSites, type TemplateSite, taskSites } from './template-sites.ts';
import type { MergedTask } from './workflow.ts';
import type { WorkflowInput } from './workflow-schema.ts';

/** Names that templates know. They are reserved as task ids. */
export const TEMPLATE_ROOTS = ['tasks', 'inputs', 'run', 'task', 'item', 'index', 'secrets', 'env'] as const;
const TASK_FIELDS = ['output', 'status', 'error', 'errors'];
const RUN_FIELDS = ['id', 'workflow_name', 'workflow_version', 'labels', 'created_at'];
const OWN_TASK_FIELDS = ['id', 'task_run_id', 'attempt'];

type At = Pick<Finding, 'path' | 'offset'>;

/** Task id → the tasks its templates refer to, each with the place of the first reference. */
export type InferredNeeds = ReadonlyMap<string, ReadonlyMap<string, At>>;

interface Names {
  readonly tasks: ReadonlyMap<string, MergedTask>;
  readonly inputs: readonly string[];
  readonly secrets: readonly string[];
  readonly env: readonly string[];
}

/** Reports all template problems and returns the dependencies that templates imply. */
export function checkTemplates(
  input: WorkflowInput,
  tasks: ReadonlyMap<string, MergedTask>,
  handlers: HandlerCatalog,
  problems: Problems,
): InferredNeeds {
  const names: Names = {
    tasks,
    inputs: Object.keys(input.inputs ?? {}),
    secrets: input.secrets ?? [],
    env: input.env ?? [],
  };
  const inferred = new Map<string, ReadonlyMap<string, At>>();
  for (const [id, task] of tasks) {
    const needs = new Map<string, At>();
    const shellKeys = handlers.get(task.uses ?? '')?.shellKeys ?? [];
    for (const site of taskSites(id, task)) {
      const template = compileSite(site, problems);
      if (template === null) continue;
      for (const { path, start } of checkReferences(template, { site, names, owner: id }, problems)) {
        const need = String(path[0]);
        if (!needs.has(need)) needs.set(need, { path: site.path, offset: start });
      }
      // A list of arguments is not read by a shell; only script text, which is the value of the key itself, is.
      const isScript = site.path.length === 4 && shellKeys.includes(String(site.path[3]));
      if (isScript) warnUnquoted(site, template, problems);
    }
    inferred.set(id, needs);
  }
  for (const site of outputSites(input.outputs)) {
    const template = compileSite(site, problems);
    if (template !== null) checkReferences(template, { site, names, owner: null }, problems);
  }
  return inferred;
}

/** Reports what is wrong with the names of a template and returns its references to tasks. */
function checkReferences(template: Template, place: Place, problems: Problems): readonly Reference[] {
  const needs: Reference[] = [];
  let readTo = 0;
  for (const reference of template.references) {
    // The rest of a hyphenated id that was read as a subtraction has been reported with its head.
    if (reference.start < readTo) continue;
    const finding = findReferenceProblem({ reference, ...place });
    if (finding === null && reference.root === 'tasks') needs.push(reference);
    if (finding !== null) problems.error(finding);
    readTo = endOfHyphenatedId({ reference, ...place }) ?? readTo;
  }
  return needs;
}

function compileSite(site: TemplateSite, problems: Problems): Template | null {
  const isExpression = site.kind === 'if' || (site.kind === 'for_each' && site.path.length === 3);
  try {
    return isExpression ? compileExpression(site.text) : compileTemplate(site.text);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    const { message, hint, offset } = error;
    problems.error({ code: 'template_syntax', message, hint, path: site.path, offset });
    return null;
  }
}

interface Place {
  readonly site: TemplateSite;
  readonly names: Names;
  /** The task the template belongs to; null in `outputs`. */
  readonly owner: string | null;
}

interface Use extends Place {
  readonly reference: Reference;
}

function findReferenceProblem(use: Use): Finding | null {
  const { reference, site } = use;
  const at = { path: site.path, offset: reference.start };
  switch (reference.root) {
    case 'tasks':
      return findTaskProblem(use, at);
    case 'inputs':
      return findDeclared({ use, at, code: 'undeclared_input', known: use.names.inputs });
    case 'secrets':
      return site.kind === 'with'
        ? findDeclared({ use, at, code: 'undeclared_secret', known: use.names.secrets })
        : misplaced(
            at,
            '`secrets` may only be used in `with`, where it is masked in everything that is stored',
          );
    case 'env':
      return findDeclared({ use, at, code: 'undeclared_env', known: use.names.env });
    case 'run':
      return findField({ use, at, known: RUN_FIELDS });
    case 'task':
      if (use.owner === null) return misplaced(at, '`task` has no meaning in `outputs`');
      return findField({ use, at, known: OWN_TASK_FIELDS });
    case 'item':
    case 'index':
      return findItemProblem(use, at);
    default:
      return findUnknownRoot(use, at);
  }
}

function findTaskProblem(use: Use, at: At): Finding | null {
  const { reference, names, owner, site } = use;
  const [id, field] = reference.path;
  if (typeof id !== 'string') {
    const message =
      '`tasks` must be followed by the id of a task, so that the dependency is known before the run';
    return { code: 'unknown_reference', message, hint: 'write tasks.ID.output', ...at };
  }
  if (!names.tasks.has(id)) {
    const hyphenated = hyphenatedId(use);
    const hint =
      hyphenated === null
        ? didYouMean(id, names.tasks.keys())
        : `\`-\` means minus in a template; write tasks['${hyphenated}']`;
    return { code: 'unknown_reference', message: `there is no task \`${id}\``, hint, ...at };
  }
  if (id === owner) {
    const message = `\`${site.path.slice(2).join('.')}\` of task \`${id}\` refers to the task itself`;
    return { code: 'self_dependency', message, hint: 'a task cannot use its own output', ...at };
  }
  if (field !== undefined && !TASK_FIELDS.includes(String(field))) {
    const message = `a task has no \`${field}\`; it has ${TASK_FIELDS.join(', ')}`;
    const hint =
      didYouMean(String(field), TASK_FIELDS) ?? `fields of the output are tasks.${id}.output.${field}`;
    return { code: 'unknown_reference', message, hint, ...at };
  }
  return null;
}

/** The task that `tasks.fetch-data` means, where the language reads `tasks.fetch` minus `data`. */
function hyphenatedId({ reference, site, names }: Use): string | null {
  const [id] = reference.path;
  if (reference.root !== 'tasks' || typeof id !== 'string' || names.tasks.has(id)) return null;
  const rest = site.text.slice((reference.ends[1] ?? 0) - id.length);
  const written = /^[\w-]+/.exec(rest)?.[0] ?? '';
  return written.includes('-') && names.tasks.has(written) ? written : null;
}

function endOfHyphenatedId(use: Use): number | null {
  const { reference } = use;
  const id = hyphenatedId(use);
  return id === null ? null : (reference.ends[1] ?? 0) - String(reference.path[0]).length + id.length;
}

function findDeclared(context: {
  use: Use;
  at: At;
  code: 'undeclared_input' | 'undeclared_secret' | 'undeclared_env';
  known: readonly string[];
}): Finding | null {
  const { use, at, code, known } = context;
  const { root, path } = use.reference;
  const name = path[0];
  if (typeof name !== 'string') {
    if (root === 'inputs') return null;
    const message = `\`${root}\` must be followed by a name that the file declares`;
    return { code: 'unknown_reference', message, hint: `write ${root}.NAME`, ...at };
  }
  if (known.includes(name)) return null;
  const declare = root === 'inputs' ? `declare it under \`inputs\`` : `add it to the list \`${root}\``;
  const message = `\`${root}.${name}\` is not declared`;
  return { code, message, hint: didYouMean(name, known) ?? declare, ...at };
}

function findField({ use, at, known }: { use: Use; at: At; known: readonly string[] }): Finding | null {
  const field = use.reference.path[0];
  if (field === undefined || known.includes(String(field))) return null;
  const { root } = use.reference;
  const message = `\`${root}\` has no \`${field}\`; it has ${known.join(', ')}`;
  const isOtherTask = root === 'task' && use.names.tasks.has(String(field));
  const hint = isOtherTask
    ? `did you mean \`${referenceTo(String(field))}\`?`
    : didYouMean(String(field), known);
  return { code: 'unknown_reference', message, hint, ...at };
}

function findItemProblem({ reference, owner, site, names }: Use, at: At): Finding | null {
  const isMapped = owner !== null && names.tasks.get(owner)?.for_each !== undefined;
  if (isMapped && site.kind === 'with') return null;
  const reason = isMapped
    ? `\`${site.kind}\` is decided once, before there are items`
    : 'the task has no `for_each`';
  return misplaced(at, `\`${reference.root}\` is not known here: ${reason}`);
}

function findUnknownRoot({ reference, names }: Use, at: At): Finding {
  const { root } = reference;
  const task = names.tasks.has(root) ? root : nearest(root, names.tasks.keys());
  const known = didYouMean(root, TEMPLATE_ROOTS);
  const hint = names.inputs.includes(root)
    ? `inputs are written inputs.${root}`
    : task !== null && (task === root || known === undefined)
      ? `outputs of tasks are written ${referenceTo(task)}.output`
      : (known ?? `known names: ${TEMPLATE_ROOTS.join(', ')}`);
  return { code: 'unknown_reference', message: `\`${root}\` is not defined`, hint, ...at };
}

/** A task as templates name it. */
export function referenceTo(id: string): string {
  return id.includes('-') ? `tasks['${id}']` : `tasks.${id}`;
}

function misplaced(at: At, message: string): Finding {
  return { code: 'misplaced_reference', message, ...at };
}

/** Data printed into a script without `| sh` is how a model's output becomes a command. */
function warnUnquoted(site: TemplateSite, template: Template, problems: Problems): void {
  const data = template.references.filter(({ root }) => DATA_ROOTS.has(root));
  if (data.length === 0) return;
  for (const { 0: printed, index, 1: expression = '' } of site.text.matchAll(PRINTED)) {
    if (/\|\s*sh\s*$/.test(expression)) continue;
    const end = index + printed.length;
    const isInside = ({ start }: Reference): boolean => start >= index && start < end;
    const first = data.find(isInside);
    // A loop variable is data too; `{{ run.id }}` and the like are not.
    const isOther = first === undefined && template.references.some(isInside);
    if (isOther || /^\s*(["'\d]|$)/.test(expression)) continue;
    const name = first === undefined ? expression.trim() : [first.root, ...first.path].join('.');
    problems.warn({
      code: 'unquoted_shell',
      message: `\`${name}\` is put into script text unquoted`,
      hint: 'add `| sh` at the end of the expression, or write `run` as a list of arguments',
      path: site.path,
      offset: first?.start ?? index,
    });
  }
}

const DATA_ROOTS = new Set(['tasks', 'inputs', 'item']);
const PRINTED = /\{\{[-+]?((?:[^}]|\}(?!\}))*?)[-+]?\}\}/g;
