import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compileExpression, compileTemplate } from './compile.ts';
import type { Reference, Scope } from './template.ts';

/** Each reference as its root and path, with `?` when it tolerates absence. */
const named = (source: string): string[] =>
  compileTemplate(source).references.map(
    ({ root, path, optional }) => JSON.stringify([root, ...path]) + (optional ? '?' : ''),
  );

describe('references', () => {
  // SPEC S1.5
  it.each([
    ['{{ a.b.c }}', ['["a","b","c"]']],
    ["{{ a['b'].c }}", ['["a","b","c"]']],
    ["{{ a['b-c'][0] }}", ['["a","b-c",0]']],
    ['{{ a.b.0[-1] }}', ['["a","b",0,-1]']],
    ['{{ a[x].c }}', ['["a"]', '["x"]']],
    ['{{ a.b[1:x] }}', ['["a","b"]', '["x"]']],
    ['{{ a.b.items() }}', ['["a","b"]']],
    ["{{ a.b.get('c').d }}", ['["a","b"]']],
    ['{{ (a).b }}', ['["a"]']],
    ['{{ [a, {b: c}] }}', ['["a"]', '["b"]', '["c"]']],
    ['{{ a | f.b }}'.replace('f.b', 'join(b, attribute=c)'), ['["a"]', '["b"]', '["c"]']],
    ['{{ a is divisibleby b.c }}', ['["a"]', '["b","c"]']],
    ['{{ a if b else c }}', ['["a"]', '["b"]', '["c"]']],
    ['{{ a < b.x < c ~ d + e ** f }}', ['["a"]', '["b","x"]', '["c"]', '["d"]', '["e"]', '["f"]']],
    ['{% if a.b %}{{ c }}{% elif d %}{% else %}{{ e }}{% endif %}', ['["a","b"]', '["c"]', '["d"]', '["e"]']],
    ['{% filter replace(a, b) %}{{ c }}{% endfilter %}', ['["a"]', '["b"]', '["c"]']],
    ['{{ range(a) }}{{ dict(k=b) }}', ['["a"]', '["b"]']],
    ['{{ not -a }}', ['["a"]']],
    ['{# {{ a }} #}{% raw %}{{ b }}{% endraw %}', []],
  ])('of %s', (source, expected) => {
    expect(named(source)).toEqual(expected);
  });

  it.each([
    ['{% for x in a.b %}{{ x.c }}{{ loop.index }}{% endfor %}{{ x }}', ['["a","b"]', '["x"]']],
    ['{% for k, v in a.items() if v > b %}{{ k }}{% else %}{{ v }}{% endfor %}', ['["a"]', '["b"]', '["v"]']],
    ['{% for x in a if loop %}{% endfor %}', ['["a"]', '["loop"]']],
    ['{{ x }}{% set x = a.b %}{{ x.c }}', ['["x"]', '["a","b"]']],
    ['{% set x = x %}{{ x }}', ['["x"]']],
    ['{% set x %}{{ a }}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}', ['["a"]', '["y"]']],
    ['{% set ns = namespace(n=a) %}{% set ns.n = ns.n + b %}{{ ns.n }}', ['["a"]', '["b"]']],
    ['{% for i in a %}{% set x = i %}{% endfor %}{{ x }}', ['["a"]', '["x"]']],
  ])('leave out what %s binds itself', (source, expected) => {
    expect(named(source)).toEqual(expected);
  });

  it('to a name that every branch sets are left out; that only some branch sets are optional', () => {
    expect(named('{% if a %}{% set x = 1 %}{% else %}{% set x = 2 %}{% endif %}{{ x }}')).toEqual(['["a"]']);
    expect(named('{% if a %}{% set x = 1 %}{% endif %}{{ x.y }}')).toEqual(['["a"]', '["x","y"]?']);
    expect(named('{% if a %}{% set x = 1 %}{% elif b %}{% set x = 1 %}{% endif %}{{ x }}')).toEqual([
      '["a"]',
      '["b"]',
      '["x"]?',
    ]);
  });

  it.each([
    ['{{ a.b is defined }}', ['["a","b"]?']],
    ['{{ a.b is not defined }}', ['["a","b"]?']],
    ['{{ a.b is undefined }}', ['["a","b"]?']],
    ["{{ a.b | default('x') }}", ['["a","b"]?']],
    ['{{ a.b | d(c) }}', ['["a","b"]?', '["c"]?']],
    ['{{ (a.b) | default(1) }}', ['["a","b"]?']],
    ['{{ a.b | upper | default(1) }}', ['["a","b"]']],
    ['{{ a.b.items() | default(1) }}', ['["a","b"]']],
    ['{{ a[b] | default(1) }}', ['["a"]', '["b"]']],
    ['{{ (a if b else c) | default(1) }}', ['["a"]?', '["b"]', '["c"]?']],
    ['{{ (a or b) | default(1) }}', ['["a"]', '["b"]?']],
    ['{{ a is none }}', ['["a"]']],
  ])('of %s tell whether absence is tolerated', (source, expected) => {
    expect(named(source)).toEqual(expected);
  });

  it('carry exact offsets of the root and of every path element', () => {
    const source =
      "x {{ f . b [ 'c' ]\n[0].d | default(g.h[1]) }}{% for i in k['l'] %}{{ i ~ m.n }}{% endfor %}";
    const spans = compileTemplate(source).references.map(({ start, ends }) =>
      ends.map((end) => source.slice(start, end)),
    );
    expect(spans).toEqual([
      ['f', 'f . b', "f . b [ 'c' ]", "f . b [ 'c' ]\n[0]", "f . b [ 'c' ]\n[0].d"],
      ['g', 'g.h', 'g.h[1]'],
      ['k', "k['l']"],
      ['m', 'm.n'],
    ]);
  });

  it('are found in bare expressions too', () => {
    expect(compileExpression(' a.b > 1').references).toEqual([
      { root: 'a', path: ['b'], start: 1, ends: [2, 4], optional: false },
    ]);
  });
});

describe('rewriting by offsets', () => {
  const file = new URL('../../test/fixtures/jinja-cases.json', import.meta.url);
  const fixture = JSON.parse(readFileSync(file, 'utf8')) as {
    scope: Scope;
    cases: { template: string; mode: string; error?: true }[];
  };
  // A name that a branch may have set stands for two things; moving it would lose one of them.
  const movable = fixture.cases.filter(({ template, error }) => !error && !/\{% if .*\{% set/.test(template));

  // SPEC S1.3
  it('moves every name of every recorded template to another place without changing a result', () => {
    for (const { template, mode } of movable) {
      const compile = mode === 'text' ? compileTemplate : compileExpression;
      const moved = compile(move(template, compile(template).references));
      expect(moved.render({ moved: fixture.scope }), template).toEqual(
        compile(template).render(fixture.scope),
      );
    }
    expect(movable.length).toBeGreaterThan(500);
  });

  function move(source: string, references: readonly Reference[]): string {
    return references.reduceRight(
      (text, { root, start, ends }) => `${text.slice(0, start)}moved['${root}']${text.slice(ends[0])}`,
      source,
    );
  }
});
