import { describe, expect, it } from 'vitest';
import { compileExpression, compileTemplate } from './compile.ts';
import { type Scope, TemplateError } from './template.ts';

function errorOf(run: () => unknown): TemplateError {
  try {
    run();
  } catch (error) {
    if (error instanceof TemplateError) return error;
    throw error;
  }
  return expect.fail('nothing was thrown');
}

const syntaxOf = (source: string): TemplateError => errorOf(() => compileTemplate(source));
const failureOf = (source: string, scope: Scope = {}): TemplateError =>
  errorOf(() => compileTemplate(source).render(scope));

describe('a syntax error', () => {
  // SPEC S1.4, S2.1
  it.each([
    ['{{ a', '`{{` is never closed', '}}'],
    ['{% if a', '`{%` is never closed', '%}'],
    ['{# a', '`{#` is never closed', '#}'],
    ['{% raw %}a', '`{% raw %}` is never closed', 'endraw'],
    ['{% if a %}', '`{% if %}` is never ended', 'endif'],
    ['{% for a in b %}', '`{% for %}` is never ended', 'endfor'],
    ['{% endfor %}', 'no block is open', undefined],
    ['{% if a %}{% endfor %}', 'the open block is `{% if %}`', undefined],
    ['{{ (a }}', '`(` is never closed', undefined],
    ['{{ a } }}', 'unexpected `}`', '}}'],
    ["{{ 'a }}", 'this text is never closed', "'"],
    ['{{ a && b }}', '`&&`', '`and`'],
    ['{{ a || b }}', '`||`', '`or`'],
    ['{{ !a }}', '`!`', '`not`'],
    ['{{ a === b }}', '`===`', '`==`'],
    ['{{ a !== b }}', '`!==`', '`!=`'],
    ['{{ a = b }}', 'found `=`', '`==`'],
    ['{{ a ? b : c }}', '`?`', 'if condition else'],
    ['{{ a | uper }}', 'no filter `uper`', '`upper`'],
    ['{{ a | random }}', 'same result every time', 'first'],
    ["{{ a | regex_replace('a') }}", 'unbounded time', 'replace'],
    ["{{ a | map('uper') }}", 'no filter `uper`', '`upper`'],
    ["{{ a | selectattr('x', 'defind') }}", 'no test `defind`', '`defined`'],
    ['{{ a is defind }}', 'no test `defind`', '`defined`'],
    ['{{ a | join(sep=1) }}', 'no argument `sep`', undefined],
    ['{{ a | indent(widht=1) }}', 'no argument `widht`', '`width`'],
    ['{{ a | upper(1) }}', 'takes no arguments', undefined],
    ['{{ a | replace(1) }}', 'needs the argument `new`', undefined],
    ['{{ a | first.b }}', 'needs parentheses', '(… | first).name'],
    ['{{ upper(a) }}', '`upper` cannot be called', 'value | upper'],
    ['{{ rnge(3) }}', '`rnge` cannot be called', '`range`'],
    ['{{ a.append(1) }}', 'lists cannot be changed', 'xs + [x]'],
    ["{{ a.format('x') }}", '`.format()` is not supported', 'filter'],
    ['{{ a.uper() }}', 'no method `.uper()`', '`upper`'],
    ['{{ a[0]() }}', 'cannot be called', undefined],
    ['{% include "x" %}', 'templates cannot load or define code', undefined],
    ['{% block x %}', 'templates cannot load or define code', undefined],
    ['{% import "x" as y %}', 'templates cannot load or define code', undefined],
    ['{% macro x() %}', 'templates cannot load or define code', undefined],
    ['{% do x %}', '`{% do %}` is not supported', 'set'],
    ['{% else if x %}', 'does not belong here', undefined],
    ['{% if a %}{% else if b %}{% endif %}', '`else if`', '`elif`'],
    ['{% fro a in b %}', '`fro` is not a statement', '`for`'],
    ['{% for a in b recursive %}{% endfor %}', 'recursive', undefined],
    ['{% set x.y = 1 %}', '`x` is not a namespace', 'namespace()'],
    ['{% set true = 1 %}', '`true` cannot be set', undefined],
    ["{{ '\\xzz' }}", 'hexadecimal digits', '\\\\'],
    ['{{ }}', 'nothing stands between', undefined],
  ])('in %s says so and helps', (source, message, hint) => {
    const error = syntaxOf(source);
    expect(error.kind).toBe('syntax');
    expect(error.message).toContain(message);
    if (hint === undefined) expect(error.hint).toBeUndefined();
    else expect(error.hint).toContain(hint);
  });

  it('has a line and a column that count from one', () => {
    const error = syntaxOf('one\ntwo {{ a | uper }}');
    expect([error.offset, error.line, error.column]).toEqual([15, 2, 12]);
  });

  it('in an empty expression asks for a value', () => {
    expect(errorOf(() => compileExpression(' ')).message).toBe('expected a value, found the end');
  });
});

describe('what is undefined', () => {
  const scope = {
    tasks: { research: { output: { points: [1] } }, skipped: { output: null }, 'fact-check': { output: 1 } },
    inputs: { topic: 'x' },
  };

  // SPEC S2.1
  it.each([
    ['{{ tasks.research.outptu }}', '`tasks.research.outptu` is undefined', 'did you mean `output`?'],
    ["{{ tasks['reserch'].output }}", "`tasks['reserch']` is undefined", 'did you mean `research`?'],
    ['{{ input.topic }}', '`input` is undefined', 'did you mean `inputs`?'],
    ['{{ tasks.fact-check.output }}', '`tasks.fact` is undefined', "tasks['fact-check']"],
    ['{{ fact-check.output }}', '`fact` is undefined', "tasks['fact-check']"],
    ['{{ tasks.research.output.points[3] }}', '`tasks.research.output.points[3]` is undefined', undefined],
    ["{% set k = 'x' %}{{ inputs[k] }}", '`inputs[k]` is undefined: there is no key `x`', undefined],
    ['{{ inputs.topic.length }}', '`inputs.topic` is text, so `.length` cannot be read', undefined],
    ['{{ inputs.items }}', '`inputs.items` is undefined', 'call it: `.items()`'],
    ['{{ [] | first }}', '`first` of an empty list is undefined', undefined],
    ["{{ [inputs] | map(attribute='topc') }}", '`element.topc` is undefined', 'did you mean `topic`?'],
  ])('in %s is named', (source, message, hint) => {
    const error = failureOf(source, scope);
    expect(error.kind).toBe('undefined');
    expect(error.message).toContain(message);
    if (hint === undefined) expect(error.hint).toBeUndefined();
    else expect(error.hint).toContain(hint);
  });

  // SPEC S2.1
  it('because a task was skipped names the task', () => {
    const error = failureOf('{{ tasks.skipped.output.points }}', scope);
    expect(error.message).toBe(
      '`tasks.skipped.output` is none, so `.points` cannot be read (task `skipped` has no output; was it skipped?)',
    );
    expect(failureOf("{{ tasks['skipped']['output'][0] }}", scope).message).toContain(
      'task `skipped` has no output',
    );
    expect(compileTemplate('{{ tasks.skipped.output.points | default([]) }}').render(scope)).toEqual([]);
  });

  it.each([
    '{{ x }}',
    '{{ x ~ 1 }}',
    '{{ x + 1 }}',
    '{{ x == 1 }}',
    '{{ 1 in x }}',
    '{{ not x }}',
    '{{ x and 1 }}',
    '{{ 0 or x }}',
    '{{ [x] }}',
    "{{ {'a': x} }}",
    '{{ inputs[x] }}',
    '{{ x[0] }}',
    '{{ x[1:] }}',
    '{{ x.y }}',
    '{{ x.items() }}',
    '{{ x | upper }}',
    "{{ 'a' | join(x) }}",
    '{{ x is none }}',
    '{{ 1 is eq x }}',
    '{{ x.y is defined }}',
    '{{ x.y | default(1) }}',
    '{% if x %}{% endif %}',
    '{% for a in x %}{% endfor %}',
    '{% set y = x %}',
    '{{ 1 if x else 2 }}',
    '{{ range(x) }}',
  ])('is an error in %s', (source) => {
    const error = failureOf(source, scope);
    expect(error.kind).toBe('undefined');
    expect(error.message).toContain('`x` is undefined');
  });

  it('suggests nothing when keys are so long that comparing them would take time', () => {
    const key = 'k'.repeat(100_000);
    expect(failureOf(`{{ m['${key}x'] }}`, { m: { [key]: 1 } }).hint).toBeUndefined();
  });
});

describe('a type error', () => {
  it.each([
    ["{{ 1 + 'a' }}", 'cannot add a number and text', '`~`'],
    ["{{ 'a' < 1 }}", 'text and a number have no order', '| int'],
    ['{{ 1 / 0 }}', 'division by zero', undefined],
    ['{{ 10 ** 400 }}', 'too large', undefined],
    ['{{ (0 - 8) ** 0.5 }}', 'not a number', undefined],
    ['{% for x in none %}{% endfor %}', 'expected a list, found none', 'default'],
    ["{{ '%s' % 1 }}", '`%` does not format text', 'format'],
    ["{{ 'x' | fromjson }}", 'the text is not JSON', undefined],
    ['{{ loop_ }}{% for a in [1] %}{{ loop }}{% endfor %}', 'a loop is not a value', 'loop.index'],
    ['{% set ns = namespace() %}{{ [ns] }}', 'a namespace is not a value', undefined],
    ['{{ 5.items() }}'.replace('5', 'loop_'), 'text has no method `.items()`', undefined],
  ])('in %s explains itself', (source, message, hint) => {
    const error = failureOf(source, { loop_: 'x' });
    expect(error.kind).toBe('type');
    expect(error.message).toContain(message);
    if (hint !== undefined) expect(error.hint).toContain(hint);
  });

  it('points at the operation', () => {
    const source = "line\n  {{ [1, 2] | map('int') | join('-') | round }}";
    expect(failureOf(source).offset).toBe(source.indexOf('round'));
  });
});
