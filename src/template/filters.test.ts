// What Jinja2 has is compared with it in jinja.differential.test.ts; here is what Relay adds or does differently.
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { compileExpression } from './compile.ts';
import { FILTERS } from './filters.ts';
import type { Scope } from './template.ts';

const evaluate = (source: string, scope: Scope = {}): unknown => compileExpression(source).render(scope);

describe('the filter sh', () => {
  // SPEC S1.4
  it.each([
    ['plain', "'plain'"],
    ['', "''"],
    ["it's", "'it'\\''s'"],
    [5, "'5'"],
    [null, "'null'"],
    [{ a: 1 }, `'{"a":1}'`],
    [['a b', "c'd", 1], "'a b' 'c'\\''d' '1'"],
    [[], ''],
  ])('quotes %j as %s', (x, expected) => {
    expect(evaluate('x | sh', { x })).toBe(expected);
  });

  it('makes words that a real shell reads back unchanged', () => {
    const words = [
      '$(id) `id` $HOME',
      'a\'b"c\\',
      '; rm -rf / #',
      'two\nlines',
      '-n',
      '*',
      '~',
      '!',
      'é😀',
      '',
    ];
    const script = `for w in ${String(evaluate('words | sh', { words }))}; do printf '%s\\0' "$w"; done`;
    const output = execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8' });
    expect(output.split('\0').slice(0, -1)).toEqual(words);
  });

  it('refuses the character NUL, which no shell word can hold', () => {
    expect(() => evaluate('x | sh', { x: 'a\0b' })).toThrow('NUL');
  });
});

describe('the filter result', () => {
  // SPEC S1.3
  it.each([
    [{ result: 5, other: 1 }, 5],
    [{ result: null }, null],
    [{ other: 1 }, { other: 1 }],
    ['text', 'text'],
    [[1], [1]],
    [null, null],
  ])('of %j is %j', (x, expected) => {
    expect(evaluate('x | result', { x })).toEqual(expected);
  });
});

describe('filters between data and text', () => {
  it.each([
    ['x | tojson', { b: 1, a: ['<', "'"] }, `{"b":1,"a":["<","'"]}`],
    ['x | tojson(indent=2)', { a: [1, {}], b: [] }, '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}'],
    ['x | fromjson', '{"a":[1,null]}', { a: [1, null] }],
    ['x | b64encode', 'é😀', 'w6nwn5iA'],
    ['x | b64decode', 'w6nwn5iA', 'é😀'],
    ['x | b64decode', 'YWJj\nZGU', 'abcde'],
    ['x | sha256', 'abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
    ['x | urlencode', 'a\ud800b', 'a%EF%BF%BDb'],
    ['x | striptags', '&#72;&#x69;&nbsp;&zzz;&#0;', 'Hi\u00a0&zzz;&#0;'],
    ['x | int(base=36)', 'zz', 1295],
    ['x | float', 'nan', 0],
  ])('%s of %j', (source, x, expected) => {
    expect(evaluate(source, { x })).toEqual(expected);
  });

  it.each(['%%%', 'a=b', '/w=='])('b64decode refuses %s', (x) => {
    expect(() => evaluate('x | b64decode', { x })).toThrow(/not base64|not UTF-8/);
  });

  it('groupby gives pairs that are stored as plain lists', () => {
    const groups = evaluate("x | groupby('k')", { x: [{ k: 1 }, { k: 2 }, { k: 1 }] });
    expect(JSON.stringify(groups)).toBe('[[1,[{"k":1},{"k":1}]],[2,[{"k":2}]]]');
  });
});

describe('every filter', () => {
  const values = [
    null,
    true,
    0,
    -1.5,
    '',
    'text',
    '😀',
    [],
    [1, 'a', null, [2]],
    {},
    { a: { b: 1 } },
    [['a', 1]],
  ];

  it('answers or fails with a TemplateError, whatever it is given', () => {
    for (const name of FILTERS.keys()) {
      for (const x of values) {
        for (const y of values) {
          for (const call of [`x | ${name}`, `x | ${name}(y)`, `x | ${name}(y, y)`]) {
            const failure = attempt(call, { x, y });
            expect(failure?.name ?? 'TemplateError', `${call} ${JSON.stringify({ x, y })}`).toBe(
              'TemplateError',
            );
          }
        }
      }
    }
  });

  function attempt(source: string, scope: Scope): Error | null {
    try {
      evaluate(source, scope);
      return null;
    } catch (error) {
      return error as Error;
    }
  }
});
