/** Filters that apply another filter or test to each element: `map`, `select`, `reject`, `selectattr`, `rejectattr`. */
import { didYouMean } from '../../base/suggest.ts';
import { data } from '../opaque.ts';
import { type Named, type Operation, type Operations, planArguments } from '../operation.ts';
import { charge, fail, type Rendering, spend } from '../rendering.ts';
import { TESTS } from '../tests.ts';
import { isTruthy } from '../truth.ts';
import { itemsOf } from '../values.ts';
import { defaultingReader, looseReader, type Reader } from './attribute.ts';

/** The filters, given the others that `map` can apply. */
export function choosingFilters(filters: () => Operations): Record<string, Operation> {
  return {
    map: {
      params: [],
      takesAny: true,
      operationName: { of: 'filter', at: 0 },
      run: (rendering, value, args, named) => {
        const convert = converter(rendering, filters(), { args, named });
        const items = itemsOf(rendering, value);
        charge(rendering, items.length);
        return items.map((item) => {
          spend(rendering, 1);
          return data(rendering, convert(item));
        });
      },
    },
    select: keeping(true),
    reject: keeping(false),
    selectattr: keepingByAttribute(true),
    rejectattr: keepingByAttribute(false),
  };
}

function converter(
  rendering: Rendering,
  filters: Operations,
  given: { args: readonly unknown[]; named: Named },
): Reader {
  const [name, ...rest] = given.args;
  if (name !== undefined)
    return applied(rendering, { operations: filters, what: 'filter', name, rest, named: given.named });
  const { attribute, default: fallback, ...others } = given.named;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return fail(rendering, 'type', `\`map\` has no argument \`${unknown}\``);
  if (attribute === undefined) {
    return fail(
      rendering,
      'type',
      '`map` needs the name of a filter or `attribute=`',
      "for example `map('upper')`",
    );
  }
  return defaultingReader(rendering, attribute, fallback);
}

function keeping(isKept: boolean): Operation {
  return {
    params: [],
    takesAny: true,
    operationName: { of: 'test', at: 0 },
    run: (rendering, value, args, named) => {
      const holds = condition(rendering, args, named);
      return kept(rendering, value, (item) => holds(item) === isKept);
    },
  };
}

function keepingByAttribute(isKept: boolean): Operation {
  return {
    params: [],
    takesAny: true,
    operationName: { of: 'test', at: 1 },
    run: (rendering, value, [attribute, ...rest], named) => {
      const read = looseReader(rendering, attribute);
      const holds = condition(rendering, rest, named);
      return kept(rendering, value, (item) => holds(read(item)) === isKept);
    },
  };
}

function kept(rendering: Rendering, value: unknown, isWanted: (item: unknown) => boolean): unknown[] {
  const items = itemsOf(rendering, value);
  charge(rendering, items.length);
  return items.filter((item) => {
    spend(rendering, 1);
    return isWanted(item);
  });
}

/** The named test, or plain truth when none is named. */
function condition(rendering: Rendering, args: readonly unknown[], named: Named): (item: unknown) => boolean {
  const [name, ...rest] = args;
  if (name === undefined) return (item) => isTruthy(data(rendering, item));
  const test = applied(rendering, { operations: TESTS, what: 'test', name, rest, named });
  return (item) => isTruthy(test(item));
}

/** An operation found by its name at run time, with its other arguments in place. */
function applied(
  rendering: Rendering,
  call: { operations: Operations; what: string; name: unknown; rest: readonly unknown[]; named: Named },
): Reader {
  const { operations, what, rest, named } = call;
  const name = typeof call.name === 'string' ? call.name : '';
  const operation = operations.get(name);
  if (operation === undefined) {
    return fail(rendering, 'type', `there is no ${what} \`${name}\``, didYouMean(name, operations.keys()));
  }
  let args = rest;
  if (operation.takesAny !== true) {
    const names = Object.keys(named);
    const plan = planArguments(name, operation, { positionalCount: rest.length, names });
    if ('problem' in plan) return fail(rendering, 'type', plan.problem, plan.hint);
    const given = [...rest, ...Object.values(named)];
    args = plan.order.map((place) => (place === -1 ? undefined : given[place]));
  }
  return (item) =>
    operation.run(rendering, operation.takesUndefined ? item : data(rendering, item), args, named);
}
