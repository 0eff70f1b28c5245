/** A JSON value whose texts are templates: compiled once, rendered for every attempt. Keys are never rendered. */
import { compileTemplate } from '../template/compile.ts';
import type { Reference, Scope } from '../template/template.ts';

/** A value that can be rendered. */
export interface CompiledValue {
  readonly isLiteral: boolean;
  readonly references: readonly Reference[];
  /** Gives the value with every template rendered; literals come back as they are, not copied. */
  render(scope: Scope): unknown;
}

/** Compiles every text in a value. */
export function compileValue(value: unknown): CompiledValue {
  if (typeof value === 'string') return compileText(value);
  if (Array.isArray(value)) {
    const items = value.map(compileValue);
    if (items.every((item) => item.isLiteral)) return literal(value);
    return {
      isLiteral: false,
      references: items.flatMap(({ references }) => references),
      render: (scope) => items.map((item) => item.render(scope)),
    };
  }
  if (typeof value !== 'object' || value === null) return literal(value);
  const entries = Object.entries(value).map(([key, item]) => [key, compileValue(item)] as const);
  if (entries.every(([, item]) => item.isLiteral)) return literal(value);
  return {
    isLiteral: false,
    references: entries.flatMap(([, { references }]) => references),
    render: (scope) => Object.fromEntries(entries.map(([key, item]) => [key, item.render(scope)])),
  };
}

/** Ids of the tasks that references read. */
export function referencedTasks(references: readonly Reference[]): string[] {
  const ids = references.filter(({ root }) => root === 'tasks').map(({ path }) => String(path[0]));
  return [...new Set(ids)];
}

function compileText(text: string): CompiledValue {
  const template = compileTemplate(text);
  if (template.isLiteral) return literal(text);
  return { isLiteral: false, references: template.references, render: (scope) => template.render(scope) };
}

function literal(value: unknown): CompiledValue {
  return { isLiteral: true, references: [], render: () => value };
}
