/** Puts the files that a workflow's tasks run into the workflow, so that a version keeps its scripts for ever (SPEC S1.1). */
import type { HandlerCatalog } from '../definition/handler-spec.ts';
import { isTemplated } from '../definition/template-sites.ts';
import type { Workflow } from '../definition/workflow.ts';

/** The workflow with a bundle for every file that a handler declares; a file named by a template is bundled when it runs. */
export async function bundleScripts(
  workflow: Workflow,
  handlers: HandlerCatalog,
  workdir: string | null,
): Promise<Workflow> {
  const modules = new Set<string>();
  for (const task of Object.values(workflow.tasks)) {
    const key = handlers.get(task.uses)?.bundledKey;
    const module = key === undefined ? undefined : task.with[key];
    if (typeof module === 'string' && !isTemplated(module)) modules.add(module);
  }
  if (modules.size === 0 || workdir === null) return workflow;
  const { bundleScript, resolveScript } = await import('../handlers/script/bundle.ts');
  const bundles: Record<string, string> = {};
  for (const module of modules) bundles[module] = (await bundleScript(resolveScript(workdir, module))).code;
  return { ...workflow, bundles };
}
