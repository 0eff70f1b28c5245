/** The files that a workflow's tasks run, as code that can be kept with the workflow's version (SPEC S1.1). */
import { RelayError } from '../base/errors.ts';
import type { HandlerCatalog } from '../definition/handler-spec.ts';
import { isTemplated } from '../definition/template-sites.ts';
import type { Workflow } from '../definition/workflow.ts';

/** A bundle for every file that tasks name, by its name; a file named by a template is bundled when it runs. */
export async function bundleScripts(
  workflow: Workflow,
  handlers: HandlerCatalog,
  workdir: string,
): Promise<Readonly<Record<string, string>> | undefined> {
  const modules = modulesOf(workflow, handlers);
  if (modules.size === 0) return undefined;
  const { bundleScript, resolveScript } = await import('../handlers/script/bundle.ts');
  const bundles: Record<string, string> = {};
  for (const [module, task] of modules) {
    try {
      bundles[module] = (await bundleScript(resolveScript(workdir, module))).code;
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new RelayError('INVALID_WORKFLOW', `task \`${task}\`: ${reason}`, {
        hint: '`module` names a JavaScript or TypeScript file beside the workflow',
        cause,
      });
    }
  }
  return bundles;
}

/** The workflow with the code of its scripts; code that no task names is left out. */
export function withBundles(
  workflow: Workflow,
  handlers: HandlerCatalog,
  bundles: Readonly<Record<string, string>> = {},
): Workflow {
  const named = [...modulesOf(workflow, handlers).keys()].filter((module) => Object.hasOwn(bundles, module));
  if (named.length === 0) return workflow;
  return { ...workflow, bundles: Object.fromEntries(named.map((module) => [module, bundles[module] ?? ''])) };
}

/** Modules that tasks name, each with the first task that does. */
function modulesOf(workflow: Workflow, handlers: HandlerCatalog): ReadonlyMap<string, string> {
  const modules = new Map<string, string>();
  for (const [id, task] of Object.entries(workflow.tasks)) {
    const key = handlers.get(task.uses)?.bundledKey;
    const module = key === undefined ? undefined : task.with[key];
    if (typeof module === 'string' && !isTemplated(module) && !modules.has(module)) modules.set(module, id);
  }
  return modules;
}
