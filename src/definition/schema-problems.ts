/** Turns what a schema rejects into problems that people can act on: plain words, known keys, the nearest name. */
import type { z } from 'zod';
import { DURATION_PATTERN } from '../base/duration.ts';
import { didYouMean } from '../base/suggest.ts';
import { type Finding, formatPath, type Path, type ProblemCode } from './problem.ts';

type Issue = z.core.$ZodIssue;

/** What a schema makes of a value: its data, or findings for everything it rejects. */
export type Shape<Data> =
  | { readonly data: Data; readonly findings: null }
  | { readonly data: null; readonly findings: readonly Finding[] };

/** Where a checked value stands in the file, and what messages call it. */
export interface Whole {
  readonly path: Path;
  readonly name: string;
}

const THE_FILE: Whole = { path: [], name: 'the file' };

/** Checks `value`. Messages name places inside it, paths start at the top of the file. */
export function checkShape<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  whole: Whole = THE_FILE,
): Shape<z.output<Schema>> {
  const result = schema.safeParse(value);
  if (result.success) return { data: result.data, findings: null };
  const findings = result.error.issues.flatMap((issue) => toFindings({ issue, schema, value, whole }));
  return { data: null, findings };
}

interface IssueContext {
  readonly issue: Issue;
  readonly schema: z.ZodType;
  readonly value: unknown;
  readonly whole: Whole;
}

/** An issue with the words that messages need. */
interface View {
  readonly path: Path;
  /** The place as a person would write it. */
  readonly name: string;
  /** The place of what holds it. */
  readonly holder: string;
  readonly found: unknown;
  readonly isDuration: boolean;
}

function toFindings(context: IssueContext): readonly Finding[] {
  const { issue, schema, value, whole } = context;
  const local = issue.path as Path;
  const path = [...whole.path, ...local];
  const name = nameOf(local, whole);
  const view: View = {
    path,
    name,
    holder: nameOf(local.slice(0, -1), whole),
    found: valueAt(value, local),
    isDuration: schemasAt(schema, local).some(isDurationSchema),
  };
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = knownKeys(schema, local);
      return issue.keys.map((key) => unknownKey(key, known, view));
    }
    case 'invalid_union':
      return unionFindings(context, issue, view);
    case 'invalid_type':
      return [view.found === undefined ? missingKey(view) : wrongType(issue.expected, view)];
    case 'invalid_value': {
      if (view.found === undefined) return [missingKey(view)];
      const allowed = issue.values.map(String);
      const message = `${name} must be ${listOf(allowed)}, not ${describe(view.found)}`;
      return [{ code: 'wrong_value', message, path, hint: didYouMean(String(view.found), allowed) }];
    }
    default:
      return [otherFinding(issue, view)];
  }
}

function nameOf(local: Path, whole: Whole): string {
  return local.length === 0 ? whole.name : `\`${formatPath(local)}\``;
}

function missingKey({ path, holder }: View): Finding {
  const examples: Record<string, string> = {
    name: 'start the file with `name: my-workflow`',
    tasks: 'add `tasks:` with one entry per step',
  };
  const key = String(path.at(-1) ?? '');
  const hint = path.length === 1 ? examples[key] : undefined;
  return { code: 'missing_key', message: `\`${key}\` is missing in ${holder}`, path, hint };
}

const DURATION_HINT = 'write a number and a unit: 500ms, 30s, 5m, 2h or 1d';

function wrongType(expected: string, { path, name, found, isDuration }: View): Finding {
  const message = `${name} must be ${isDuration ? 'a duration' : inWords(expected)}, not ${describe(found)}`;
  const isTaskList = path.length === 1 && path[0] === 'tasks' && Array.isArray(found);
  const hint = isTaskList
    ? 'write each task under its id: `tasks: { my-task: { uses: … } }`'
    : isDuration
      ? DURATION_HINT
      : typeHint(expected, found);
  return { code: 'wrong_type', message, path, hint };
}

function typeHint(expected: string, found: unknown): string | undefined {
  if (found === null) return 'give it a value, or remove the key';
  const isScalar = typeof found === 'number' || typeof found === 'boolean';
  if (expected === 'string' && isScalar) return 'put quotes around it';
  const isQuoted = typeof found === 'string' && found !== '';
  if ((expected === 'int' || expected === 'number') && isQuoted && !Number.isNaN(Number(found))) {
    return 'remove the quotes around it';
  }
  return expected === 'boolean' && (found === 'true' || found === 'false')
    ? 'remove the quotes around it'
    : undefined;
}

function otherFinding(issue: Issue, { path, name, found, isDuration }: View): Finding {
  if (isDuration && issue.code === 'invalid_format') {
    const message = `${name} is not a duration: ${describe(found)}`;
    return { code: 'bad_duration', message, path, hint: DURATION_HINT };
  }
  const problem = issue.code === 'custom' ? (issue.params?.problem as ProblemCode | undefined) : undefined;
  const text = plainMessage(issue);
  const shown = typeof found === 'object' || found === undefined ? '' : `, not ${describe(found)}`;
  if (issue.code === 'custom') {
    return {
      code: problem ?? 'wrong_value',
      message: problem === undefined ? text : `${name} ${text}`,
      path,
    };
  }
  return { code: 'wrong_value', message: `${name} ${text}${shown}`, path };
}

function unknownKey(key: string, known: readonly string[], { name, path }: View): Finding {
  const hint = didYouMean(key, known) ?? (known.length > 0 ? `known keys: ${known.join(', ')}` : undefined);
  const message = `unknown key \`${key}\` in ${name}`;
  return { code: 'unknown_key', message, path: [...path, key], atKey: true, hint };
}

/** A union fails as a whole; what counts is the branch of the value's own type, or else the types that it takes. */
function unionFindings(
  context: IssueContext,
  issue: Extract<Issue, { code: 'invalid_union' }>,
  view: View,
): readonly Finding[] {
  const isOfOtherType = (inner: Issue): boolean => inner.code === 'invalid_type' && inner.path.length === 0;
  const fitting = issue.errors.find((branch) => !branch.some(isOfOtherType));
  if (fitting !== undefined) {
    return fitting.flatMap((inner) =>
      toFindings({ ...context, issue: { ...inner, path: [...issue.path, ...inner.path] } as Issue }),
    );
  }
  if (view.found === undefined) return [missingKey(view)];
  if (issue.errors.length === 0) return [wrongKind(context, view)];
  const expected = issue.errors.flatMap((branch) =>
    branch.flatMap((inner) => (inner.code === 'invalid_type' ? [inner.expected] : [])),
  );
  const message = `${view.name} must be ${expected.map(inWords).join(' or ')}, not ${describe(view.found)}`;
  const hint = typeHint(expected[0] ?? '', view.found);
  return [{ code: 'wrong_type', message, path: view.path, hint }];
}

/** The key that tells the branches of a union apart names none of them. */
function wrongKind({ schema, issue }: IssueContext, view: View): Finding {
  const allowed = schemasAt(schema, issue.path as Path).flatMap((each) => {
    const def = defOf(each);
    return def.type === 'literal' ? def.values.map(String) : [];
  });
  const message = `${view.name} must be ${listOf(allowed)}, not ${describe(view.found)}`;
  const hint = didYouMean(String(view.found), allowed);
  return { code: 'wrong_value', message, path: view.path, hint };
}

/** Keys that the object at `path` may have. */
function knownKeys(schema: z.ZodType, path: Path): readonly string[] {
  return [...new Set(schemasAt(schema, path).flatMap((each) => Object.keys(shapeOf(each))))];
}

function isDurationSchema(schema: z.core.$ZodType): boolean {
  const checks = defOf(schema).checks ?? [];
  return checks.some((check) => {
    const { pattern } = check._zod.def as { pattern?: RegExp };
    return pattern?.source === DURATION_PATTERN;
  });
}

/** The schemas that a value at `path` can meet. */
function schemasAt(schema: z.ZodType, path: Path): readonly z.core.$ZodType[] {
  let schemas = unwrap(schema);
  for (const part of path) schemas = schemas.flatMap((each) => childrenOf(each, part)).flatMap(unwrap);
  return schemas;
}

/** Through optional, default, transformation and union to what they hold. */
function unwrap(schema: z.core.$ZodType): readonly z.core.$ZodType[] {
  const def = defOf(schema);
  if (def.type === 'union') return def.options.flatMap(unwrap);
  if ('innerType' in def) return unwrap(def.innerType);
  return def.type === 'pipe' ? unwrap(def.in) : [schema];
}

function childrenOf(schema: z.core.$ZodType, part: string | number): readonly z.core.$ZodType[] {
  const def = defOf(schema);
  if (def.type === 'array') return [def.element];
  if (def.type === 'record') return [def.valueType];
  const child = shapeOf(schema)[part];
  return child === undefined ? [] : [child];
}

function shapeOf(schema: z.core.$ZodType): Readonly<Record<string, z.core.$ZodType>> {
  const def = defOf(schema);
  return def.type === 'object' ? def.shape : {};
}

function defOf(schema: z.core.$ZodType): z.core.$ZodTypes['_zod']['def'] {
  return (schema as z.core.$ZodTypes)._zod.def;
}

/** The value a path leads to, or undefined. */
export function valueAt(value: unknown, path: Path): unknown {
  let current = value;
  for (const part of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, part)) return undefined;
    current = (current as Record<string | number, unknown>)[part];
  }
  return current;
}

/** A value in words, short enough for a message. */
function describe(value: unknown): string {
  if (value === null) return 'nothing (null)';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  const text = JSON.stringify(value) ?? String(value);
  const shown = text.length > 40 ? `${text.slice(0, 39)}…` : text;
  return typeof value === 'string' ? `the text ${shown}` : shown;
}

function inWords(expected: string): string {
  const words: Readonly<Record<string, string>> = {
    string: 'text',
    object: 'a mapping',
    record: 'a mapping',
    array: 'a list',
    int: 'a whole number',
    number: 'a number',
    boolean: 'true or false',
  };
  return words[expected] ?? expected;
}

function listOf(values: readonly string[]): string {
  const quoted = values.map((value) => `\`${value}\``);
  return quoted.length === 1 ? (quoted[0] ?? '') : `one of ${quoted.join(', ')}`;
}

function plainMessage(issue: Issue): string {
  if (issue.code === 'too_small' || issue.code === 'too_big') {
    const bound = Number(issue.code === 'too_small' ? issue.minimum : issue.maximum);
    const side = issue.code === 'too_small' ? 'at least' : 'at most';
    const edge = issue.inclusive === false ? (issue.code === 'too_small' ? 'more than' : 'less than') : side;
    const units: Readonly<Record<string, string>> = { string: 'character', array: 'item' };
    const unit = units[issue.origin];
    if (unit === undefined) return `must be ${edge} ${bound}`;
    return `must have ${edge} ${bound} ${unit}${bound === 1 ? '' : 's'}`;
  }
  if (issue.code === 'invalid_format' && issue.format === 'datetime')
    return 'must be a time in ISO 8601, for example 2030-01-31T12:00:00Z';
  return issue.message.replace(/^Invalid (input|string): /, '');
}
