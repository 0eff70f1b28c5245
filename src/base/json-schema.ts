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
  const check = await compile(schema);
  compiled.set(key, check);
  for (const oldest of compiled.keys()) {
    if (compiled.size <= COMPILED_MAX) break;
    compiled.delete(oldest);
  }
  return check;
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
