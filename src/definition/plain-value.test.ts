/** Values from code: what JSON cannot hold is reported by its path, never dropped in silence. */
import { describe, expect, it } from 'vitest';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';
import { checkWorkflowValue } from './load.ts';
import { toPlainValue } from './plain-value.ts';

// SPEC S1.1
describe('a workflow value', () => {
  it('is copied without undefined keys and negative zero', () => {
    const { value, findings } = toPlainValue({
      a: undefined,
      b: [-0, null, 'x', true],
      c: Object.create(null),
    });
    expect(findings).toEqual([]);
    expect(Object.is((value as { b: number[] }).b[0], 0)).toBe(true);
    expect(value).toEqual({ b: [0, null, 'x', true], c: {} });
    expect(Object.keys(value as object)).toEqual(['b', 'c']);
  });

  for (const [kind, item, words] of [
    ['a function', () => 1, 'a function'],
    ['a symbol', Symbol('x'), 'a symbol'],
    ['a big integer', 1n, 'a bigint'],
    ['NaN', Number.NaN, 'NaN'],
    ['infinity', Number.POSITIVE_INFINITY, 'Infinity'],
    ['a Date', new Date(0), 'an object of class Date'],
    ['a Map', new Map(), 'an object of class Map'],
  ] as const) {
    it(`with ${kind} is refused by its path`, () => {
      const { findings } = toPlainValue({ list: [1, { deep: item }] });
      expect(findings).toEqual([
        expect.objectContaining({
          code: 'not_json',
          message: `${words} has no JSON form`,
          path: ['list', 1, 'deep'],
        }),
      ]);
    });
  }

  it('that holds itself is refused as too deep', async () => {
    const value: Record<string, unknown> = { name: 'a' };
    value.tasks = value;
    const { errors } = await checkWorkflowValue(value, { handlers: BUILT_IN_HANDLERS });
    expect(errors[0]?.code).toBe('nested_too_deep');
  });

  it('with an own __proto__ key is refused', () => {
    const { value, findings } = toPlainValue(JSON.parse('{"__proto__": {"polluted": true}, "b": 1}'));
    expect(findings).toEqual([expect.objectContaining({ code: 'unknown_key', path: ['__proto__'] })]);
    expect((value as { polluted?: boolean }).polluted).toBeUndefined();
  });

  for (const value of [undefined, null, 1, 'name: a', [], new Date(0)]) {
    it(`${String(value) || '[]'} is no workflow, and says so`, async () => {
      const { errors } = await checkWorkflowValue(value, { handlers: BUILT_IN_HANDLERS });
      expect(errors.length).toBeGreaterThan(0);
      expect(errors.every(({ line, column }) => line === null && column === null)).toBe(true);
    });
  }
});
