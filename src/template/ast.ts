/**
 * The parsed form of templates. Operators of one level and everything after a value (`.a[0]|f is t`) are flat lists, never nested
 * pairs, so the depth of a tree is bounded by the nesting that a person wrote and long chains cannot exhaust the stack.
 */

/** Offsets of a node in the source. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** Arguments of a call, filter or test. */
export interface Arguments {
  readonly positional: readonly Expression[];
  readonly named: readonly { readonly name: string; readonly value: Expression; readonly start: number }[];
}

/** Operators on numbers; some also put text and lists together. */
export type ArithmeticOperator = '+' | '-' | '*' | '/' | '//' | '%' | '**';
/** Operators that answer true or false. */
export type CompareOperator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in';

/** One thing applied to the value before it. */
export type Step =
  | (Span & { readonly kind: 'attribute'; readonly name: string })
  | (Span & { readonly kind: 'index'; readonly key: Expression })
  | (Span & {
      readonly kind: 'slice';
      readonly from: Expression | null;
      readonly to: Expression | null;
      readonly by: Expression | null;
    })
  | (Span & { readonly kind: 'method'; readonly name: string; readonly args: Arguments })
  | (Span & { readonly kind: 'filter'; readonly name: string; readonly args: Arguments })
  | (Span & {
      readonly kind: 'test';
      readonly name: string;
      readonly isNegated: boolean;
      readonly args: Arguments;
    });

/** A value followed by steps. */
export type Chain = Span & {
  readonly kind: 'chain';
  readonly base: Expression;
  readonly steps: readonly Step[];
};

/** Anything with a value. */
export type Expression =
  | (Span & { readonly kind: 'literal'; readonly value: string | number | boolean | null })
  | (Span & { readonly kind: 'name'; readonly name: string })
  | (Span & { readonly kind: 'list'; readonly items: readonly Expression[] })
  | (Span & { readonly kind: 'map'; readonly entries: readonly (readonly [Expression, Expression])[] })
  | (Span & { readonly kind: 'group'; readonly inner: Expression })
  | (Span & { readonly kind: 'call'; readonly name: string; readonly args: Arguments })
  | (Span & { readonly kind: 'unary'; readonly operator: '-' | '+' | 'not'; readonly operand: Expression })
  | (Span & {
      readonly kind: 'arithmetic';
      readonly first: Expression;
      readonly rest: readonly { readonly operator: ArithmeticOperator; readonly operand: Expression }[];
    })
  | (Span & { readonly kind: 'concat'; readonly parts: readonly Expression[] })
  | (Span & {
      readonly kind: 'compare';
      readonly first: Expression;
      readonly rest: readonly { readonly operator: CompareOperator; readonly operand: Expression }[];
    })
  | (Span & {
      readonly kind: 'logic';
      readonly operator: 'and' | 'or';
      readonly operands: readonly Expression[];
    })
  | (Span & {
      readonly kind: 'conditional';
      readonly condition: Expression;
      readonly whenTrue: Expression;
      readonly otherwise: Expression | null;
    })
  | Chain;

/** What `for` and `set` bind. */
export type Target =
  | (Span & { readonly kind: 'name'; readonly name: string })
  | (Span & { readonly kind: 'tuple'; readonly items: readonly Target[] })
  | (Span & { readonly kind: 'field'; readonly name: string; readonly field: string });

/** One piece of a template. */
export type Statement =
  | (Span & { readonly kind: 'text'; readonly text: string })
  | (Span & { readonly kind: 'output'; readonly value: Expression })
  | (Span & {
      readonly kind: 'if';
      readonly branches: readonly { readonly condition: Expression; readonly body: readonly Statement[] }[];
      readonly otherwise: readonly Statement[] | null;
    })
  | (Span & {
      readonly kind: 'for';
      readonly target: Target;
      readonly items: Expression;
      readonly condition: Expression | null;
      readonly body: readonly Statement[];
      readonly otherwise: readonly Statement[] | null;
    })
  | (Span & { readonly kind: 'set'; readonly target: Target; readonly value: Expression })
  | (Span & {
      readonly kind: 'capture';
      /** Null for a `{% filter %}` block, whose text goes to the output. */
      readonly target: Target | null;
      readonly filters: readonly Step[];
      readonly body: readonly Statement[];
    });
