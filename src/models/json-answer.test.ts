/** The ladder from text to JSON (SPEC S9.2). */
import { describe, expect, it } from 'vitest';
import { parseJsonAnswer } from './json-answer.ts';

const parsed = (text: string): unknown => parseJsonAnswer(text)?.value;

describe('parseJsonAnswer', () => {
  it('the whole text is tried first', () => {
    expect(parsed(' {"a": 1}\n')).toEqual({ a: 1 });
    expect(parsed('null')).toBeNull();
    expect(parsed('"```json\\n1\\n```"')).toBe('```json\n1\n```');
  });

  it('then fenced blocks, the first that parses', () => {
    expect(parsed('text\n```python\nprint({})\n```\nand\n```json\n[1, 2]\n```')).toEqual([1, 2]);
    expect(parsed('```\n{"a": {}}\n```')).toEqual({ a: {} });
  });

  it('then the first balanced object or list', () => {
    expect(parsed('The answer is {"a": "}{", "b": ["\\"]"]}, I think {}')).toEqual({ a: '}{', b: ['"]'] });
    expect(parsed('set {x | x > 0} or [1, [2]]')).toEqual([1, [2]]);
  });

  it('text without JSON gives null, in bounded time', () => {
    expect(parseJsonAnswer('no JSON here')).toBeNull();
    expect(parseJsonAnswer('')).toBeNull();
    expect(parseJsonAnswer('{"cut": [1, 2')).toBeNull();
    expect(parseJsonAnswer('[{'.repeat(200_000))).toBeNull();
  });
});
