/** Files that are meant to hurt, or are not workflows at all: an answer, soon, in words. */
import { describe, expect, it } from 'vitest';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';
import { checkWorkflowText } from './load.ts';
import type { ProblemCode } from './problem.ts';

const check = (text: string) => checkWorkflowText(text, { handlers: BUILT_IN_HANDLERS });
const task = '{ uses: transform, with: { value: 1 } }';
const repeat = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join('');

const FILES: readonly [name: string, text: string, code: ProblemCode][] = [
  ['no character', '', 'empty_file'],
  ['white space', ' \n\r\n\t\n', 'empty_file'],
  ['only comments', '# a\n# b\n', 'empty_file'],
  ['only `---`', '---\n', 'empty_file'],
  ['a sentence', 'this is not a workflow', 'wrong_type'],
  ['a number', '42', 'wrong_type'],
  ['null', 'null', 'wrong_type'],
  ['HTML', '<!doctype html>\n<html lang="en"><body class="a">x</body></html>\n', 'wrong_type'],
  ['a Python program', 'def f(x):\n  return {"a": x}\n', 'unknown_key'],
  ['20,000 tasks', `name: a\ntasks:\n${repeat(20_000, (i) => `  t${i}: ${task}\n`)}`, 'too_many_tasks'],
  [
    '20,000 nodes',
    JSON.stringify({
      name: 'a',
      nodes: Array.from({ length: 20_000 }, (_, i) => ({
        id: `n${i}`,
        handler: 'transform',
        config: { value: 1 },
      })),
    }),
    'too_many_tasks',
  ],
  [
    'lists 200 deep',
    `name: a\ntasks: { x: { uses: transform, with: { value: ${'['.repeat(200)}${']'.repeat(200)} } } }`,
    'nested_too_deep',
  ],
  [
    'mappings 200 deep',
    `name: a\ntasks:\n${repeat(200, (i) => `${' '.repeat(i + 1)}k:\n`)}`,
    'nested_too_deep',
  ],
  ['100,000 open brackets', '['.repeat(100_000), 'nested_too_deep'],
  ['100,000 open and closed brackets', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'nested_too_deep'],
  ['8 million open brackets', '['.repeat(8_000_000), 'nested_too_deep'],
  ['100,000 open braces', '{a: '.repeat(100_000), 'nested_too_deep'],
  ['100,000 dashes', '- '.repeat(100_000), 'nested_too_deep'],
  ['100,000 question marks', '? '.repeat(100_000), 'nested_too_deep'],
  ['an anchor that holds itself', 'name: a\ntasks: &t { x: *t }\n', 'nested_too_deep'],
  ['a merge key that holds itself', 'name: a\ntasks: &t { <<: *t }\n', 'nested_too_deep'],
  [
    'an alias bomb of merge keys',
    `x: &a { ${repeat(5_000, (i) => `k${i}: 1, `)} }\nname: a\ntasks:\n${repeat(9_000, (i) => `  t${i}: { <<: *a }\n`)}`,
    'too_many_aliases',
  ],
  [
    'an alias bomb of text',
    `x: &a ${'x'.repeat(60_000)}\nname: a\ntasks: { t: { uses: transform, with: { value: [${repeat(9_000, () => '*a, ')}] } } }`,
    'too_many_aliases',
  ],
  ['100,000 syntax errors', '}\n'.repeat(100_000), 'syntax'],
  ['a second document', `name: a\ntasks: { x: ${task} }\n---\nname: b\n`, 'syntax'],
  ['tabs for indentation', 'name: a\ntasks:\n\tx:\n\t\tuses: transform\n', 'syntax'],
  [
    '10,000 unknown keys',
    `name: a\ntasks:\n${repeat(10_000, (i) => `  t${i}: { uses: transform, with: { value: 1, vaule: 2 }, x${i}: 1 }\n`)}`,
    'unknown_key',
  ],
  [
    '10,000 duplicate keys',
    `name: a\n${repeat(10_000, () => 'labels: {}\n')}tasks: { x: ${task} }`,
    'duplicate_key',
  ],
  [
    'a 10,000-task circle',
    `name: a\ntasks:\n${repeat(10_000, (i) => `  t${i}: { needs: t${(i + 1) % 10_000}, uses: transform, with: { value: 1 } }\n`)}`,
    'cycle',
  ],
  [
    'a template of 1,000 open parentheses',
    `name: a\ntasks: { x: { uses: transform, with: { value: "{{ ${'('.repeat(1_000)} }}" } } }`,
    'template_syntax',
  ],
  ['an unclosed quote over 100,000 lines', `name: a\nx: "${'y\n'.repeat(100_000)}`, 'syntax'],
];

// SPEC S1.4
describe('a bad file', () => {
  for (const [name, text, code] of FILES) {
    it(`gets a clear answer: ${name}`, async () => {
      const { workflow, errors, dropped } = await check(text);
      expect(workflow).toBeNull();
      expect(errors.map((problem) => problem.code)).toContain(code);
      expect(errors.length).toBeLessThanOrEqual(100);
      expect(dropped).toBeGreaterThanOrEqual(0);
      for (const { message, line, column } of errors) {
        expect(message).not.toMatch(/undefined|\[object|Error:|at .*\.js/);
        expect(line).toBeGreaterThan(0);
        expect(column).toBeGreaterThan(0);
      }
    });
  }

  it('of exactly 10,000 tasks in a chain is a good one', async () => {
    const text = `name: a\ntasks:\n${repeat(10_000, (i) => `  t${i}: { needs: [${i > 0 ? `t${i - 1}` : ''}], uses: transform, with: { value: 1 } }\n`)}`;
    const { workflow, errors } = await check(text);
    expect(errors).toEqual([]);
    expect(Object.keys(workflow?.tasks ?? {})).toHaveLength(10_000);
  });

  it('of random characters never throws', async () => {
    const alphabet = '{}[]:-,&*!|>\'"%@`#?~ \n\tab0.<=\\';
    let seed = 1;
    const next = (bound: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % bound;
    };
    for (let round = 0; round < 3_000; round++) {
      const text = Array.from({ length: next(40) }, () => alphabet[next(alphabet.length)]).join('');
      const { workflow, errors } = await check(text);
      expect(workflow === null, text).toBe(errors.length > 0);
    }
  });
});
