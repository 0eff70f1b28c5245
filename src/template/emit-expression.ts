/** From expression trees to closures. A node pays its step, evaluates its parts, notes where it is, and works. */
import { didYouMean } from '../base/suggest.ts';
import { ARITHMETIC, affirm, negate } from './arithmetic.ts';
import type { CompareOperator, Expression } from './ast.ts';
import { contains, isEqual, isKey, order } from './compare.ts';
import { emitCall } from './emit-call.ts';
import { emitChain, emitName } from './emit-chain.ts';
import { type Emitter, emitData, emitWritten, type Use } from './emitter.ts';
import { FILTERS } from './filters.ts';
import { FUNCTIONS } from './functions.ts';
import { data, Opaque } from './opaque.ts';
import { quoted, syntaxError } from './position.ts';
import { charge, type Evaluate, fail, outOfSteps, type Rendering } from './rendering.ts';
import { findName } from './static-scope.ts';
import { textOf } from './text.ts';
import { isTruthy } from './truth.ts';
import { kindOf, setOwn } from './values.ts';

type NodeOf<Kind extends Expression['kind']> = Extract<Expression, { readonly kind: Kind }>;

/** Compiles an expression; what it gives may be undefined or otherwise opaque. */
export function emitExpression(emitter: Emitter, node: Expression, use: Use): Evaluate {
  switch (node.kind) {
    case 'literal': {
      const { value } = node;
      return () => value;
    }
    case 'name':
      return emitName(emitter, node, use);
    case 'chain':
      return emitChain(emitter, node, use);
    case 'group':
      return emitExpression(emitter, node.inner, use);
    case 'list':
      return emitList(emitter, node);
    case 'map':
      return emitMap(emitter, node);
    case 'call':
      return emitFunction(emitter, node);
    case 'unary':
      return emitUnary(emitter, node);
    case 'arithmetic':
      return emitArithmetic(emitter, node);
    case 'concat':
      return emitConcat(emitter, node);
    case 'compare':
      return emitCompare(emitter, node);
    case 'logic':
      return emitLogic(emitter, node, use);
    case 'conditional':
      return emitConditional(emitter, node, use);
  }
}

function emitList(emitter: Emitter, node: NodeOf<'list'>): Evaluate {
  const items = node.items.map((item) => emitData(emitter, item));
  return (rendering) => {
    rendering.at = node.start;
    charge(rendering, items.length);
    const list: unknown[] = [];
    for (const item of items) {
      step(rendering);
      list.push(item(rendering));
    }
    return list;
  };
}

function emitMap(emitter: Emitter, node: NodeOf<'map'>): Evaluate {
  const entries = node.entries.map(
    ([key, value]) => [emitData(emitter, key), emitData(emitter, value)] as const,
  );
  return (rendering) => {
    const map: Record<string, unknown> = {};
    for (const [key, value] of entries) {
      step(rendering);
      const name = key(rendering);
      rendering.at = node.start;
      if (!isKey(name))
        return fail(rendering, 'type', `the key of a map must be text, and this is ${kindOf(name)}`);
      charge(rendering, 1);
      setOwn(map, textOf(rendering, name), value(rendering));
    }
    return map;
  };
}

function emitFunction(emitter: Emitter, node: NodeOf<'call'>): Evaluate {
  const operation = FUNCTIONS.get(node.name);
  const isShadowed = findName(emitter.scope, node.name).slots.length > 0;
  if (operation === undefined || isShadowed) {
    const hint = FILTERS.has(node.name)
      ? `it is a filter: \`value | ${node.name}\``
      : didYouMean(node.name, FUNCTIONS.keys());
    throw syntaxError(emitter.source, node.start, `${quoted(node.name)} cannot be called`, hint);
  }
  const apply = emitCall(emitter, node, operation);
  return (rendering) => apply(rendering, null);
}

function emitUnary(emitter: Emitter, node: NodeOf<'unary'>): Evaluate {
  const operand = emitData(emitter, node.operand);
  if (node.operator === 'not') {
    return (rendering) => {
      step(rendering);
      return !isTruthy(operand(rendering));
    };
  }
  const apply = node.operator === '-' ? negate : affirm;
  return (rendering) => {
    step(rendering);
    const value = operand(rendering);
    rendering.at = node.start;
    return apply(rendering, value);
  };
}

function emitArithmetic(emitter: Emitter, node: NodeOf<'arithmetic'>): Evaluate {
  const first = emitData(emitter, node.first);
  const rest = node.rest.map(({ operator, operand }) => ({
    apply: ARITHMETIC[operator],
    operand: emitData(emitter, operand),
  }));
  return (rendering) => {
    let value = first(rendering);
    for (const { apply, operand } of rest) {
      step(rendering);
      const right = operand(rendering);
      rendering.at = node.start;
      value = apply(rendering, value, right);
    }
    return value;
  };
}

function emitConcat(emitter: Emitter, node: NodeOf<'concat'>): Evaluate {
  const parts = node.parts.map((part) => emitWritten(emitter, part));
  return (rendering) => {
    let text = '';
    for (const part of parts) {
      step(rendering);
      const value = part(rendering);
      rendering.at = node.start;
      const piece = textOf(rendering, value);
      charge(rendering, piece.length);
      text += piece;
    }
    return text;
  };
}

const COMPARISONS: Readonly<
  Record<CompareOperator, (rendering: Rendering, left: unknown, right: unknown) => boolean>
> = {
  '==': (rendering, left, right) => isEqual(rendering, left, right),
  '!=': (rendering, left, right) => !isEqual(rendering, left, right),
  '<': (rendering, left, right) => order(rendering, left, right) < 0,
  '<=': (rendering, left, right) => order(rendering, left, right) <= 0,
  '>': (rendering, left, right) => order(rendering, left, right) > 0,
  '>=': (rendering, left, right) => order(rendering, left, right) >= 0,
  in: (rendering, left, right) => contains(rendering, right, left),
  'not in': (rendering, left, right) => !contains(rendering, right, left),
};

/** `a < b < c` is `a < b and b < c` with `b` evaluated once. */
function emitCompare(emitter: Emitter, node: NodeOf<'compare'>): Evaluate {
  const first = emitData(emitter, node.first);
  const rest = node.rest.map(({ operator, operand }) => ({
    holds: COMPARISONS[operator],
    operand: emitData(emitter, operand),
  }));
  return (rendering) => {
    let left = first(rendering);
    for (const { holds, operand } of rest) {
      step(rendering);
      const right = operand(rendering);
      rendering.at = node.start;
      if (!holds(rendering, left, right)) return false;
      left = right;
    }
    return true;
  };
}

/** Gives the operand that decides, not a boolean; only the last one is not asked for its truth. */
function emitLogic(emitter: Emitter, node: NodeOf<'logic'>, use: Use): Evaluate {
  const isOr = node.operator === 'or';
  const lastIndex = node.operands.length - 1;
  const operands = node.operands.map((operand, index) =>
    emitExpression(emitter, operand, index === lastIndex ? use : 'required'),
  );
  const last = operands[lastIndex] as Evaluate;
  const earlier = operands.slice(0, -1);
  return (rendering) => {
    for (const operand of earlier) {
      step(rendering);
      const value = data(rendering, operand(rendering));
      if (isTruthy(value) === isOr) return value;
    }
    return last(rendering);
  };
}

function emitConditional(emitter: Emitter, node: NodeOf<'conditional'>, use: Use): Evaluate {
  const condition = emitData(emitter, node.condition);
  const whenTrue = emitExpression(emitter, node.whenTrue, use);
  const absent = new Opaque({
    kind: 'undefined',
    offset: node.start,
    describe: () => ({ message: 'this `if` has no `else`, and its condition is false' }),
    isSilent: true,
  });
  const otherwise = node.otherwise === null ? () => absent : emitExpression(emitter, node.otherwise, use);
  return (rendering) => {
    step(rendering);
    return isTruthy(condition(rendering)) ? whenTrue(rendering) : otherwise(rendering);
  };
}

function step(rendering: Rendering): void {
  if (--rendering.stepsLeft < 0) throw outOfSteps(rendering);
}
