/** JSON Schemas that users write (inputs, forms, outputs): valid in themselves, and their defaults fit them. */
import { createSchemaCompiler, plainCheck } from '../base/json-schema.ts';
import { didYouMean } from '../base/suggest.ts';
import { type Finding, formatPath, type Path, type Problems } from './problem.ts';
import { valueAt } from './schema-problems.ts';
import type { MergedTask } from './workflow.ts';
import type { WorkflowInput } from './workflow-schema.ts';

/** Says what is wrong with one schema, or null. Paths start at the schema. */
type Judge = (schema: unknown) => Omit<Finding, 'code'> | null;

/** Reports every schema that is not valid and every default that its schema refuses. */
export async function checkJsonSchemas(
  input: WorkflowInput,
  tasks: ReadonlyMap<string, MergedTask>,
  problems: Problems,
): Promise<void> {
  const sites = collectSchemas(input, tasks).filter(({ schema }) => !isPlainlyFine(schema));
  if (sites.length === 0) return;
  const judge = await loadJudge();
  const judged = new Map<string, ReturnType<Judge>>();
  for (const { path, schema } of sites) {
    const text = JSON.stringify(schema);
    if (!judged.has(text)) judged.set(text, judge(schema));
    const found = judged.get(text) ?? null;
    if (found !== null) problems.error({ ...found, code: 'bad_json_schema', path: [...path, ...found.path] });
  }
}

/** Needs no compiler to be found in order: a type and nothing more, with a default of that type. */
function isPlainlyFine(schema: unknown): boolean {
  const check = plainCheck(schema);
  const preset = (schema as { readonly default?: unknown }).default;
  return check !== null && (preset === undefined || check(preset) === null);
}

interface SchemaSite {
  readonly path: Path;
  readonly schema: unknown;
}

function collectSchemas(input: WorkflowInput, tasks: ReadonlyMap<string, MergedTask>): readonly SchemaSite[] {
  const sites: SchemaSite[] = Object.entries(input.inputs ?? {}).map(([name, schema]) => ({
    path: ['inputs', name],
    schema,
  }));
  for (const [id, { gate, output, uses, with: config }] of tasks) {
    const at: Path = ['tasks', id];
    if (gate?.form !== undefined) sites.push({ path: [...at, 'gate', 'form'], schema: gate.form });
    if (output?.schema !== undefined)
      sites.push({ path: [...at, 'output', 'schema'], schema: output.schema });
    const form = uses === 'approval' ? config?.form : undefined;
    const isSchema = typeof form === 'object' && form !== null && !Array.isArray(form);
    if (isSchema) sites.push({ path: [...at, 'with', 'form'], schema: form });
  }
  return sites;
}

/** Loaded only when a file has a schema, because the compiler is slow to import. */
async function loadJudge(): Promise<Judge> {
  const ajv = await createSchemaCompiler();
  return (schema) => {
    if (ajv.validateSchema(schema as object) !== true) return invalidPart(schema, ajv.errors?.[0]);
    try {
      const validate = ajv.compile(schema as object);
      if (typeof schema !== 'object' || schema === null || !('default' in schema)) return null;
      if (validate(schema.default)) return null;
      const refusal = ajv.errorsText(validate.errors, { dataVar: 'it' });
      return { message: `the default does not fit its own schema: ${refusal}`, path: ['default'] };
    } catch (error) {
      const reason = (error instanceof Error ? error.message : String(error)).replace(/^strict mode: /, '');
      const unknown = /^unknown keyword: "(.*)"$/.exec(reason)?.[1];
      const hint = unknown === undefined ? undefined : didYouMean(unknown, Object.keys(ajv.RULES.keywords));
      return { message: `not a valid JSON Schema: ${reason}`, path: [], hint };
    } finally {
      // Two schemas of one file may have the same $id; each is judged alone.
      ajv.removeSchema();
    }
  };
}

interface SchemaError {
  readonly instancePath: string;
  readonly message?: string;
  readonly params: { readonly allowedValues?: readonly unknown[] };
}

/** Points at the part of a schema that the language of schemas does not know. */
function invalidPart(schema: unknown, error: SchemaError | undefined): ReturnType<Judge> {
  const parts = (error?.instancePath ?? '').split('/').slice(1).map(unescapePointer);
  const path: Path = parts.map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  const allowed = (error?.params.allowedValues ?? []).map(String);
  const rule = allowed.length > 0 ? `must be one of ${allowed.join(', ')}` : error?.message;
  const subject = path.length === 0 ? 'it' : `\`${formatPath(path)}\``;
  const hint = didYouMean(String(valueAt(schema, path)), allowed);
  return { message: `not a valid JSON Schema: ${subject} ${rule}`, path, hint };
}

function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
