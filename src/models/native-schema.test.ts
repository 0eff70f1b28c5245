/** Schemas that a provider can enforce, and those it cannot (SPEC S9.2). */
import { describe, expect, it } from 'vitest';
import { ANTHROPIC_SCHEMAS, GOOGLE_SCHEMAS, OPENAI_SCHEMAS, toNativeSchema } from './native-schema.ts';

const object = (properties: object, rest: object = {}): object => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  ...rest,
});
const text = { type: 'string' };

describe('toNativeSchema', () => {
  it('closes open objects all the way down and leaves out what only narrows', () => {
    const schema = object({
      list: { type: 'array', items: object({ a: { ...text, minLength: 1, default: 'x' } }) },
    });
    expect(toNativeSchema(schema, OPENAI_SCHEMAS)).toEqual(
      object(
        { list: { type: 'array', items: object({ a: text }, { additionalProperties: false }) } },
        { additionalProperties: false },
      ),
    );
  });

  it('gives up on what would mean something else', () => {
    for (const part of [
      { allOf: [text] },
      { not: text },
      { if: text },
      { oneOf: [text] },
      { $ref: 'https://example.org/schema' },
      { type: 'object' },
      object({}, { additionalProperties: true }),
      object({}, { patternProperties: { '^x': text } }),
      { type: 'array', items: true },
      { anyOf: [text, false] },
    ]) {
      expect(toNativeSchema(object({ part }), OPENAI_SCHEMAS), JSON.stringify(part)).toBeNull();
      expect(toNativeSchema(object({ part }), ANTHROPIC_SCHEMAS), JSON.stringify(part)).toBeNull();
    }
  });

  it('an optional property is fine where the provider knows optional ones', () => {
    const schema = { type: 'object', properties: { a: text, b: text }, required: ['a'] };
    expect(toNativeSchema(schema, OPENAI_SCHEMAS)).toBeNull();
    expect(toNativeSchema(schema, ANTHROPIC_SCHEMAS)).toEqual({ ...schema, additionalProperties: false });
    expect(toNativeSchema(schema, GOOGLE_SCHEMAS)).toEqual(schema);
  });

  it('only an object can be the answer, but for Google', () => {
    const list = { type: 'array', items: text };
    expect(toNativeSchema(list, OPENAI_SCHEMAS)).toBeNull();
    expect(toNativeSchema(list, ANTHROPIC_SCHEMAS)).toBeNull();
    expect(toNativeSchema(list, GOOGLE_SCHEMAS)).toEqual(list);
    expect(toNativeSchema(undefined, GOOGLE_SCHEMAS)).toBeNull();
  });

  it('references within the schema pass where they are known', () => {
    const schema = object({ a: { $ref: '#/$defs/a' } }, { $defs: { a: text } });
    expect(toNativeSchema(schema, OPENAI_SCHEMAS)).toEqual({ ...schema, additionalProperties: false });
    expect(toNativeSchema(schema, ANTHROPIC_SCHEMAS)).toBeNull();
  });

  it('a required property without a schema, and endless nesting, are not sent', () => {
    expect(toNativeSchema({ type: 'object', properties: {}, required: ['a'] }, ANTHROPIC_SCHEMAS)).toBeNull();
    let deep: object = text;
    for (let depth = 0; depth < 50; depth++) deep = { type: 'array', items: deep };
    expect(toNativeSchema(deep, GOOGLE_SCHEMAS)).toBeNull();
  });
});
