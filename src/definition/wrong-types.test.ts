/** Wrong types everywhere: for each key of the format, every JSON type that it does not take is an error with its path. */
import { describe, expect, it } from 'vitest';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';
import { workflowJsonSchema } from './json-schema.ts';
import { checkWorkflowText } from './load.ts';
import { formatPath, type Path } from './problem.ts';

type JsonSchema = Readonly<Record<string, unknown>>;

const VALUES = {
  string: 'text',
  number: 1.5,
  boolean: true,
  null: null,
  array: [1],
  object: { a: 1 },
} as const;
type JsonType = keyof typeof VALUES;

const task = { uses: 'transform', with: { value: 1 }, for_each: [1] };
const base = {
  name: 'a',
  description: 'x',
  inputs: { topic: { type: 'string' } },
  outputs: { o: 1 },
  budget: { tokens: 1 },
  labels: { a: 'b' },
  secrets: ['A'],
  env: ['B'],
  handlers: ['train'],
  defaults: { limits: ['x'], retry: {}, output: {}, worker: { labels: { a: 'b' }, resources: { cpu: 1 } } },
  tasks: {
    one: {
      ...task,
      needs: ['two'],
      gate: { message: 'go?' },
      output: {},
      retry: {},
      worker: { labels: { a: 'b' }, resources: { cpu: 1 } },
      limits: ['x'],
    },
    two: { ...task },
  },
};

/** Every place of the format, as a path in `base`, with the types it takes. */
function* places(schema: JsonSchema, path: Path): Generator<{ path: Path; takes: ReadonlySet<JsonType> }> {
  if (path.length > 0) yield { path, takes: typesOf(schema) };
  for (const branch of branchesOf(schema)) {
    for (const [key, child] of Object.entries((branch.properties as Record<string, JsonSchema>) ?? {})) {
      yield* places(child, [...path, key]);
    }
    const items = branch.items as JsonSchema | undefined;
    if (items !== undefined && Object.keys(items).length > 0) yield* places(items, [...path, 0]);
    const values = branch.additionalProperties;
    const sample = sampleKey(path);
    if (typeof values === 'object' && values !== null && sample !== null) {
      yield* places(values as JsonSchema, [...path, sample]);
    }
  }
}

function branchesOf(schema: JsonSchema): readonly JsonSchema[] {
  return [schema, ...((schema.anyOf as JsonSchema[] | undefined) ?? [])];
}

function sampleKey(path: Path): string | null {
  const names: Readonly<Record<string, string>> = {
    tasks: 'one',
    inputs: 'topic',
    resources: 'cpu',
    labels: 'a',
  };
  return names[String(path.at(-1))] ?? null;
}

function typesOf(schema: JsonSchema): ReadonlySet<JsonType> {
  const types = branchesOf(schema).flatMap((branch) => (branch.type as JsonType | undefined) ?? []);
  const isAny = types.length === 0 && schema.enum === undefined;
  return new Set(isAny ? (Object.keys(VALUES) as JsonType[]) : types);
}

function withValue(value: unknown, path: Path, item: unknown): unknown {
  const [part, ...rest] = path;
  if (part === undefined) return item;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<
    string | number,
    unknown
  >;
  copy[part] = withValue(copy[part], rest, item);
  return copy;
}

const all = [...places(workflowJsonSchema(BUILT_IN_HANDLERS) as JsonSchema, [])];

// SPEC S1.4
describe('a value of the wrong type', () => {
  it('is looked for in every key of the format', () => {
    expect(all.length).toBeGreaterThan(70);
  });

  it('is a base that is right in itself', async () => {
    const { errors } = await checkWorkflowText(JSON.stringify(base), { handlers: BUILT_IN_HANDLERS });
    expect(errors).toEqual([]);
  });

  for (const { path, takes } of all) {
    const wrong = (Object.keys(VALUES) as JsonType[]).filter((type) => !takes.has(type));
    it(`at ${formatPath(path)} is an error there (${wrong.join(', ') || 'none'})`, async () => {
      for (const type of wrong) {
        const text = JSON.stringify(withValue(base, path, VALUES[type]), null, 1);
        const { errors } = await checkWorkflowText(text, { handlers: BUILT_IN_HANDLERS });
        const at = errors.filter((problem) => problem.path.startsWith(formatPath(path)));
        expect(at.length, `${type} at ${formatPath(path)}`).toBeGreaterThan(0);
        for (const { line, message } of errors) {
          expect(line).toBeGreaterThan(0);
          expect(message).not.toMatch(/undefined|Invalid input|expected \w+, received/);
        }
      }
    });
  }

  it('in the config of any handler is an error there', async () => {
    for (const handler of BUILT_IN_HANDLERS.values()) {
      const shape = 'shape' in handler.config ? (handler.config.shape as Record<string, unknown>) : {};
      for (const key of Object.keys(shape)) {
        for (const value of [{ odd: 1 }, [[1]], null]) {
          const text = JSON.stringify({
            name: 'a',
            tasks: { one: { uses: handler.name, with: { [key]: value } } },
          });
          const { errors } = await checkWorkflowText(text, { handlers: BUILT_IN_HANDLERS });
          for (const { message } of errors) expect(message).not.toMatch(/undefined|Invalid input/);
        }
      }
    }
  });
});
