/**
 * JSON Schemas that users write (inputs, forms, outputs), compiled in one place. The compiler is slow to import, so it is
 * loaded with the first schema; compiled schemas are kept by their text, because a workflow uses the same few again and again.
 */
import type { Ajv2020 } from 'ajv/dist/2020.js';

/** Checks a value: null when it fits, else what is wrong with it. */
export type JsonSchemaCheck = (value: unknown) => string | null;

/** Compiled schemas kept in memory; the one used longest ago goes first. */
const COMPILED_MAX = 200;
const compiled = new Map<string, JsonSchemaCheck>();

/** Compiles a JSON Schema (draft 2020-12). Rejects, with the reason as message, when it is not a valid one. */
export async function compileJsonSchema(schema: unknown): Promise<JsonSchemaCheck> {
  const key = JSON.stringify(schema) ?? 'undefined';
  const known = compiled.get(key);
  if (known !== undefined) {
    compiled.delete(key);
    compiled.set(key, known);
    return known;
  }
  const check = plainCheck(schema) ?? (await compile(schema));
  compiled.set(key, check);
  for (const oldest of compiled.keys()) {
    if (compiled.size <= COMPILED_MAX) break;
    compiled.delete(oldest);
  }
  return check;
}

const PLAIN_KEYS: ReadonlySet<string> = new Set(['type', 'default', 'title', 'description']);

const TYPE_CHECKS: Readonly<Record<string, (value: unknown) => boolean>> = Object.freeze({
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number' && Number.isFinite(value),
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  array: (value) => Array.isArray(value),
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  null: (value) => value === null,
});

/** The check of a schema that says no more than a type, as most inputs do; null for any other. The compiler takes longer to load than a small run to run. */
export function plainCheck(schema: unknown): JsonSchemaCheck | null {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return null;
  const { type, title = '', description = '' } = schema as Readonly<Record<string, unknown>>;
  if (!Object.keys(schema).every((key) => PLAIN_KEYS.has(key))) return null;
  if (typeof title !== 'string' || typeof description !== 'string') return null;
  const fits = typeof type === 'string' && Object.hasOwn(TYPE_CHECKS, type) ? TYPE_CHECKS[type] : undefined;
  return fits === undefined ? null : (value) => (fits(value) ? null : `value must be ${String(type)}`);
}

/** A compiler with Relay's settings. It remembers schemas it was given: call `removeSchema()` after each, as two may share an `$id`. */
export async function createSchemaCompiler(): Promise<Ajv2020> {
  const [{ Ajv2020 }, formats] = await Promise.all([import('ajv/dist/2020.js'), import('ajv-formats')]);
  const lenient = { strictTypes: false, strictTuples: false, strictRequired: false } as const;
  const ajv = new Ajv2020({ strict: true, ...lenient, addUsedSchema: false, logger: false });
  formats.default.default(ajv);
  return ajv;
}

let compiler: Promise<Ajv2020> | null = null;

async function compile(schema: unknown): Promise<JsonSchemaCheck> {
  compiler ??= createSchemaCompiler();
  const ajv = await compiler;
  try {
    const validate = ajv.compile(schema as object);
    return (value) => (validate(value) ? null : ajv.errorsText(validate.errors, { dataVar: 'value' }));
  } finally {
    ajv.removeSchema();
  }
}
