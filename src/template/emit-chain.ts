/** Names and what follows them. Here references are found, with the exact offsets that rewriting needs. */
import { invariant } from '../base/invariant.ts';
import { didYouMean } from '../base/suggest.ts';
import { missingName, readAttribute, readIndex, readSlice, type Site } from './access.ts';
import type { Chain, Expression, Step } from './ast.ts';
import { type Apply, emitCall, findFilter, findTest } from './emit-call.ts';
import { type Emitter, emitData, type Use } from './emitter.ts';
import { METHODS } from './methods.ts';
import { data, Opaque, refuse } from './opaque.ts';
import type { Operation } from './operation.ts';
import { quoted, syntaxError } from './position.ts';
import { refusedMethod } from './refused.ts';
import { type Evaluate, outOfSteps } from './rendering.ts';
import { findName } from './static-scope.ts';
import { isTruthy } from './truth.ts';

type NameNode = Expression & { readonly kind: 'name' };

/** A name on its own. */
export function emitName(emitter: Emitter, node: NameNode, use: Use): Evaluate {
  return emitRoot(emitter, node, { path: [], ends: [], use });
}

/** A value and its steps. */
export function emitChain(emitter: Emitter, chain: Chain, use: Use): Evaluate {
  const { base, steps } = chain;
  const operations = steps.map((step) => operationOf(emitter, step));
  const toleratesAbsence = (index: number): boolean =>
    index === steps.length ? use === 'optional' : operations[index]?.takesUndefined === true;
  const root = emitBase(emitter, base, { steps, toleratesAbsence });
  const applied = steps.map((step, index) => {
    const site = siteOf(emitter, chain, index);
    return emitStep(emitter, step, { site, operation: operations[index] ?? null });
  });
  return (rendering) => {
    let value = root(rendering);
    for (let index = 0; index < applied.length; index++) value = (applied[index] as Apply)(rendering, value);
    return value;
  };
}

/** The filters of a `{% filter %}` block or a block `set`, one after the other. */
export function emitFilters(emitter: Emitter, filters: readonly Step[]): Apply {
  const applied = filters.map((step) => emitFilter(emitter, step));
  return (rendering, subject) =>
    data(
      rendering,
      applied.reduce((value, apply) => apply(rendering, value), subject),
    );
}

function emitFilter(emitter: Emitter, step: Step): Apply {
  const operation = operationOf(emitter, step);
  invariant(operation !== null, 'only filters stand in a filter block');
  return emitOperation(emitter, step, operation);
}

function emitBase(
  emitter: Emitter,
  base: Expression,
  context: { steps: readonly Step[]; toleratesAbsence: (index: number) => boolean },
): Evaluate {
  const { steps, toleratesAbsence } = context;
  if (base.kind !== 'name')
    return emitter.expression(emitter, base, toleratesAbsence(0) ? 'optional' : 'required');
  const path: (string | number)[] = [];
  const ends: number[] = [];
  for (const step of steps) {
    const key = staticKey(step);
    if (key === null) break;
    path.push(key);
    ends.push(step.end);
  }
  return emitRoot(emitter, base, {
    path,
    ends,
    use: toleratesAbsence(path.length) ? 'optional' : 'required',
  });
}

/** The key of a step that is written out, or null when it is computed or something else. */
function staticKey(step: Step): string | number | null {
  if (step.kind === 'attribute') return step.name;
  if (step.kind !== 'index' || step.key.kind !== 'literal') return null;
  const { value } = step.key;
  return typeof value === 'string' || typeof value === 'number' ? value : null;
}

function emitRoot(
  emitter: Emitter,
  node: NameNode,
  reference: { path: readonly (string | number)[]; ends: readonly number[]; use: Use },
): Evaluate {
  const { name, start, end } = node;
  const { slots, isCertain } = findName(emitter.scope, name);
  if (!isCertain) {
    // A name that the template may have set itself can be absent from the scope without harm.
    const optional = reference.use === 'optional' || slots.length > 0;
    emitter.references.push({
      root: name,
      path: reference.path,
      start,
      ends: [end, ...reference.ends],
      optional,
    });
  }
  const site: Site = { text: emitter.source, start, middle: start, end, at: start, taskId: null };
  return (rendering) => {
    if (--rendering.stepsLeft < 0) throw outOfSteps(rendering);
    for (let index = 0; index < slots.length; index++) {
      const value = rendering.slots[slots[index] as number];
      if (value !== undefined) return value;
    }
    const { scope } = rendering;
    const value = Object.hasOwn(scope, name) ? scope[name] : undefined;
    return value === undefined ? missingName(site, name, () => Object.keys(scope)) : value;
  };
}

function operationOf(emitter: Emitter, step: Step): Operation | null {
  if (step.kind === 'filter') return findFilter(emitter, step);
  if (step.kind === 'test') return findTest(emitter, step);
  if (step.kind !== 'method') return null;
  const operation = METHODS.get(step.name);
  if (operation !== undefined) return operation;
  const refused = refusedMethod(step.name);
  const message = refused?.message ?? `there is no method ${quoted(`.${step.name}()`)}`;
  throw syntaxError(
    emitter.source,
    step.start,
    message,
    refused?.hint ?? didYouMean(step.name, METHODS.keys()),
  );
}

function emitStep(emitter: Emitter, step: Step, context: { site: Site; operation: Operation | null }): Apply {
  const { site, operation } = context;
  if (operation !== null) return emitOperation(emitter, step, operation);
  if (step.kind === 'attribute') {
    const { name } = step;
    return (rendering, owner) => {
      if (--rendering.stepsLeft < 0) throw outOfSteps(rendering);
      return readAttribute(rendering, owner, name, site);
    };
  }
  if (step.kind === 'index') {
    const key = emitData(emitter, step.key);
    return (rendering, owner) => {
      if (--rendering.stepsLeft < 0) throw outOfSteps(rendering);
      if (owner instanceof Opaque && owner.held.kind === 'undefined') refuse(rendering, owner);
      return readIndex(rendering, owner, key(rendering), site);
    };
  }
  return emitSlice(emitter, step);
}

function emitOperation(emitter: Emitter, step: Step, operation: Operation): Apply {
  if (step.kind === 'filter') return emitCall(emitter, step, operation);
  if (step.kind === 'test') {
    const apply = emitCall(emitter, step, operation);
    const { isNegated } = step;
    return (rendering, subject) => isTruthy(apply(rendering, subject)) !== isNegated;
  }
  const { name, args, start } = step as Step & { readonly kind: 'method' };
  const apply = emitCall(emitter, { name, args, start }, { ...operation, takesUndefined: true });
  return (rendering, subject) => {
    // `loop.cycle()` is called on an opaque value; what is undefined is refused before it gets there.
    if (subject instanceof Opaque && subject.held.kind !== 'loop') refuse(rendering, subject);
    return apply(rendering, subject);
  };
}

function emitSlice(emitter: Emitter, step: Step): Apply {
  const { from, to, by, start } = step as Step & { readonly kind: 'slice' };
  const [low, high, stride] = [from, to, by].map((node) =>
    node === null ? () => null : emitData(emitter, node),
  );
  return (rendering, owner) => {
    if (--rendering.stepsLeft < 0) throw outOfSteps(rendering);
    const list = data(rendering, owner);
    const bounds = { from: low?.(rendering), to: high?.(rendering), by: stride?.(rendering) };
    rendering.at = start;
    return readSlice(rendering, list, bounds);
  };
}

function siteOf(emitter: Emitter, chain: Chain, index: number): Site {
  const step = chain.steps[index] as Step;
  const before = index === 0 ? chain.base.end : (chain.steps[index - 1] as Step).end;
  return {
    text: emitter.source,
    start: chain.start,
    middle: before,
    end: step.end,
    at: chain.start,
    taskId: index === 2 ? taskOf(chain) : null,
  };
}

/** The id in `tasks.<id>.output`, when that is how a chain begins. */
function taskOf(chain: Chain): string | null {
  const [first, second] = chain.steps;
  const isTasks = chain.base.kind === 'name' && chain.base.name === 'tasks';
  if (!isTasks || first === undefined || second === undefined || staticKey(second) !== 'output') return null;
  const id = staticKey(first);
  return typeof id === 'string' ? id : null;
}
