/** Calls of filters, tests, methods and functions: wrong names and wrong arguments are found here, before anything runs. */
import { didYouMean } from '../base/suggest.ts';
import type { Arguments } from './ast.ts';
import { type Emitter, emitData } from './emitter.ts';
import { FILTERS } from './filters.ts';
import { data } from './opaque.ts';
import { type Named, type Operation, type Operations, planArguments } from './operation.ts';
import { quoted, syntaxError } from './position.ts';
import { type Refusal, refusedFilter } from './refused.ts';
import { type Evaluate, outOfSteps, type Rendering } from './rendering.ts';
import { TESTS } from './tests.ts';
import { setOwn } from './values.ts';

/** Applies an operation to a subject. */
export type Apply = (rendering: Rendering, subject: unknown) => unknown;

/** An operation as it is written. */
interface CallSite {
  readonly name: string;
  readonly args: Arguments;
  readonly start: number;
}

const NO_NAMED: Named = Object.freeze({});

/** A filter by name, or the error that explains why there is none. */
export function findFilter(emitter: Emitter, call: CallSite): Operation {
  return find(emitter, call, { what: 'filter', operations: FILTERS, refusal: refusedFilter(call.name) });
}

/** A test by name, or the error that explains why there is none. */
export function findTest(emitter: Emitter, call: CallSite): Operation {
  return find(emitter, call, { what: 'test', operations: TESTS, refusal: null });
}

/** The call of an operation, with its arguments compiled and in their places. */
export function emitCall(emitter: Emitter, call: CallSite, operation: Operation): Apply {
  checkOperationName(emitter, call, operation);
  const { start } = call;
  const { run } = operation;
  const passesUndefined = operation.takesUndefined === true;
  const args = emitPlaces(emitter, call, operation);
  const named = operation.takesAny === true ? emitNamed(emitter, call) : null;
  return (rendering, subject) => {
    if (--rendering.stepsLeft < 0) throw outOfSteps(rendering);
    const checked = passesUndefined ? subject : data(rendering, subject);
    const places = args(rendering);
    const names = named === null ? NO_NAMED : named(rendering);
    rendering.at = start;
    return run(rendering, checked, places, names);
  };
}

function find(
  emitter: Emitter,
  call: CallSite,
  table: { what: string; operations: Operations; refusal: Refusal | null },
): Operation {
  const operation = table.operations.get(call.name);
  if (operation !== undefined) return operation;
  const { refusal } = table;
  const message = refusal?.message ?? `there is no ${table.what} ${quoted(call.name)}`;
  const hint = refusal === null ? didYouMean(call.name, table.operations.keys()) : refusal.hint;
  throw syntaxError(emitter.source, call.start, message, hint);
}

/** `map('uppr')` names a filter in a text; when the text is written out it is checked like any other name. */
function checkOperationName(emitter: Emitter, call: CallSite, operation: Operation): void {
  if (operation.operationName === undefined) return;
  const node = call.args.positional[operation.operationName.at];
  if (node?.kind !== 'literal' || typeof node.value !== 'string') return;
  const inner: CallSite = { name: node.value, args: call.args, start: node.start };
  if (operation.operationName.of === 'filter') findFilter(emitter, inner);
  else findTest(emitter, inner);
}

/** Evaluates the arguments into an array in the order of the parameters. */
function emitPlaces(
  emitter: Emitter,
  call: CallSite,
  operation: Operation,
): (rendering: Rendering) => readonly unknown[] {
  const { positional, named } = call.args;
  const compile = (node: Arguments['positional'][number]): Evaluate =>
    operation.takesUndefined === true
      ? emitter.expression(emitter, node, 'optional')
      : emitData(emitter, node);
  if (operation.takesAny === true) {
    const given = positional.map(compile);
    return (rendering) => given.map((evaluate) => evaluate(rendering));
  }
  const names = named.map((argument) => argument.name);
  const plan = planArguments(call.name, operation, { positionalCount: positional.length, names });
  if ('problem' in plan) throw syntaxError(emitter.source, call.start, plan.problem, plan.hint);
  const nodes = [...positional, ...named.map((argument) => argument.value)];
  const places = plan.order.map((place) => {
    const node = nodes[place];
    return node === undefined ? null : compile(node);
  });
  if (nodes.length === 0) {
    const nothing: readonly unknown[] = Object.freeze(places.map(() => undefined));
    return () => nothing;
  }
  return (rendering) => places.map((evaluate) => (evaluate === null ? undefined : evaluate(rendering)));
}

function emitNamed(emitter: Emitter, call: CallSite): (rendering: Rendering) => Named {
  const seen = new Set<string>();
  const named = call.args.named.map(({ name, value, start }) => {
    if (seen.has(name)) throw syntaxError(emitter.source, start, `the argument \`${name}\` is given twice`);
    seen.add(name);
    return { name, evaluate: emitData(emitter, value) };
  });
  if (named.length === 0) return () => NO_NAMED;
  return (rendering) => {
    const values: Record<string, unknown> = {};
    for (const { name, evaluate } of named) setOwn(values, name, evaluate(rendering));
    return values;
  };
}
