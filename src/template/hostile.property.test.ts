// SPEC S2.3: whatever the source and the data are, rendering gives a result or a TemplateError within its budget.

import { describe, expect, it } from 'vitest';
import { fc } from '../../test/support/property.ts';
import { compileExpression, compileTemplate } from './compile.ts';
import { FILTERS } from './filters.ts';
import { METHODS } from './methods.ts';
import { type Scope, type Template, TemplateError } from './template.ts';
import { TESTS } from './tests.ts';

const BUDGET = { stepsMax: 20_000, outputCharsMax: 20_000 };
const NOTHING = Symbol('no result');
const PROTOTYPE_NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'valueOf',
  '__defineGetter__',
  'hasOwnProperty',
  'caller',
];

const word = fc.constantFrom(
  ...'{{ }} {% %} {# #} {{- -}} {%- -%} ( ) [ ] { } . , : | ~ + - * / // % ** == != < <= > >= = in is not and or if else'.split(
    ' ',
  ),
  ...'elif endif for endfor set endset raw endraw filter endfilter a b xs m loop range dict namespace ns true none'.split(
    ' ',
  ),
  "'text'",
  '"q"',
  '0',
  '1',
  '-1',
  '2.5',
  '10',
  '999999999',
  "'%s'",
  "'%999999d'",
  '\n',
  ' ',
  '&&',
  '!',
  '?',
  '\\',
  "'",
  'é',
  '😀',
  '\ud800',
  ...PROTOTYPE_NAMES,
  ...FILTERS.keys(),
  ...TESTS.keys(),
  ...METHODS.keys(),
);
const soup = fc.array(word, { maxLength: 40 }).map((words) => words.join(' '));
const data = fc.jsonValue({ maxDepth: 3 });

/** Expressions that parse more often than not, so that evaluation is reached. */
const { expression } = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constantFrom(
      'a',
      'b',
      'xs',
      'm',
      'm.a',
      "m['b']",
      'xs[0]',
      '1',
      '0',
      '-3',
      '2.5',
      "'text'",
      "''",
      'none',
      'true',
      '[]',
      '{}',
      '10 ** 8',
    ),
    fc
      .tuple(tie('expression'), fc.constantFrom(...FILTERS.keys()))
      .map(([value, name]) => `(${value} | ${name})`),
    fc
      .tuple(tie('expression'), fc.constantFrom(...FILTERS.keys()), tie('expression'), tie('expression'))
      .map(([value, name, first, second]) => `(${value} | ${name}(${first}, ${second}))`),
    fc
      .tuple(tie('expression'), fc.constantFrom(...TESTS.keys()), tie('expression'))
      .map(([value, name, other]) => `(${value} is ${name}(${other}))`),
    fc
      .tuple(tie('expression'), fc.constantFrom(...METHODS.keys()), tie('expression'))
      .map(([value, name, other]) => `(${value}).${name}(${other})`),
    fc
      .tuple(
        tie('expression'),
        fc.constantFrom(...'+ - * / // % ** ~ == != < > <= >= in and or'.split(' ')),
        tie('expression'),
      )
      .map(([left, operator, right]) => `(${left} ${operator} ${right})`),
    fc.tuple(tie('expression'), tie('expression')).map(([list, key]) => `(${list})[${key}]`),
    fc
      .tuple(tie('expression'), tie('expression'), tie('expression'))
      .map(([list, from, to]) => `(${list})[${from}:${to}]`),
    fc
      .tuple(tie('expression'), tie('expression'), tie('expression'))
      .map(([a, b, c]) => `(${a} if ${b} else ${c})`),
    fc.array(tie('expression'), { maxLength: 3 }).map((items) => `[${items.join(', ')}]`),
    fc.tuple(tie('expression'), tie('expression')).map(([key, value]) => `{${key}: ${value}}`),
  ),
}));

const statement = fc.oneof(
  expression.map((value) => `{{ ${value} }}`),
  expression.map((value) => `{% set a = ${value} %}{{ a }}`),
  expression.map((value) => `{% for a in ${value} %}{{ a }}{{ loop.index }}{% else %}-{% endfor %}`),
  fc
    .tuple(expression, expression)
    .map(([value, other]) => `{% for a in ${value} %}{% set b = ${other} %}{{ b }}{% endfor %}{{ b }}`),
  fc
    .tuple(expression, expression)
    .map(([condition, value]) => `{% if ${condition} %}{% set xs = ${value} %}{% endif %}{{ xs }}`),
  fc
    .tuple(fc.constantFrom(...FILTERS.keys()), expression)
    .map(([name, value]) => `{% filter ${name} %}{{ ${value} }}{% endfilter %}`),
);

describe('hostile templates', () => {
  it('made of random words fail with a TemplateError or render', () => {
    fc.assert(
      fc.property(soup, data, (source, value) =>
        isHarmless(compileTemplate, source, { a: value, b: 1, xs: [value] }),
      ),
      { numRuns: 3_000 },
    );
  });

  it('made of random characters fail with a TemplateError or render', () => {
    const characters = fc.string({
      unit: fc.constantFrom(...'{}%#-+ab.|()[]\'"\\,:=<>! \n1é'),
      maxLength: 60,
    });
    fc.assert(
      fc.property(characters, (source) => isHarmless(compileTemplate, source, { a: 1, b: [1] })),
      { numRuns: 5_000 },
    );
    fc.assert(
      fc.property(characters, (source) => isHarmless(compileExpression, source, { a: 1, b: [1] })),
      { numRuns: 3_000 },
    );
  });

  it('made of random expressions over random data fail with a TemplateError or render within the budget', () => {
    fc.assert(
      fc.property(fc.array(statement, { maxLength: 3 }), data, data, (statements, a, m) =>
        isHarmless(compileTemplate, statements.join(''), {
          a,
          b: 'text',
          xs: [a, m, 1, 'x'],
          m: { a, b: m },
        }),
      ),
      { numRuns: 4_000 },
    );
  });

  it('never change what they are given, and render the same twice', () => {
    fc.assert(
      fc.property(statement, data, (source, value) => {
        const scope = { a: value, b: 'text', xs: [value, 1], m: { a: value } };
        const before = JSON.stringify(scope);
        const first = outcome(compileTemplate, source, scope);
        expect(outcome(compileTemplate, source, scope)).toEqual(first);
        expect(JSON.stringify(scope)).toBe(before);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('walks to prototypes and constructors', () => {
  const step = fc.oneof(
    fc.constantFrom(...PROTOTYPE_NAMES).map((name) => `.${name}`),
    fc.constantFrom(...PROTOTYPE_NAMES).map((name) => `['${name}']`),
    fc.constantFrom(...PROTOTYPE_NAMES).map((name) => `['${name.slice(0, 3)}' ~ '${name.slice(3)}']`),
  );
  const start = fc.constantFrom(
    'a',
    's',
    'n',
    'xs',
    'm',
    'm.inner',
    "'text'",
    '[]',
    '{}',
    '(1)',
    'true',
    'none',
    'range(1)',
    'dict()',
  );

  it('end at something undefined', () => {
    fc.assert(
      fc.property(start, fc.array(step, { minLength: 1, maxLength: 4 }), (base, steps) => {
        const scope = { a: {}, s: 'text', n: 1, xs: [1], m: { inner: {} } };
        const source = `{{ ${base}${steps.join('')} }}`;
        expect(() => compileTemplate(source).render(scope), source).toThrow(
          /undefined|cannot be read|must be a whole number/,
        );
      }),
    );
  });

  it('by filters that read attributes end at something undefined', () => {
    for (const name of PROTOTYPE_NAMES) {
      for (const filter of ['map', 'sort', 'groupby', 'sum', 'unique', 'min', 'join']) {
        const source = `{{ xs | ${filter}(attribute='${name}') }}`;
        expect(() => compileTemplate(source).render({ xs: [{}, {}] }), source).toThrow('is undefined');
      }
      expect(
        compileTemplate(`{{ xs | selectattr('${name}', 'defined') }}`).render({ xs: [{}, [], 'a', 1] }),
      ).toEqual([]);
    }
  });

  it('find a scope without inherited names', () => {
    for (const name of PROTOTYPE_NAMES) {
      expect(() => compileTemplate(`{{ ${name} }}`).render({})).toThrow(`\`${name}\` is undefined`);
    }
  });
});

function isHarmless(compile: (source: string) => Template, source: string, scope: Scope): void {
  const result = outcome(compile, source, scope);
  if (typeof result === 'string') expect(result.length).toBeLessThanOrEqual(BUDGET.outputCharsMax);
  // A result is JSON data: nothing is lost when it is stored.
  if (result !== NOTHING) expect(JSON.parse(JSON.stringify(result))).toEqual(withoutNegativeZero(result));
}

function outcome(compile: (source: string) => Template, source: string, scope: Scope): unknown {
  try {
    return compile(source).render(scope, BUDGET);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    return NOTHING;
  }
}

/** JSON writes `-0` as `0`. */
function withoutNegativeZero(value: unknown): unknown {
  if (typeof value === 'number') return value + 0;
  if (Array.isArray(value)) return value.map(withoutNegativeZero);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutNegativeZero(item)]));
}
