import { describe, expect, it } from 'vitest';
import { compileExpression, compileTemplate } from './compile.ts';
import type { Scope } from './template.ts';

const render = (source: string, scope: Scope = {}): unknown => compileTemplate(source).render(scope);
const evaluate = (source: string, scope: Scope = {}): unknown => compileExpression(source).render(scope);

describe('a template that is one single expression', () => {
  // SPEC S2.2
  it.each([
    ['{{ x }}', [1, 2], [1, 2]],
    ['{{ x }}', 7, 7],
    ['{{ x }}', '007', '007'],
    ['{{ x }}', null, null],
    ['{{ x }}', false, false],
    ['{{ x }}', { a: [1] }, { a: [1] }],
    ['  {{ x }}\n', [1], [1]],
    ['{{- x -}}', 3, 3],
  ])('%s keeps the type of %j', (source, x, expected) => {
    expect(render(source, { x })).toEqual(expected);
  });

  it('gives the very value of the scope, not a copy', () => {
    const x = { a: 1 };
    expect(render('{{ x }}', { x })).toBe(x);
  });

  it('is empty text when its inline `if` has no `else` and does not hold', () => {
    expect(render("{{ 'a' if x }}", { x: false })).toBe('');
  });
});

describe('any other template', () => {
  // SPEC S2.2
  it.each([
    ['{{ x }}{{ x }}', 1, '11'],
    ['n={{ x }}', 7, 'n=7'],
    ['{# note #}{{ x }}', 7, '7'],
    ['{% if true %}{{ x }}{% endif %}', 7, '7'],
    ['v: {{ x }}', '007', 'v: 007'],
    ['v: {{ x }}', 1.0, 'v: 1'],
    ['v: {{ x }}', 0.1, 'v: 0.1'],
    ['v: {{ x }}', null, 'v: null'],
    ['v: {{ x }}', true, 'v: true'],
    ['v: {{ x }}', ['a', 1, null], 'v: ["a",1,null]'],
    ['v: {{ x }}', { a: { b: [] } }, 'v: {"a":{"b":[]}}'],
    ['v: {{ x }}', 'é"\n', 'v: é"\n'],
  ])('%s of %j is text', (source, x, expected) => {
    expect(render(source, { x })).toBe(expected);
  });

  it('keeps line ends and a trailing newline as written', () => {
    expect(render('a\r\n{{ x }}\r\n\n', { x: 1 })).toBe('a\r\n1\r\n\n');
  });

  it('without any delimiter is a literal and renders as itself', () => {
    const template = compileTemplate('a { b } 100% #1');
    expect(template.isLiteral).toBe(true);
    expect(template.render({})).toBe('a { b } 100% #1');
    expect(compileTemplate('{# c #}').isLiteral).toBe(false);
  });

  it('can be rendered many times with different scopes', () => {
    const template = compileTemplate('{% set y = x %}{{ y }}.');
    expect([1, 2, 3].map((x) => template.render({ x }))).toEqual(['1.', '2.', '3.']);
  });
});

describe('a bare expression', () => {
  // SPEC S2.1
  it('keeps its type', () => {
    expect(
      evaluate('tasks.a.output.points | length > 1', { tasks: { a: { output: { points: [1, 2] } } } }),
    ).toBe(true);
    expect(evaluate('xs', { xs: [1] })).toEqual([1]);
  });

  it('may be written as one single `{{ }}`', () => {
    expect(evaluate('{{ xs }}', { xs: [1] })).toEqual([1]);
  });

  it('refuses a template that would become text, because text is always true', () => {
    expect(() => evaluate('{{ a }} > 3', { a: 1 })).toThrow('one single `{{ … }}`');
  });

  it('refuses statements, which have no value', () => {
    expect(() => evaluate('{% if a %}1{% endif %}')).toThrow('an expression has a value');
  });

  it('is never a literal', () => {
    expect(compileExpression('1').isLiteral).toBe(false);
  });

  it('is undefined, and so an error, when its inline `if` has no `else` and does not hold', () => {
    expect(() => evaluate('1 if false')).toThrow('has no `else`');
  });
});

describe('maps', () => {
  it('prefer their own keys to the names of methods', () => {
    const scope = { m: { items: 'mine', keys: [1] } };
    expect(evaluate('m.items', scope)).toBe('mine');
    expect(evaluate('m.items() | length', scope)).toBe(2);
    expect(evaluate("m.get('items')", scope)).toBe('mine');
  });

  it('take a key that looks like a prototype as data', () => {
    const made = evaluate("{'__proto__': 1, 'constructor': 2}") as Record<string, unknown>;
    expect(Object.hasOwn(made, '__proto__')).toBe(true);
    expect(Object.getPrototypeOf(made)).toBe(Object.prototype);
    expect(evaluate("{'__proto__': 1}.__proto__")).toBe(1);
    expect(evaluate('dict(__proto__=5).__proto__')).toBe(5);
    expect(evaluate('x | fromjson | tojson', { x: '{"__proto__":{"a":1}}' })).toBe('{"__proto__":{"a":1}}');
  });

  it('can be asked for a number, which stands for its text', () => {
    expect(evaluate("{1: 'a'}[1]")).toBe('a');
    expect(evaluate("1 in {'1': 0}")).toBe(true);
  });
});

describe('values of the scope', () => {
  it('are never changed', () => {
    const scope = Object.freeze({ xs: Object.freeze([3, 1, 2]), m: Object.freeze({ a: 1 }) });
    expect(render('{{ xs | sort }}{{ xs | reverse }}{{ xs + [1] }}{{ dict(m, b=2) }}', scope)).toBe(
      '[1,2,3][2,1,3][3,1,2,1]{"a":1,"b":2}',
    );
  });

  it('that JavaScript calls undefined are absent, as in JSON', () => {
    expect(render('{{ m }}.', { m: { a: undefined, b: 1 } })).toBe('{"b":1}.');
    expect(evaluate("m.a | default('none')", { m: { a: undefined } })).toBe('none');
  });

  it('are never called', () => {
    let calls = 0;
    const f = (): void => void calls++;
    const scope = { f, m: { toString: f, toJSON: f, valueOf: f, f }, xs: [f] };
    for (const source of [
      '{{ m.f() }}',
      '{{ f() }}',
      '{{ m }}.',
      '{{ m.f }}.',
      '{{ xs }}',
      '{{ xs | map("string") }}',
      '{{ m ~ 1 }}',
    ]) {
      expect(() => render(source, scope), source).toThrow();
    }
    expect(calls).toBe(0);
  });
});
