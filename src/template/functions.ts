/** The three functions of the language: `range`, `dict` and `namespace`. Nothing from the scope can be called. */
import { Opaque } from './opaque.ts';
import type { Named, Operation, Operations } from './operation.ts';
import { charge, fail, type Rendering, spend } from './rendering.ts';
import { textOf } from './text.ts';
import { isMap, itemsOf, kindOf, setOwn } from './values.ts';

const range: Operation = {
  params: ['start', 'stop', 'step'],
  required: 1,
  run: (rendering, _subject, args) => {
    const numbers = args.filter((arg) => arg !== undefined);
    if (!numbers.every((value): value is number => Number.isInteger(value))) {
      return fail(rendering, 'type', '`range` takes whole numbers');
    }
    const [first = 0, second, step = 1] = numbers;
    if (step === 0) return fail(rendering, 'type', 'the step of `range` cannot be zero');
    const [start, stop] = second === undefined ? [0, first] : [first, second];
    const count = Math.max(0, Math.ceil((stop - start) / step));
    charge(rendering, count);
    spend(rendering, count);
    return Array.from({ length: count }, (_, index) => start + index * step);
  },
};

const dict: Operation = {
  params: [],
  takesAny: true,
  run: (rendering, _subject, args, named) => {
    if (args.length > 1) return fail(rendering, 'type', '`dict` takes at most one map or list of pairs');
    const map: Record<string, unknown> = {};
    if (args.length === 1) copyEntries(rendering, args[0], map);
    copyEntries(rendering, named, map);
    return map;
  },
};

const namespace: Operation = {
  params: [],
  takesAny: true,
  run: (rendering, _subject, args, named) => {
    const map: Record<string, unknown> = {};
    for (const arg of args) copyEntries(rendering, arg, map);
    copyEntries(rendering, named, map);
    return new Opaque({ kind: 'namespace', fields: new Map(Object.entries(map)) });
  },
};

/** Everything that can be called by its name. */
export const FUNCTIONS: Operations = new Map(Object.entries({ range, dict, namespace }));

function copyEntries(rendering: Rendering, from: unknown, into: Record<string, unknown>): void {
  if (isMap(from)) {
    const entries = Object.entries(from as Named);
    spend(rendering, entries.length);
    charge(rendering, entries.length);
    for (const [key, value] of entries) setOwn(into, key, value);
    return;
  }
  for (const pair of itemsOf(rendering, from)) {
    spend(rendering, 1);
    charge(rendering, 1);
    if (!Array.isArray(pair) || pair.length !== 2) {
      fail(rendering, 'type', `expected a pair of key and value, found ${kindOf(pair)}`);
    }
    setOwn(into, textOf(rendering, pair[0]), pair[1]);
  }
}
