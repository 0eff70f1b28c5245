/** The contract of everything a template can apply: filters, tests, methods and functions; and how arguments find their places. */
import { didYouMean } from '../base/suggest.ts';
import type { Rendering } from './rendering.ts';

/** Arguments given by name, of operations that take any. */
export type Named = Readonly<Record<string, unknown>>;

/** One filter, test, method or function. */
export interface Operation {
  /** Names of the arguments after the subject, in order; each may be given by place or by name. */
  readonly params: readonly string[];
  /** How many of them must be given; none if absent. */
  readonly required?: number;
  /** Takes any number of arguments, by place and by name; `params` is not used. */
  readonly takesAny?: true;
  /** Is handed what is undefined, both as subject and as arguments, instead of failing. */
  readonly takesUndefined?: true;
  /** The place of an argument that names another operation, so that a wrong name is found when compiling. */
  readonly operationName?: { readonly of: 'filter' | 'test'; readonly at: number };
  /** Missing arguments are `undefined`. */
  readonly run: (rendering: Rendering, subject: unknown, args: readonly unknown[], named: Named) => unknown;
}

/** Operations by name. */
export type Operations = ReadonlyMap<string, Operation>;

/** For each parameter, which of the given arguments (places first, then names) it takes, or -1; or what is wrong. */
type ArgumentPlan =
  | { readonly order: readonly number[] }
  | { readonly problem: string; readonly hint?: string | undefined };

/** Matches given arguments to the parameters of an operation. */
export function planArguments(
  name: string,
  operation: Operation,
  given: { positionalCount: number; names: readonly string[] },
): ArgumentPlan {
  const { params, required = 0 } = operation;
  const { positionalCount, names } = given;
  if (positionalCount > params.length) {
    const most = params.length === 0 ? 'no arguments' : `at most ${params.length}`;
    return { problem: `\`${name}\` takes ${most}, and ${positionalCount} were given` };
  }
  const order = params.map((_, index) => (index < positionalCount ? index : -1));
  for (const [index, argument] of names.entries()) {
    const place = params.indexOf(argument);
    if (place === -1) {
      return { problem: `\`${name}\` has no argument \`${argument}\``, hint: didYouMean(argument, params) };
    }
    if (order[place] !== -1) return { problem: `the argument \`${argument}\` is given twice` };
    order[place] = positionalCount + index;
  }
  const missing = order.slice(0, required).indexOf(-1);
  if (missing !== -1) return { problem: `\`${name}\` needs the argument \`${params[missing]}\`` };
  return { order };
}
