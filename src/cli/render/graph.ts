/** A workflow as a picture: text by phases, Mermaid, Graphviz, or plain data. */

import type { Task, Workflow } from '../../definition/workflow.ts';
import { buildGraph, phases } from '../../domain/graph.ts';

/** Formats that are text. */
export const GRAPH_FORMATS = ['ascii', 'mermaid', 'dot'] as const;
/** One of them. */
export type GraphFormat = (typeof GRAPH_FORMATS)[number];

/** Nodes, edges and phases. */
export function graphData(workflow: Workflow): {
  name: string;
  nodes: readonly { id: string; uses: string; gate: boolean; for_each: boolean; phase: number }[];
  edges: readonly { from: string; to: string }[];
  phases: readonly (readonly string[])[];
} {
  const entries = Object.entries(workflow.tasks);
  const levels = phasesOf(workflow);
  const phaseOf = new Map(levels.flatMap((ids, phase) => ids.map((id) => [id, phase] as const)));
  return {
    name: workflow.name,
    nodes: entries.map(([id, task]) => ({
      id,
      uses: task.uses,
      gate: hasPerson(task),
      for_each: task.for_each !== undefined,
      phase: phaseOf.get(id) ?? 0,
    })),
    edges: entries.flatMap(([id, task]) => task.needs.map((from) => ({ from, to: id }))),
    phases: levels,
  };
}

/** The picture in one of the text formats. */
export function renderGraph(workflow: Workflow, format: GraphFormat): string {
  return RENDERERS[format](workflow);
}

const RENDERERS: Readonly<Record<GraphFormat, (workflow: Workflow) => string>> = {
  ascii: renderAscii,
  mermaid: renderMermaid,
  dot: renderDot,
};

/** One block per phase; every task with what it waits for. It stays readable where drawn lines would tangle. */
function renderAscii(workflow: Workflow): string {
  const levels = phasesOf(workflow);
  const width = Math.max(...Object.keys(workflow.tasks).map((id) => id.length));
  const lines = [`${workflow.name}`, ''];
  for (const [index, ids] of levels.entries()) {
    for (const [row, id] of ids.entries()) {
      const task = workflow.tasks[id];
      if (task === undefined) continue;
      const head = row === 0 ? `${index + 1}`.padStart(3) : '   ';
      const arrow = task.needs.length > 0 ? ` ◀─ ${task.needs.join(', ')}` : '';
      lines.push(`${head} ${boxSide(row, ids.length)} ${id.padEnd(width)}  ${label(task)}${arrow}`);
    }
    if (index < levels.length - 1) lines.push('    │');
  }
  return `${lines.join('\n')}\n`;
}

function boxSide(row: number, count: number): string {
  if (count === 1) return '●';
  if (row === 0) return '┬';
  return row === count - 1 ? '┴' : '├';
}

function renderMermaid(workflow: Workflow): string {
  const keys = keysOf(workflow);
  const lines = ['flowchart TD'];
  for (const [id, task] of Object.entries(workflow.tasks)) {
    const text = `"${escapeMermaid(id)}<br/><small>${escapeMermaid(label(task))}</small>"`;
    const [open, close] = hasPerson(task)
      ? ['{{', '}}']
      : task.for_each === undefined
        ? ['[', ']']
        : ['[[', ']]'];
    lines.push(`  ${keys.get(id)}${open}${text}${close}`);
  }
  for (const { from, to } of graphData(workflow).edges) lines.push(`  ${keys.get(from)} --> ${keys.get(to)}`);
  return `${lines.join('\n')}\n`;
}

function renderDot(workflow: Workflow): string {
  const quote = (text: string): string => JSON.stringify(text);
  const lines = [`digraph ${quote(workflow.name)} {`, '  node [shape=box, fontname="sans-serif"];'];
  for (const [id, task] of Object.entries(workflow.tasks)) {
    const shape = hasPerson(task) ? ', shape=hexagon' : task.for_each === undefined ? '' : ', peripheries=2';
    lines.push(`  ${quote(id)} [label=${quote(`${id}\n${label(task)}`)}${shape}];`);
  }
  for (const { from, to } of graphData(workflow).edges) lines.push(`  ${quote(from)} -> ${quote(to)};`);
  return `${lines.join('\n')}\n}\n`;
}

/** The handler and what is special about the task. */
function label(task: Task): string {
  const marks = [
    task.gate === undefined ? '' : ' · gate',
    task.for_each === undefined ? '' : ' · for each',
    task.if === undefined ? '' : ' · if',
    task.when === 'done' ? ' · finally' : '',
  ];
  return task.uses + marks.join('');
}

function hasPerson(task: Task): boolean {
  return task.gate !== undefined || task.uses === 'approval';
}

function phasesOf(workflow: Workflow): readonly (readonly string[])[] {
  return phases(buildGraph(Object.entries(workflow.tasks).map(([id, task]) => ({ id, needs: task.needs }))));
}

/** Short node names, because ids may hold characters that Mermaid reads as syntax. */
function keysOf(workflow: Workflow): ReadonlyMap<string, string> {
  return new Map(Object.keys(workflow.tasks).map((id, index) => [id, `t${index}`]));
}

function escapeMermaid(text: string): string {
  return text.replaceAll('"', '#quot;').replaceAll('<', '#lt;').replaceAll('>', '#gt;');
}
