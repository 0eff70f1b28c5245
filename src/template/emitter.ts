/** The state of one compilation, from tree to closures: names in sight, references found, slots handed out. */
import type { Expression } from './ast.ts';
import { isSilent, Opaque, refuse } from './opaque.ts';
import type { Evaluate } from './rendering.ts';
import type { StaticScope } from './static-scope.ts';
import type { Reference } from './template.ts';

/** Whether the place where a value is used accepts that it is undefined. */
export type Use = 'required' | 'optional';

/** One compilation. `expression` is injected so that the parts of the compiler need not import each other. */
export interface Emitter {
  readonly source: string;
  readonly references: Reference[];
  /** May give an opaque value; whoever calls it deals with that. */
  readonly expression: (emitter: Emitter, node: Expression, use: Use) => Evaluate;
  scope: StaticScope;
  slotCount: number;
}

/** An expression whose value must be data. */
export function emitData(emitter: Emitter, node: Expression): Evaluate {
  const evaluate = emitter.expression(emitter, node, 'required');
  if (!canBeOpaque(node)) return evaluate;
  return (rendering) => {
    const value = evaluate(rendering);
    return value instanceof Opaque ? refuse(rendering, value) : value;
  };
}

/** An expression that is about to be written: data, or empty text for an inline `if` that lacks its `else`. */
export function emitWritten(emitter: Emitter, node: Expression): Evaluate {
  const evaluate = emitter.expression(emitter, node, 'required');
  if (!canBeOpaque(node)) return evaluate;
  return (rendering) => {
    const value = evaluate(rendering);
    if (!(value instanceof Opaque)) return value;
    return isSilent(value) ? '' : refuse(rendering, value);
  };
}

function canBeOpaque(node: Expression): boolean {
  switch (node.kind) {
    case 'name':
    case 'chain':
    case 'call':
    case 'group':
    case 'conditional':
    case 'logic':
      return true;
    default:
      return false;
  }
}
