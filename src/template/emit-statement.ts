/** From statement trees to closures that add to the output or bind names. */
import { unreachable } from '../base/invariant.ts';
import type { Expression, Statement, Target } from './ast.ts';
import { emitFilters } from './emit-chain.ts';
import { type Emitter, emitData, emitWritten } from './emitter.ts';
import { type LoopHeld, Opaque, refuse } from './opaque.ts';
import { syntaxError } from './position.ts';
import { charge, type Evaluate, type Execute, fail, outOfSteps, type Rendering, write } from './rendering.ts';
import { bindName, findName, inBranch, joinBranches, openScope, type StaticScope } from './static-scope.ts';
import { textOf } from './text.ts';
import { isTruthy } from './truth.ts';
import { itemsOf, kindOf } from './values.ts';

type NodeOf<Kind extends Statement['kind']> = Extract<Statement, { readonly kind: Kind }>;
type Assign = (rendering: Rendering, value: unknown) => void;

/** Compiles statements that run one after the other. */
export function emitBody(emitter: Emitter, body: readonly Statement[]): Execute {
  const parts = body.map((statement) => emitStatement(emitter, statement));
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  return (rendering) => {
    for (let index = 0; index < parts.length; index++) (parts[index] as Execute)(rendering);
  };
}

function emitStatement(emitter: Emitter, node: Statement): Execute {
  switch (node.kind) {
    case 'text': {
      const { text } = node;
      return (rendering) => {
        step(rendering);
        write(rendering, text);
      };
    }
    case 'output':
      return emitOutput(emitter, node.value);
    case 'if':
      return emitIf(emitter, node);
    case 'for':
      return emitFor(emitter, node);
    case 'set':
      return emitSet(emitter, node);
    case 'capture':
      return emitCapture(emitter, node);
    default:
      return unreachable(node);
  }
}

function emitOutput(emitter: Emitter, node: Expression): Execute {
  const evaluate = emitWritten(emitter, node);
  return (rendering) => {
    step(rendering);
    const value = evaluate(rendering);
    rendering.at = node.start;
    write(rendering, textOf(rendering, value));
  };
}

function emitIf(emitter: Emitter, node: NodeOf<'if'>): Execute {
  const { scope } = emitter;
  const certain: ReadonlySet<string>[] = [];
  const branches = node.branches.map(({ condition, body }) => {
    const holds = emitData(emitter, condition);
    let run: Execute = () => undefined;
    certain.push(inBranch(scope, () => (run = emitBody(emitter, body))));
    return { holds, run };
  });
  let otherwise: Execute | null = null;
  if (node.otherwise !== null) {
    const body = node.otherwise;
    certain.push(inBranch(scope, () => (otherwise = emitBody(emitter, body))));
    joinBranches(scope, certain);
  }
  return (rendering) => {
    for (const { holds, run } of branches) {
      step(rendering);
      if (isTruthy(holds(rendering))) return run(rendering);
    }
    otherwise?.(rendering);
  };
}

function emitFor(emitter: Emitter, node: NodeOf<'for'>): Execute {
  const items = emitData(emitter, node.items);
  const { scope: outer } = emitter;
  const inner = openScope(outer);
  emitter.scope = inner;
  const assign = emitTarget(emitter, node.target);
  const condition = node.condition === null ? null : emitData(emitter, node.condition);
  const loopSlot = bindName(inner, 'loop', () => emitter.slotCount++);
  const body = emitBody(emitter, node.body);
  const reset = emitReset(inner);
  emitter.scope = openScope(outer);
  const otherwise = node.otherwise === null ? null : emitFresh(emitter, node.otherwise);
  emitter.scope = outer;
  return (rendering) => {
    step(rendering);
    const list = items(rendering);
    rendering.at = node.items.start;
    const all = itemsOf(rendering, list);
    const chosen = condition === null ? all : choose(rendering, all, { assign, condition });
    if (chosen.length === 0) return otherwise?.(rendering);
    const loop: LoopHeld = { kind: 'loop', items: chosen, index0: 0 };
    const handle = new Opaque(loop);
    for (; loop.index0 < chosen.length; loop.index0++) {
      step(rendering);
      reset(rendering);
      rendering.slots[loopSlot] = handle;
      rendering.at = node.start;
      assign(rendering, chosen[loop.index0]);
      body(rendering);
    }
  };
}

/** The items that pass a loop's `if`, decided before the first turn so that `loop.length` counts only them. */
function choose(
  rendering: Rendering,
  items: readonly unknown[],
  loop: { assign: Assign; condition: Evaluate },
): unknown[] {
  const chosen: unknown[] = [];
  for (const item of items) {
    step(rendering);
    loop.assign(rendering, item);
    if (!isTruthy(loop.condition(rendering))) continue;
    charge(rendering, 1);
    chosen.push(item);
  }
  return chosen;
}

function emitSet(emitter: Emitter, node: NodeOf<'set'>): Execute {
  const evaluate = emitter.expression(emitter, node.value, 'required');
  const assign = emitTarget(emitter, node.target);
  return (rendering) => {
    step(rendering);
    const value = evaluate(rendering);
    // A namespace and a `loop` may have another name; what is undefined may not.
    if (value instanceof Opaque && value.held.kind === 'undefined') refuse(rendering, value);
    rendering.at = node.start;
    assign(rendering, value);
  };
}

/** A block `set` or a `filter` block: the text of its body becomes a value. */
function emitCapture(emitter: Emitter, node: NodeOf<'capture'>): Execute {
  const { scope: outer } = emitter;
  const convert = emitFilters(emitter, node.filters);
  emitter.scope = openScope(outer);
  const body = emitFresh(emitter, node.body);
  emitter.scope = outer;
  const assign = node.target === null ? null : emitTarget(emitter, node.target);
  return (rendering) => {
    step(rendering);
    const before = rendering.out;
    rendering.out = '';
    body(rendering);
    const captured = rendering.out;
    rendering.out = before;
    charge(rendering, captured.length);
    const value = convert(rendering, captured);
    rendering.at = node.start;
    if (assign === null) write(rendering, textOf(rendering, value));
    else assign(rendering, value);
  };
}

/** A body in the emitter's new scope; what it set in an earlier turn of an outer loop is forgotten when it starts. */
function emitFresh(emitter: Emitter, body: readonly Statement[]): Execute {
  const run = emitBody(emitter, body);
  const reset = emitReset(emitter.scope);
  return (rendering) => {
    reset(rendering);
    run(rendering);
  };
}

function emitReset(scope: StaticScope): Execute {
  const slots = [...scope.slots.values()];
  return (rendering) => {
    for (let index = 0; index < slots.length; index++) rendering.slots[slots[index] as number] = undefined;
  };
}

function emitTarget(emitter: Emitter, target: Target): Assign {
  switch (target.kind) {
    case 'name': {
      const slot = bindName(emitter.scope, target.name, () => emitter.slotCount++);
      return (rendering, value) => {
        rendering.slots[slot] = value ?? null;
      };
    }
    case 'field':
      return emitField(emitter, target);
    case 'tuple':
      return emitUnpack(emitter, target);
    default:
      return unreachable(target);
  }
}

function emitField(emitter: Emitter, target: Target & { readonly kind: 'field' }): Assign {
  const { slots } = findName(emitter.scope, target.name);
  if (slots.length === 0) {
    const message = `\`${target.name}\` is not a namespace`;
    const hint = `first write \`{% set ${target.name} = namespace() %}\``;
    throw syntaxError(emitter.source, target.start, message, hint);
  }
  return (rendering, value) => {
    const owner = slots.map((slot) => rendering.slots[slot]).find((found) => found !== undefined);
    if (!(owner instanceof Opaque) || owner.held.kind !== 'namespace') {
      return fail(
        rendering,
        'type',
        `\`${target.name}\` is ${kindOf(owner)}, and only a namespace can be changed`,
      );
    }
    owner.held.fields.set(target.field, value ?? null);
  };
}

function emitUnpack(emitter: Emitter, target: Target & { readonly kind: 'tuple' }): Assign {
  const parts = target.items.map((item) => emitTarget(emitter, item));
  return (rendering, value) => {
    if (!Array.isArray(value) && typeof value !== 'string') {
      return fail(rendering, 'type', `${kindOf(value)} cannot be unpacked into ${parts.length} names`);
    }
    const items = itemsOf(rendering, value);
    if (items.length !== parts.length) {
      return fail(rendering, 'type', `${items.length} values cannot be unpacked into ${parts.length} names`);
    }
    for (const [index, assign] of parts.entries()) {
      step(rendering);
      assign(rendering, items[index]);
    }
  };
}

function step(rendering: Rendering): void {
  if (--rendering.stepsLeft < 0) throw outOfSteps(rendering);
}
