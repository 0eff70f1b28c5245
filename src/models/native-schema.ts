/**
 * A user's JSON Schema → what a provider's structured output accepts, or null when it cannot be said there; then the model is told in
 * words and the answer is found in its text. What is sent may ask for less than the user's schema (a `pattern` is left out) or close
 * an object that was open; the answer is always checked against the user's own schema afterwards.
 */

type Schema = Readonly<Record<string, unknown>>;

/** What a provider takes. */
export interface SchemaDialect {
  /** Keywords that are passed on beside the ones every provider takes. */
  readonly keeps: ReadonlySet<string>;
  /** Objects must be closed (`additionalProperties: false`), and the answer an object. */
  readonly isClosed: boolean;
  /** Every property must be required. */
  readonly isTotal: boolean;
}

/** Strict structured outputs of OpenAI. */
export const OPENAI_SCHEMAS: SchemaDialect = Object.freeze({
  keeps: new Set(['$ref', 'pattern', 'format', 'minimum', 'maximum', 'multipleOf', 'minItems', 'maxItems']),
  isClosed: true,
  isTotal: true,
});

/** Structured outputs of Anthropic. */
export const ANTHROPIC_SCHEMAS: SchemaDialect = Object.freeze({
  keeps: new Set<string>(),
  isClosed: true,
  isTotal: false,
});

/** `responseJsonSchema` of Google. */
export const GOOGLE_SCHEMAS: SchemaDialect = Object.freeze({
  keeps: new Set(['$ref', 'format', 'minimum', 'maximum', 'minItems', 'maxItems', 'oneOf', 'prefixItems']),
  isClosed: false,
  isTotal: false,
});

const PLAIN = new Set(['type', 'enum', 'const', 'title', 'description', 'required']);
const MAPS = new Set(['properties', '$defs', 'definitions']);
/** Keywords without which the rest would mean something else. Those not named anywhere here only narrow, and are left out. */
const ESSENTIAL = new Set(
  [
    'allOf',
    'oneOf',
    'not',
    'if',
    'then',
    'else',
    '$ref',
    '$dynamicRef',
    '$recursiveRef',
    'prefixItems',
  ].concat([
    'patternProperties',
    'propertyNames',
    'dependentSchemas',
    'dependencies',
    'unevaluatedProperties',
  ]),
);
const DEPTH_MAX = 20;

/** The schema to send, or null. */
export function toNativeSchema(schema: unknown, dialect: SchemaDialect): Schema | null {
  if (!isSchema(schema)) return null;
  if (dialect.isClosed && schema.type !== 'object') return null;
  return translate(schema, dialect, 0);
}

function translate(schema: Schema, dialect: SchemaDialect, depth: number): Schema | null {
  if (depth > DEPTH_MAX) return null;
  const sent: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    const part = translateKey([key, value], dialect, depth + 1);
    if (part === null) return null;
    if (part !== undefined) sent[key] = part;
  }
  const isObject = schema.type === 'object' || schema.properties !== undefined;
  return isObject ? translateObject(sent, schema, dialect) : sent;
}

/** The value to send under a key; undefined leaves it out, null gives up. */
function translateKey(
  [key, value]: readonly [string, unknown],
  dialect: SchemaDialect,
  depth: number,
): unknown {
  if (PLAIN.has(key)) return value;
  if (MAPS.has(key)) return isSchema(value) ? translateMap(value, dialect, depth) : null;
  if (key === 'items') return isSchema(value) ? translate(value, dialect, depth) : null;
  if (key === 'anyOf' || (dialect.keeps.has(key) && (key === 'oneOf' || key === 'prefixItems')))
    return translateList(value, dialect, depth);
  if (key === '$ref' && dialect.keeps.has(key)) return String(value).startsWith('#') ? value : null;
  if (ESSENTIAL.has(key)) return null;
  return dialect.keeps.has(key) ? value : undefined;
}

function translateMap(map: Schema, dialect: SchemaDialect, depth: number): Schema | null {
  const sent: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(map)) {
    const part = isSchema(value) ? translate(value, dialect, depth) : null;
    if (part === null) return null;
    sent[name] = part;
  }
  return sent;
}

function translateList(list: unknown, dialect: SchemaDialect, depth: number): readonly Schema[] | null {
  if (!Array.isArray(list)) return null;
  const sent = list.map((item: unknown) => (isSchema(item) ? translate(item, dialect, depth) : null));
  return sent.every((item) => item !== null) ? sent : null;
}

/** An object that may have other properties is closed where that is wanted; one that must be able to have them cannot be said. */
function translateObject(
  sent: Record<string, unknown>,
  schema: Schema,
  dialect: SchemaDialect,
): Schema | null {
  const { properties, required, additionalProperties } = schema;
  if (!dialect.isClosed) {
    return typeof additionalProperties === 'boolean' ? { ...sent, additionalProperties } : sent;
  }
  const isOpen = additionalProperties !== undefined && additionalProperties !== false;
  if (isOpen || !isSchema(properties)) return null;
  const names: readonly unknown[] = Array.isArray(required) ? required : [];
  // A required property without a schema of its own could not stand in a closed object.
  if (!names.every((name) => Object.hasOwn(properties, String(name)))) return null;
  if (dialect.isTotal && !Object.keys(properties).every((name) => names.includes(name))) return null;
  return { ...sent, additionalProperties: false };
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
