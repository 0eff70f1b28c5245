/** The plan of a run that is not started. */
import type { DryRun } from '../../app/dry-run.ts';
import type { Workflow } from '../../definition/workflow.ts';
import type { Colors } from '../io.ts';
import { renderGraph } from './graph.ts';
import { indent, oneLine } from './text.ts';
import { renderValues, valueText } from './value.ts';

/** Phases, inputs, and what the first tasks would be given. */
export function renderDryRun(plan: DryRun, workflow: Workflow, colors: Colors): string {
  const first = plan.first.map(({ task_id, uses, input, problem, items }) => {
    const head = `  ${colors.bold(oneLine(task_id))}${placeOf(items)} ${colors.dim(uses)}`;
    if (items?.total === 0) return `${head}\n    an empty list: nothing to do\n`;
    return problem === null
      ? `${head}\n${indent(valueText(input), 4)}\n`
      : `${head}\n    ${colors.red(oneLine(problem))}\n`;
  });
  const inputs =
    Object.keys(plan.inputs).length === 0 ? '' : `\nInputs:\n${renderValues(plan.inputs, colors)}`;
  return `${renderGraph(workflow, 'ascii')}${inputs}\nFirst tasks and what they would get:\n${first.join('')}\nNothing was stored or run.\n`;
}

/** Which item of how many. */
function placeOf(items: DryRun['first'][number]['items']): string {
  return items === null || items.total === 0
    ? ''
    : `[${items.index}] of ${items.total.toLocaleString('en')} items`;
}
