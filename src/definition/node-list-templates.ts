/**
 * Templates of the node-list dialect in the words of `tasks` (SPEC S1.3): `{{ id.output }}` is the whole output,
 * `{{ id.result }}` its field `result` or else the whole, `{{ id.field }}` a field of it.
 */
import { compileTemplate } from '../template/compile.ts';
import { type Reference, TemplateError } from '../template/template.ts';
import { referenceTo } from './check-templates.ts';

/** A stretch of the original text, and how long its replacement is. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly length: number;
}

/** Rewrites one template. */
export type Rewriter = (text: string) => { text: string; edits: readonly Edit[] };

/** A rewriter for templates that may name the given nodes. */
export function rewriter(ids: readonly string[]): Rewriter {
  const idOf = new Map(ids.map((id) => [asName(id), id]));
  // Plain ids last, so that where both `a` and `a-b` exist, `a` keeps its own name.
  for (const id of ids) if (!id.includes('-')) idOf.set(id, id);
  const hyphenated = new Set(ids.filter((id) => id.includes('-') && idOf.get(asName(id)) === id));
  return (text) => {
    const replacements = findReferences(withNames(text, hyphenated)).flatMap((reference) => {
      const id = idOf.get(reference.root);
      return id === undefined ? [] : [replacementOf(reference, id)];
    });
    return { text: apply(text, replacements), edits: replacements.map(toEdit) };
  };
}

/** The place in the original text of an offset into the rewritten one. */
export function offsetBefore(offset: number, edits: readonly Edit[]): number {
  let shift = 0;
  for (const { start, end, length } of edits) {
    const from = start + shift;
    if (offset < from) break;
    if (offset < from + length) return start;
    shift += length - (end - start);
  }
  return offset - shift;
}

interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

function replacementOf({ path, start, ends }: Reference, id: string): Replacement {
  const output = `${referenceTo(id)}.output`;
  const isNamed = path[0] === 'output' || path[0] === 'result';
  const end = ends[isNamed ? 1 : 0] ?? start;
  return { start, end, text: path[0] === 'result' ? `(${output} | result)` : output };
}

function apply(text: string, replacements: readonly Replacement[]): string {
  let result = '';
  let at = 0;
  for (const { start, end, text: replacement } of replacements) {
    result += text.slice(at, start) + replacement;
    at = end;
  }
  return result + text.slice(at);
}

function toEdit({ start, end, text }: Replacement): Edit {
  return { start, end, length: text.length };
}

/** Text that does not parse is left as it is, to be reported by the check of templates. */
function findReferences(text: string): readonly Reference[] {
  try {
    return compileTemplate(text).references.toSorted((a, b) => a.start - b.start);
  } catch (error) {
    if (error instanceof TemplateError) return [];
    throw error;
  }
}

/**
 * Gives hyphenated ids the form of names, so that `{{ fetch-data.output }}` is read as one reference and not as a
 * subtraction. The length stays, so offsets fit the original; only the places of references are taken from this text.
 */
function withNames(text: string, hyphenated: ReadonlySet<string>): string {
  if (hyphenated.size === 0) return text;
  return text.replace(/(?<![\w.-])[A-Za-z_][\w-]*/g, (word) => {
    const id = word.replace(/-+$/, '');
    return hyphenated.has(id) ? asName(id) + word.slice(id.length) : word;
  });
}

function asName(id: string): string {
  return id.replaceAll('-', '_');
}
