import { describe, expect, it } from 'vitest';
import { SOURCE_CHARS_MAX } from './budget.ts';
import { compileTemplate } from './compile.ts';
import { type Scope, TemplateError } from './template.ts';

function kindOf(source: string, scope: Scope = {}): string {
  try {
    compileTemplate(source).render(scope);
    return 'none';
  } catch (error) {
    if (error instanceof TemplateError) return error.kind;
    throw error;
  }
}

const nest = (depth: number): unknown => {
  let value: unknown = [];
  for (let level = 1; level < depth; level++) value = [value];
  return value;
};

describe('the budget', () => {
  const big = 'a'.repeat(1_000_000);
  const list = Array.from({ length: 100_000 }, (_, index) => index);

  // SPEC S2.3
  it.each([
    "{{ 'x' * 10**9 }}",
    "{{ 'x' * 10**300 }}",
    '{{ [1] * 10**9 }}',
    '{{ range(10**12) }}',
    "{{ 'a' | center(10**9) }}",
    "{{ 'a\\nb' | indent(10**9) }}",
    "{{ '%1000000000d' | format(1) }}",
    "{{ '%.999999999f' | format(1) }}",
    '{{ [[1]] | tojson(indent=10**9) }}',
    '{{ [1] | slice(10**9) }}',
    '{{ [1] | batch(10**9, 0) }}',
    "{{ big | replace('a', big) }}",
    "{{ big | replace('', big) }}",
    '{{ list | join(big) }}',
    '{{ big | wordwrap(1, wrapstring=big) }}',
    "{{ big | indent(1000) }}{% for x in list %}{{ 'a\\n' * 1000 }}{% endfor %}",
    `{% set x = 'ab' %}${'{% set x = x + x %}'.repeat(40)}`,
    `{% set x = 'ab' %}${'{% set x = x ~ x %}'.repeat(40)}`,
    `{% set x = [1] %}${'{% set x = x + x %}'.repeat(40)}`,
    `{% set x = [1] %}${'{% set x = [x, x] %}'.repeat(40)}{{ x | tojson }}`,
    '{% for a in list %}{% for b in list %}{% endfor %}{% endfor %}',
    '{% for a in list %}{{ big | length }}{% endfor %}',
    '{% for a in list %}{% set x = big | upper %}{% endfor %}',
    "{% for a in list %}{% set x = 'b' in big %}{% endfor %}",
    "{% set p = 'b' ~ big[:400000] %}{{ p in big }}",
    "{% for a in list %}{% set x = big.split('b') %}{% endfor %}",
    '{{ big }}{{ big }}{{ big }}{{ big }}{{ big }}',
    '{{ [big, big, big, big, big] }}',
  ])('stops %s', (source) => {
    expect(kindOf(source, { big, list })).toBe('budget');
  });

  // SPEC S2.3
  it('stops a result whose parts are shared so often that nobody could store it', () => {
    const doubled =
      "{% set ns = namespace(x=['a']) %}{% for i in range(50) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
    expect(kindOf(`${doubled}{{ ns.x }}`)).toBe('budget');
    expect(kindOf(`{{ ${'['.repeat(40)}x${',x]'.repeat(40)} }}`, { x: list })).toBe('budget');
  });

  it('can be set for one rendering', () => {
    const template = compileTemplate('{% for x in xs %}{{ x }}{% endfor %}');
    const scope = { xs: list.slice(0, 100) };
    expect(() => template.render(scope, { stepsMax: 100 })).toThrow('more than 100 steps');
    expect(() => template.render(scope, { outputCharsMax: 50 })).toThrow('more than 50 characters');
    expect(template.render(scope, { stepsMax: 1_000, outputCharsMax: 200 })).toHaveLength(190);
  });

  it('is enough for large honest texts', () => {
    expect(kindOf('Summary: {{ big | trim | escape | urlencode }}', { big })).toBe('none');
    expect(kindOf('{{ xs | tojson }}', { xs: list })).toBe('none');
  });
});

describe('nesting and length', () => {
  // SPEC S2.3
  it.each([
    ['parentheses', `{{ ${'('.repeat(50_000)}1${')'.repeat(50_000)} }}`],
    ['lists', `{{ ${'['.repeat(50_000)}${']'.repeat(50_000)} }}`],
    ['maps', `{{ ${"{'a':".repeat(50_000)}1${'}'.repeat(50_000)} }}`],
    ['indexes', `{{ ${'a['.repeat(50_000)}1${']'.repeat(50_000)} }}`],
    ['arguments', `{{ ${'range('.repeat(50_000)}1${')'.repeat(50_000)} }}`],
    ['not', `{{ ${'not '.repeat(50_000)}1 }}`],
    ['signs', `{{ ${'-'.repeat(50_000)}1 }}`],
    ['inline if', `{{ 1${' if 1 else 1'.repeat(50_000)} }}`],
    ['inline if without else', `{{ 1${' if 1'.repeat(50_000)} }}`],
    ['if blocks', '{% if 1 %}'.repeat(50_000)],
    ['for targets', `{% for ${'('.repeat(50_000)}a${')'.repeat(50_000)} in b %}{% endfor %}`],
    ['names of filters', `{{ 'a' | map(${"'map', ".repeat(50_000)}'upper') }}`],
  ])('%s that are too deep are a syntax error', (_name, source) => {
    expect(kindOf(source)).toBe('syntax');
  });

  it.each([
    ['sums', `{{ 1${'+1'.repeat(100_000)} }}`],
    ['powers', `{{ 1${'**1'.repeat(100_000)} }}`],
    ['concatenations', `{{ 1${'~1'.repeat(100_000)} }}`],
    ['comparisons', `{{ 1${'==1'.repeat(100_000)} }}`],
    ['conditions', `{{ 1${' and 1'.repeat(100_000)} }}`],
    ['filters', `{{ 1${'|abs'.repeat(100_000)} }}`],
    ['strings', `{{ 'a'${"'a'".repeat(100_000)} }}`],
    ['branches', `{% if 0 %}${'{% elif 0 %}'.repeat(50_000)}{% endif %}`],
    ['statements', '{{ 1 }}'.repeat(100_000)],
  ])('long chains of %s do not exhaust the stack', (_name, source) => {
    expect(kindOf(source)).toBe('none');
  });

  it('a long path of names does not exhaust the stack', () => {
    expect(kindOf(`{{ a${'.b'.repeat(100_000)} }}`, { a: {} })).toBe('undefined');
  });

  it('a source that is too long is refused', () => {
    expect(kindOf(`{{ 1 }}${' '.repeat(SOURCE_CHARS_MAX)}`)).toBe('syntax');
  });

  // SPEC S2.3
  it.each([
    '{{ a | tojson }}',
    '{{ a }}',
    '{{ a }}.',
    '{{ a == b }}',
    '{{ a < b }}',
    '{{ [a, b] | unique }}',
    '{{ a | string }}',
  ])('%s of data that is too deep is an error', (source) => {
    expect(kindOf(source, { a: nest(50_000), b: nest(50_000) })).toBe('type');
  });

  it('data of a thousand levels is written, and one more is not', () => {
    expect(kindOf('{{ a | tojson }}', { a: nest(1000) })).toBe('none');
    expect(kindOf('{{ a | tojson }}', { a: nest(1001) })).toBe('type');
  });
});
