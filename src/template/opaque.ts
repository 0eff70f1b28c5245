/**
 * Values that exist only while rendering: what is undefined, namespaces, and the `loop` of a `for`.
 * They can be asked for attributes and never be part of a list, a map, a text or a result.
 */
import { fail, type Rendering } from './rendering.ts';

/** Something undefined: why, told only when it is used, because finding the hint costs time. */
interface UndefinedHeld {
  readonly kind: 'undefined';
  readonly offset: number;
  readonly describe: () => { readonly message: string; readonly hint?: string | undefined };
  /** Written as empty text: the `else` that an inline `if` lacks, as in Jinja2. Every other use is an error. */
  readonly isSilent?: true;
}

/** Fields that `{% set ns.field = … %}` may change, so that loops can carry values out. */
interface NamespaceHeld {
  readonly kind: 'namespace';
  readonly fields: Map<string, unknown>;
}

/** Where a `for` stands. */
export interface LoopHeld {
  readonly kind: 'loop';
  readonly items: readonly unknown[];
  index0: number;
}

/** The one class of values that are not data, so that one `instanceof` finds them all. */
export class Opaque {
  readonly held: UndefinedHeld | NamespaceHeld | LoopHeld;

  constructor(held: UndefinedHeld | NamespaceHeld | LoopHeld) {
    this.held = held;
  }
}

/** An undefined value with a plain explanation. */
export function undefinedAt(offset: number, describe: UndefinedHeld['describe']): Opaque {
  return new Opaque({ kind: 'undefined', offset, describe });
}

/** Whether a value stands for something undefined. */
export function isUndefined(value: unknown): boolean {
  return value instanceof Opaque && value.held.kind === 'undefined';
}

/** Whether a value is the missing `else` of an inline `if`, which is written as empty text. */
export function isSilent(value: unknown): boolean {
  return value instanceof Opaque && value.held.kind === 'undefined' && value.held.isSilent === true;
}

/** Stops because a value that is not data was used as data. */
export function refuse(rendering: Rendering, value: Opaque): never {
  const { held } = value;
  if (held.kind === 'undefined') {
    rendering.at = held.offset;
    const { message, hint } = held.describe();
    return fail(rendering, 'undefined', message, hint);
  }
  const message = `a ${held.kind} is not a value; only its fields can be used`;
  return fail(rendering, 'type', message, held.kind === 'loop' ? 'for example `loop.index`' : undefined);
}

/** The value itself if it is data. */
export function data(rendering: Rendering, value: unknown): unknown {
  return value instanceof Opaque ? refuse(rendering, value) : value;
}
