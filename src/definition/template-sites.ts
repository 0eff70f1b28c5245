/** Where templates stand in a workflow: every text of a task or of `outputs` that the engine will render. */
import type { Path } from './problem.ts';
import type { MergedTask } from './workflow.ts';

/** The part of a definition a template stands in; it decides which names are known there. */
type SiteKind = 'with' | 'if' | 'gate' | 'for_each' | 'outputs';

/** One text to compile. `if` and `for_each` hold bare expressions, the others text with `{{ }}`. */
export interface TemplateSite {
  readonly kind: SiteKind;
  readonly path: Path;
  readonly text: string;
}

/** All template texts of a task. */
export function taskSites(id: string, task: MergedTask): readonly TemplateSite[] {
  const at = (key: SiteKind): Path => ['tasks', id, key];
  const sites: TemplateSite[] = [];
  if (typeof task.if === 'string') sites.push({ kind: 'if', path: at('if'), text: task.if });
  collectTexts(task.gate?.message, 'gate', [...at('gate'), 'message'], sites);
  if (typeof task.for_each === 'string')
    sites.push({ kind: 'for_each', path: at('for_each'), text: task.for_each });
  else collectTexts(task.for_each, 'for_each', at('for_each'), sites);
  collectTexts(task.with, 'with', at('with'), sites);
  return sites;
}

/** All template texts of the workflow's outputs. */
export function outputSites(outputs: unknown): readonly TemplateSite[] {
  const sites: TemplateSite[] = [];
  collectTexts(outputs, 'outputs', ['outputs'], sites);
  return sites;
}

/** True for text that has template syntax in it. */
export function isTemplated(value: unknown): value is string {
  return typeof value === 'string' && /\{[{%#]/.test(value);
}

function collectTexts(value: unknown, kind: SiteKind, path: Path, into: TemplateSite[]): void {
  if (isTemplated(value)) into.push({ kind, path, text: value });
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) collectTexts(item, kind, [...path, index], into);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) collectTexts(item, kind, [...path, key], into);
  }
}
