/** The dependencies of a workflow as a graph: unknown names, self-dependencies, cycles, disconnected parts. */
import { didYouMean } from '../base/suggest.ts';
import { findCycles } from '../domain/find-cycles.ts';
import { buildGraph, components, type Graph } from '../domain/graph.ts';
import type { InferredNeeds } from './check-templates.ts';
import type { Finding, Path, Problems } from './problem.ts';
import type { MergedTask } from './workflow.ts';

/** The final dependencies: what `needs` says, then what templates imply. */
export type FinalNeeds = ReadonlyMap<string, readonly string[]>;

/** Joins written and inferred dependencies; names that do not exist are reported and left out. */
export function resolveNeeds(
  tasks: ReadonlyMap<string, MergedTask>,
  inferred: InferredNeeds,
  problems: Problems,
): FinalNeeds {
  const resolved = new Map<string, readonly string[]>();
  for (const [id, task] of tasks) {
    const needs = new Set<string>();
    for (const [index, need] of task.needs.entries()) {
      const path: Path = ['tasks', id, 'needs', index];
      if (need === id) {
        const message = `task \`${id}\` needs itself`;
        problems.error({ code: 'self_dependency', message, hint: 'remove it from `needs`', path });
      } else if (!tasks.has(need)) {
        const message = `\`${id}\` needs \`${need}\`, which does not exist`;
        problems.error({ code: 'unknown_dependency', message, hint: didYouMean(need, tasks.keys()), path });
      } else needs.add(need);
    }
    for (const need of inferred.get(id)?.keys() ?? []) needs.add(need);
    resolved.set(id, [...needs]);
  }
  return resolved;
}

/** Reports cycles and disconnected parts, and returns the graph. */
export function checkGraph(needs: FinalNeeds, inferred: InferredNeeds, problems: Problems): Graph {
  const graph = buildGraph([...needs].map(([id, list]) => ({ id, needs: list })));
  const cycles = findCycles(graph);
  for (const cycle of cycles) {
    const { at, note } = placeOfCycle(cycle, inferred);
    const message = `tasks need each other in a circle: ${cycle.join(' → ')}${note}`;
    problems.error({ code: 'cycle', message, hint: 'remove one of these dependencies', ...at });
  }
  const parts = cycles.length === 0 ? components(graph) : [];
  if (parts.length > 1 && parts.some((part) => part.length > 1)) {
    const shown = parts
      .slice(0, 3)
      .map((part) => `\`${part[0]}\`${part.length > 1 ? ` (+${part.length - 1})` : ''}`);
    const more = parts.length > 3 ? ` and ${parts.length - 3} more` : '';
    const message = `the tasks form ${parts.length} separate parts: ${shown.join(', ')}${more}`;
    const hint = 'if that is not meant, a `needs` is missing';
    problems.warn({ code: 'disconnected', message, hint, path: ['tasks', parts[1]?.[0] ?? ''], atKey: true });
  }
  return graph;
}

/** The place to mend: a reference in a template is easier to overlook than a written `needs`, so it comes first. */
function placeOfCycle(
  cycle: readonly string[],
  inferred: InferredNeeds,
): { at: Pick<Finding, 'path' | 'offset'>; note: string } {
  for (const [index, need] of cycle.entries()) {
    const id = cycle[index + 1] ?? '';
    const at = inferred.get(id)?.get(need);
    if (at !== undefined) {
      return { at, note: `; \`${id}\` needs \`${need}\` because a template refers to it` };
    }
  }
  return { at: { path: ['tasks', cycle[0] ?? '', 'needs'] }, note: '' };
}
