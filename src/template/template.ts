/**
 * What the rest of Relay sees of the template language (SPEC S2): compile once, ask for references, render many times.
 * Pure: no clock, no I/O, no access to anything but the scope that is passed in.
 */
import type { Budget } from './budget.ts';

/** The names a template may use. Values are JSON data; nothing else is reachable. */
export type Scope = Readonly<Record<string, unknown>>;

/** A static use of a global name: `tasks.research.output[0]` is root `tasks`, path `['research', 'output', 0]`. */
export interface Reference {
  readonly root: string;
  /** Literal attributes and indexes after the root, up to the first one that is computed. */
  readonly path: readonly (string | number)[];
  /** Offsets into the source: of the root name, and of the end of each path element (ends[0] ends the root itself). */
  readonly start: number;
  readonly ends: readonly number[];
  /** True when the use tolerates absence: the subject of `is defined`, `is undefined` or `default`. */
  readonly optional: boolean;
}

/** A compiled template. Immutable, and safe to share between runs. */
export interface Template {
  readonly source: string;
  /** Uses of names that the template itself does not bind (loop variables and `set` are left out), in source order. */
  readonly references: readonly Reference[];
  /** True for a source without any `{{`, `{%` or `{#`: rendering gives the source itself. */
  readonly isLiteral: boolean;
  /** A single `{{ expression }}` keeps its type; anything else gives text. Throws TemplateError. */
  render(scope: Scope, budget?: Partial<Budget>): unknown;
}

/** Where and why a template is wrong, when compiled or when rendered. Positions are 1-based; `offset` is 0-based. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
  readonly kind: 'syntax' | 'undefined' | 'type' | 'budget';
  readonly offset: number;
  readonly line: number;
  readonly column: number;
  readonly hint: string | undefined;

  constructor(
    kind: TemplateError['kind'],
    message: string,
    at: { offset: number; line: number; column: number },
    hint?: string,
  ) {
    super(message);
    this.kind = kind;
    this.offset = at.offset;
    this.line = at.line;
    this.column = at.column;
    this.hint = hint;
  }
}
