/** The offline model: deterministic, honest about itself, and able to fit schemas (SPEC S9.1). */
import { describe, expect, it } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { compileJsonSchema } from '../base/json-schema.ts';
import { traceOfRun } from '../base/trace.ts';
import type { ModelAnswer, ModelRequest } from './model.ts';
import { offline } from './offline.ts';
import { makeJson } from './offline-json.ts';

const ask = (request: Partial<ModelRequest> = {}): Promise<ModelAnswer> =>
  offline.generate({
    model: 'brief',
    messages: [{ role: 'user', content: 'Describe the tides of the North Sea' }],
    params: {},
    schema: undefined,
    wantsJson: false,
    attempt: 1,
    signal: new AbortController().signal,
    clock: systemClock,
    trace: traceOfRun('01a1df28-2d2a-7af4-90b3-23f157271ba2'),
    onToken: () => {},
    ...request,
  });

describe('answers', () => {
  it('the same request gets the same answer, another request another', async () => {
    const [first, second] = [await ask(), await ask()];
    expect(second).toEqual(first);
    expect((await ask({ params: { seed: 2 } })).text).not.toBe(first.text);
    expect((await ask({ model: 'other' })).text).not.toBe(first.text);
  });

  it('an answer says that it is the offline model’s', async () => {
    expect((await ask()).text).toMatch(/^\[offline model\]/);
    expect(JSON.parse((await ask({ wantsJson: true })).text)).toMatchObject({ offline_model: 'brief' });
  });

  it('echo repeats the last user message', async () => {
    const messages = [
      { role: 'user', content: 'first' },
      { role: 'assistant', content: 'hm' },
      { role: 'user', content: ' last\n' },
    ] as const;
    expect((await ask({ model: 'echo', messages })).text).toBe(' last\n');
  });

  it('sloppy answers in words until it is told that JSON was wanted', async () => {
    const opening = [{ role: 'user', content: 'facts, please' }] as const;
    const repair = [
      { role: 'assistant', content: 'hm' },
      { role: 'user', content: 'JSON!' },
    ] as const;
    const request = {
      model: 'sloppy',
      wantsJson: true,
      schema: { type: 'array', items: { type: 'integer' } },
    };
    expect((await ask({ ...request, messages: opening })).text).toMatch(/^\[offline model\] sloppy/);
    const { text } = await ask({ ...request, messages: [...opening, ...repair] });
    expect(JSON.parse(text)).toEqual([expect.any(Number), expect.any(Number)]);
  });

  it('tokens stream and add up to the text', async () => {
    const tokens: string[] = [];
    const { text, usage } = await ask({ onToken: (token) => tokens.push(token) });
    expect(tokens.join('')).toBe(text);
    expect(usage).toEqual({ tokens_in: 9, tokens_out: Math.ceil(text.length / 4) });
  });

  it('max_tokens and stop words cut the answer', async () => {
    expect(await ask({ params: { max_tokens: 3 } })).toMatchObject({
      text: '[offline mod',
      finish: 'length',
    });
    expect(await ask({ params: { stop: [' model'] } })).toMatchObject({ text: '[offline', finish: 'stop' });
  });
});

describe('made-up JSON', () => {
  const schemas: Record<string, unknown> = {
    'an object with optional parts': {
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: ['number', 'null'] }, c: { type: 'boolean' } },
      required: ['a', 'z'],
    },
    'lists with bounds': { type: 'array', items: { type: 'integer' }, minItems: 5, maxItems: 6 },
    'a short list': { type: 'array', items: { type: 'string' }, maxItems: 1 },
    'a tuple': { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }], items: false },
    'enum and const': {
      type: 'object',
      properties: { e: { enum: ['x', 'y'] }, c: { const: [1] } },
      required: ['e', 'c'],
    },
    'numbers with bounds': {
      type: 'object',
      required: ['i', 'n', 'x', 'm', 't', 'neg'],
      properties: {
        i: { type: 'integer', minimum: 7, maximum: 9 },
        n: { type: 'number', exclusiveMinimum: 0, maximum: 1 },
        x: { type: 'integer', exclusiveMinimum: 1, exclusiveMaximum: 3 },
        m: { type: 'integer', multipleOf: 5, minimum: 11 },
        t: { type: 'number', minimum: 0.1, maximum: 0.2 },
        neg: { type: 'integer', maximum: -5 },
      },
    },
    'strings with bounds': { type: 'string', minLength: 100, maxLength: 120 },
    'a very short string': { type: 'string', maxLength: 3 },
    formats: {
      type: 'object',
      properties: Object.fromEntries(
        ['date-time', 'date', 'time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uuid'].map(
          (format) => [format, { type: 'string', format }],
        ),
      ),
    },
    choices: {
      anyOf: [{ type: 'object', properties: { a: { const: 1 } }, required: ['a'] }, { type: 'null' }],
    },
    'one of': {
      type: 'object',
      properties: { a: { oneOf: [{ type: 'integer' }, { type: 'string' }] } },
      required: ['a'],
    },
    combinations: {
      allOf: [
        { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] },
        { properties: { b: { type: 'string' } }, required: ['b'] },
      ],
    },
    'references, also to itself': {
      $ref: '#/$defs/node',
      $defs: {
        node: {
          type: 'object',
          properties: {
            name: { type: 'string' },
            children: { type: 'array', items: { $ref: '#/$defs/node' } },
          },
          required: ['name', 'children'],
        },
      },
    },
    'anything at all': true,
    'no type': { properties: { a: { minimum: 3 } }, required: ['a'] },
  };

  it.each(Object.keys(schemas))('%s: the value fits, and is the same every time', async (name) => {
    const schema = schemas[name];
    const check = await compileJsonSchema(schema);
    for (const seed of ['a', 'b', 'c', 'd']) {
      const value = makeJson(schema, seed);
      expect(check(value), JSON.stringify(value)).toBeNull();
      expect(makeJson(schema, seed)).toEqual(value);
    }
  });

  it('a schema that only refers to itself comes to an end', () => {
    expect(makeJson({ $ref: '#' }, 'seed')).toBeDefined();
  });
});
