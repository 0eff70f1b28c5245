/** The form of a question: which fields it has, what a typed text means, and what can be filled in without asking. */
import { compileJsonSchema } from '../../base/json-schema.ts';

/** A field of a form, or the whole answer when the form is not an object. */
export interface Field {
  readonly name: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly isRequired: boolean;
}

/** The fields of a JSON Schema in their order; null when the answer is one value. */
export function fieldsOf(schema: unknown): readonly Field[] | null {
  if (!isObject(schema)) return [];
  if (!isObject(schema.properties)) return schema.type === undefined || schema.type === 'object' ? [] : null;
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties).map(([name, field]) => ({
    name,
    schema: isObject(field) ? field : {},
    isRequired: required.includes(name),
  }));
}

/** The answer that a form's defaults give, or null when something must be asked. */
export function defaultAnswer(schema: unknown): { readonly answer: unknown } | null {
  const fields = fieldsOf(schema);
  if (fields === null) {
    const whole = isObject(schema) ? schema.default : undefined;
    return whole === undefined ? null : { answer: whole };
  }
  if (fields.some((field) => field.isRequired && field.schema.default === undefined)) return null;
  if (fields.length === 0) return { answer: undefined };
  const filled = fields.filter((field) => field.schema.default !== undefined);
  return { answer: Object.fromEntries(filled.map((field) => [field.name, field.schema.default])) };
}

/** What a typed text means for a field: its value, or what is wrong with it. An empty text takes the default. */
export async function readField(
  field: Field,
  text: string,
): Promise<{ readonly value: unknown } | { readonly problem: string }> {
  const trimmed = text.trim();
  if (trimmed === '') {
    if (field.schema.default !== undefined) return { value: field.schema.default };
    if (!field.isRequired) return { value: undefined };
    return { problem: 'an answer is needed here' };
  }
  const value = readTyped(trimmed, field.schema);
  if (value === undefined) return { problem: `this must be ${typeText(field.schema)}` };
  const refusal = (await compileJsonSchema(field.schema))(value);
  return refusal === null ? { value } : { problem: refusal.replace(/^value\/?/, '').trim() };
}

/** What may be typed, in a few words. */
export function typeText(schema: Readonly<Record<string, unknown>>): string {
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => String(value)).join(' or ');
  if (schema.type === 'boolean') return 'yes or no';
  if (schema.type === 'array') {
    const items = isObject(schema.items) ? schema.items : {};
    const of = Array.isArray(items.enum) ? ` of ${items.enum.join(', ')}` : '';
    return `a list${of}, with commas between`;
  }
  if (schema.type === 'integer') return 'a whole number';
  if (schema.type === 'number') return 'a number';
  return schema.type === 'object' ? 'a JSON object' : 'text';
}

/** The typed text as a value of the schema's type; undefined when it is none. */
export function readTyped(text: string, schema: Readonly<Record<string, unknown>>): unknown {
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  if (schema.type === 'string') return text;
  if (schema.type === 'boolean' && /^(y|yes)$/i.test(text)) return true;
  if (schema.type === 'boolean' && /^(n|no)$/i.test(text)) return false;
  const parsed = parseJson(text);
  if (schema.type === 'array' && !Array.isArray(parsed)) {
    const items = isObject(schema.items) ? schema.items : {};
    return text.split(',').map((item) => readTyped(item.trim(), items) ?? item.trim());
  }
  if (parsed !== undefined && typeof parsed !== 'string') return parsed;
  return schema.type === undefined || types.includes('string') ? text : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
