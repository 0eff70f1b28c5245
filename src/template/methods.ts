/** The few methods of text, lists and maps that people know from Python. They are looked up here by name, never on the value. */
import { isEqual, isKey } from './compare.ts';
import { Opaque, refuse } from './opaque.ts';
import type { Operation, Operations } from './operation.ts';
import { charge, fail, type Rendering, spend, spendOnSearch, spendOnText } from './rendering.ts';
import {
  capitalized,
  countOf,
  linesOf,
  lowerCase,
  replaced,
  type Sides,
  split,
  strip,
  titled,
  upperCase,
} from './strings.ts';
import { type DataMap, isMap, keysOf, kindOf, pairsOf } from './values.ts';

type Args = readonly unknown[];

const upper = onText('upper', [], (rendering, text) => upperCase(rendering, text));
const lower = onText('lower', [], (rendering, text) => lowerCase(rendering, text));
const title = onText('title', [], (rendering, text) => titled(rendering, text));
const capitalize = onText('capitalize', [], (rendering, text) => capitalized(rendering, text));
const splitlines = onText('splitlines', [], (rendering, text) => linesOf(rendering, text));

const stripping = (name: string, sides: Sides): Operation =>
  onText(name, ['chars'], (rendering, text, [chars]) =>
    strip(rendering, text, {
      chars: chars === undefined ? null : textArgument(rendering, name, chars),
      sides,
    }),
  );

const splitting: Operation = onText('split', ['sep', 'maxsplit'], (rendering, text, [sep, maxsplit]) => {
  const separator = sep === undefined || sep === null ? null : textArgument(rendering, 'split', sep);
  if (separator === '') return fail(rendering, 'type', '`.split()` needs a separator that is not empty');
  return split(rendering, text, { separator, most: wholeArgument(rendering, 'split', maxsplit ?? -1) });
});

const join: Operation = onText('join', ['items'], (rendering, text, [items]) => {
  if (!Array.isArray(items))
    return fail(rendering, 'type', `\`.join()\` needs a list, and this is ${kindOf(items)}`);
  let chars = 0;
  for (const item of items) {
    spend(rendering, 1);
    if (typeof item !== 'string') {
      return fail(
        rendering,
        'type',
        `\`.join()\` joins text, and the list has ${kindOf(item)}`,
        'use the filter `join`',
      );
    }
    chars += item.length + text.length;
  }
  charge(rendering, chars);
  return items.join(text);
});

const replace: Operation = onText(
  'replace',
  ['old', 'new', 'count'],
  (rendering, text, [old, fresh, count]) =>
    replaced(rendering, text, {
      old: textArgument(rendering, 'replace', old),
      fresh: textArgument(rendering, 'replace', fresh),
      most: count === undefined ? null : wholeArgument(rendering, 'replace', count),
    }),
);

/** `.startswith(x)` and `.endswith(x)`; a list of texts asks whether any of them fits. */
const edge = (name: string, fits: (text: string, part: string) => boolean): Operation =>
  onText(name, ['prefix'], (rendering, text, [part]) => {
    const parts: readonly unknown[] = Array.isArray(part) ? part : [part];
    return parts.some((each) => {
      const wanted = textArgument(rendering, name, each);
      spendOnText(rendering, wanted.length);
      return fits(text, wanted);
    });
  });

const items = onMap('items', [], (rendering, map) => pairsOf(rendering, map));
const keys = onMap('keys', [], (rendering, map) => keysOf(rendering, map));
const values = onMap('values', [], (rendering, map) => keysOf(rendering, map).map((key) => map[key]));
const get: Operation = {
  ...onMap('get', ['key', 'default'], (_rendering, map, [key, fallback]) => {
    const value = isKey(key) && Object.hasOwn(map, String(key)) ? map[String(key)] : undefined;
    return value === undefined ? (fallback ?? null) : value;
  }),
  required: 1,
};

const count: Operation = {
  params: ['value'],
  required: 1,
  run: (rendering, subject, [value]) => {
    if (typeof subject === 'string')
      return countOf(rendering, subject, textArgument(rendering, 'count', value));
    if (!Array.isArray(subject)) return noMethod(rendering, 'count', subject);
    return subject.filter((item) => isEqual(rendering, item, value)).length;
  },
};

const index: Operation = {
  params: ['value'],
  required: 1,
  run: (rendering, subject, [value]) => {
    const at =
      typeof subject === 'string'
        ? textIndex(rendering, subject, value)
        : listIndex(rendering, subject, value);
    return at === -1 ? fail(rendering, 'type', '`.index()` did not find the value') : at;
  },
};

const cycle: Operation = {
  params: [],
  takesAny: true,
  run: (rendering, subject, args) => {
    const held = subject instanceof Opaque ? subject.held : null;
    if (held?.kind !== 'loop') return noMethod(rendering, 'cycle', subject);
    if (args.length === 0) return fail(rendering, 'type', '`loop.cycle()` needs at least one value');
    return args[held.index0 % args.length];
  },
};

/** Everything that can be called as `value.name()`. */
export const METHODS: Operations = new Map(
  Object.entries({
    upper,
    lower,
    title,
    capitalize,
    splitlines,
    strip: stripping('strip', 'both'),
    lstrip: stripping('lstrip', 'start'),
    rstrip: stripping('rstrip', 'end'),
    split: splitting,
    join: { ...join, required: 1 },
    replace: { ...replace, required: 2 },
    startswith: { ...edge('startswith', (text, part) => text.startsWith(part)), required: 1 },
    endswith: { ...edge('endswith', (text, part) => text.endsWith(part)), required: 1 },
    items,
    keys,
    values,
    get,
    count,
    index,
    cycle,
  }),
);

function onText(
  name: string,
  params: readonly string[],
  run: (rendering: Rendering, text: string, args: Args) => unknown,
): Operation {
  return {
    params,
    run: (rendering, subject, args) =>
      typeof subject === 'string' ? run(rendering, subject, args) : noMethod(rendering, name, subject),
  };
}

function onMap(
  name: string,
  params: readonly string[],
  run: (rendering: Rendering, map: DataMap, args: Args) => unknown,
): Operation {
  return {
    params,
    run: (rendering, subject, args) =>
      isMap(subject) ? run(rendering, subject, args) : noMethod(rendering, name, subject),
  };
}

function textIndex(rendering: Rendering, text: string, part: unknown): number {
  const wanted = textArgument(rendering, 'index', part);
  spendOnSearch(rendering, text.length, wanted.length);
  const at = text.indexOf(wanted);
  // Positions count characters, not UTF-16 units.
  return at === -1 ? -1 : Array.from(text.slice(0, at)).length;
}

function listIndex(rendering: Rendering, subject: unknown, value: unknown): number {
  if (!Array.isArray(subject)) return noMethod(rendering, 'index', subject);
  return subject.findIndex((item) => isEqual(rendering, item, value));
}

function textArgument(rendering: Rendering, name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  return fail(rendering, 'type', `\`.${name}()\` takes text, and this is ${kindOf(value)}`);
}

function wholeArgument(rendering: Rendering, name: string, value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value)) return value;
  return fail(rendering, 'type', `\`.${name}()\` takes a whole number here, and this is ${kindOf(value)}`);
}

function noMethod(rendering: Rendering, name: string, subject: unknown): never {
  if (subject instanceof Opaque) return refuse(rendering, subject);
  return fail(rendering, 'type', `${kindOf(subject)} has no method \`.${name}()\``);
}
