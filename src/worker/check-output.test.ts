/** What can be wrong with an output (SPEC S1.2 `output`, S5.1). */
import { describe, expect, it } from 'vitest';
import { checkOutput } from './check-output.ts';
import type { OutputSpec } from './work-source.ts';

const problemOf = async (spec: OutputSpec | null, value: unknown): Promise<string | null> =>
  (await checkOutput(spec, value))?.problem ?? null;

describe('checkOutput', () => {
  it('without a spec everything is right', async () => {
    expect(await problemOf(null, undefined)).toBeNull();
    expect(await problemOf(null, '')).toBeNull();
  });

  it('nothing is missing, and null is something', async () => {
    expect(await problemOf({}, undefined)).toBe('missing');
    expect(await problemOf({}, null)).toBeNull();
  });

  it('empty text is refused unless it is allowed', async () => {
    expect(await problemOf({}, ' \n')).toBe('empty');
    expect(await problemOf({ allow_empty: true }, '')).toBeNull();
    expect(await problemOf({}, [])).toBeNull();
  });

  it('max_chars counts text, and JSON as it is written', async () => {
    expect(await problemOf({ max_chars: 3 }, 'abcd')).toBe('too_long');
    expect(await problemOf({ max_chars: 4 }, 'abcd')).toBeNull();
    expect(await problemOf({ max_chars: 4 }, [1, 2])).toBe('too_long');
    expect(await problemOf({ max_chars: 5 }, [1, 2])).toBeNull();
  });

  it('text is not JSON data, unless a schema says that text is wanted', async () => {
    expect(await problemOf({ format: 'json' }, '{"a":1}')).toBe('not_json');
    expect(await problemOf({ format: 'json' }, { a: 1 })).toBeNull();
    expect(await problemOf({ format: 'json', schema: { type: 'string' } }, 'a')).toBeNull();
  });

  it('a schema is held against the value and the message says where it does not fit', async () => {
    const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 1 } }, required: ['n'] };
    expect(await checkOutput({ schema }, { n: 2 })).toBeNull();
    expect(await checkOutput({ schema }, { n: 0 })).toMatchObject({
      problem: 'schema',
      message: expect.stringContaining('value/n must be >= 1') as string,
    });
  });
});
