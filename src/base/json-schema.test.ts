/** Compiling users' schemas: cached, apart from each other, strict about mistakes. */
import { describe, expect, it } from 'vitest';
import { compileJsonSchema, createSchemaCompiler, plainCheck } from './json-schema.ts';

describe('compileJsonSchema', () => {
  it('a check says null or what is wrong', async () => {
    const check = await compileJsonSchema({ type: 'string', format: 'email' });
    expect(check('a@example.org')).toBeNull();
    expect(check('nobody')).toContain('must match format "email"');
  });

  it('a schema is compiled once, however often it is parsed', async () => {
    const first = await compileJsonSchema({ type: 'integer' });
    expect(await compileJsonSchema(JSON.parse('{"type":"integer"}'))).toBe(first);
  });

  it('two schemas with one $id do not get in each other’s way, nor in that of the meta-schema', async () => {
    const $id = 'https://json-schema.org/draft/2020-12/schema';
    const text = await compileJsonSchema({ $id: 'https://example.org/x', type: 'string' });
    const number = await compileJsonSchema({ $id: 'https://example.org/x', type: 'number' });
    expect([text('a'), number(1), number('a') === null]).toEqual([null, null, false]);
    await compileJsonSchema({ $id, type: 'string' }).catch(() => null);
    expect((await compileJsonSchema({ type: 'boolean', title: 'after' }))(true)).toBeNull();
  });

  it('what is not a schema is refused with the reason', async () => {
    await expect(compileJsonSchema({ type: 'text' })).rejects.toThrow(/schema is invalid/);
    await expect(compileJsonSchema({ tpye: 'string' })).rejects.toThrow(/unknown keyword/);
  });

  it('the cache is bounded: the schema used longest ago is compiled anew', async () => {
    const first = await compileJsonSchema({ const: 'first' });
    const second = await compileJsonSchema({ const: 'second' });
    for (let index = 0; index < 199; index++) {
      await compileJsonSchema({ const: index });
      await compileJsonSchema({ const: 'first' });
    }
    expect(await compileJsonSchema({ const: 'first' })).toBe(first);
    expect(await compileJsonSchema({ const: 'second' })).not.toBe(second);
  });
});

describe('plainCheck', () => {
  it('says of every type and value what the compiler says', async () => {
    const ajv = await createSchemaCompiler();
    const values = [
      '',
      'a',
      0,
      1,
      1.5,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      true,
      false,
      null,
      [],
      [1],
      {},
      { a: 1 },
    ];
    for (const type of ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null']) {
      const plain = plainCheck({ type, default: 1, title: 'a', description: 'b' });
      const validate = ajv.compile({ type });
      for (const value of values) {
        const said = validate(value) ? null : ajv.errorsText(validate.errors, { dataVar: 'value' });
        expect(plain?.(value), `${type} ${JSON.stringify(value)}`).toBe(said);
      }
    }
  });

  it('leaves everything else to the compiler', () => {
    for (const schema of [
      true,
      [],
      {},
      { type: 'text' },
      { type: ['string'] },
      { type: 'string', minLength: 1 },
      { type: 'string', title: 5 },
    ])
      expect(plainCheck(schema)).toBeNull();
  });
});
