/** Values for a JSON Schema: some that fit, some that nearly fit, some that nobody should send. */
import { fc } from './property.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Things that have brought down parsers, databases and templates before. */
const HOSTILE: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1e308,
  9_007_199_254_740_992,
  '',
  ' ',
  '0',
  'null',
  '\u0000',
  '\ud800',
  '../../etc/passwd',
  "'; drop table runs; --",
  '{{ 1/0 }}',
  '{% for x in range(10**9) %}{% endfor %}',
  '%00',
  'x'.repeat(5_000),
  '𝕊'.repeat(300),
  [],
  [[]],
  {},
  { constructor: { prototype: { polluted: true } } },
  { $ref: '#' },
  Array.from({ length: 2_000 }, (_, index) => index),
];

/** Anything that JSON can hold, and the hostile list. */
export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(...HOSTILE),
  fc.jsonValue({ maxDepth: 3 }),
);

/** Values that fit the schema, as far as it is made of what zod writes. */
export function fitting(schema: Schema): fc.Arbitrary<unknown> {
  const { type, enum: list, const: only, anyOf, oneOf } = schema;
  if (only !== undefined) return fc.constant(only);
  if (Array.isArray(list)) return fc.constantFrom(...(list as unknown[]));
  const choices = (anyOf ?? oneOf) as readonly Schema[] | undefined;
  if (choices !== undefined) return fc.oneof(...choices.map(fitting));
  switch (type) {
    case 'string':
      return text(schema);
    case 'integer':
    case 'number': {
      const { minimum = -1_000, maximum = 1_000_000 } = schema as { minimum?: number; maximum?: number };
      const max = Math.min(maximum, Math.max(minimum, 0) + 1_000);
      return fc.integer({ min: Math.max(minimum, -1_000), max });
    }
    case 'boolean':
      return fc.boolean();
    case 'array': {
      const { items = {}, minItems = 0 } = schema as { items?: Schema; minItems?: number };
      return fc.array(fitting(items), { minLength: minItems, maxLength: minItems + 2 });
    }
    case 'object':
      return object(schema);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function text({ pattern, minLength = 0, maxLength = 40 }: Schema): fc.Arbitrary<string> {
  if (typeof pattern === 'string') return fc.stringMatching(new RegExp(pattern));
  return fc.string({ minLength: minLength as number, maxLength: Math.min(maxLength as number, 40) });
}

function object({ properties = {}, required = [], additionalProperties }: Schema): fc.Arbitrary<unknown> {
  const shape = Object.entries(properties as Readonly<Record<string, Schema>>).map(
    ([name, schema]) => [name, fitting(schema)] as const,
  );
  const known = fc.record(Object.fromEntries(shape), {
    requiredKeys: required as string[],
    noNullPrototype: true,
  });
  if (typeof additionalProperties !== 'object') return known;
  const rest = fc.dictionary(fc.string({ maxLength: 8 }), fitting(additionalProperties as Schema), {
    maxKeys: 3,
    noNullPrototype: true,
  });
  return fc.tuple(known, rest).map(([own, others]) => ({ ...others, ...(own as object) }));
}

/** A fitting object with one of its fields replaced, removed, or one too many. */
export function mutated(schema: Schema): fc.Arbitrary<unknown> {
  const names = Object.keys((schema.properties as object | undefined) ?? {});
  return fc
    .tuple(fitting(schema), hostileValue, fc.constantFrom('replace', 'remove', 'add'), fc.nat())
    .map(([value, hostile, how, pick]) => {
      if (typeof value !== 'object' || value === null) return hostile;
      const copy: Record<string, unknown> = { ...value };
      const name = names[pick % Math.max(1, names.length)] ?? 'x';
      if (how === 'replace') copy[name] = hostile;
      else if (how === 'remove') delete copy[name];
      else copy.unheard_of = hostile;
      return copy;
    });
}
