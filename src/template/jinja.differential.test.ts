// SPEC S2.1: the language is Jinja2's. Cases recorded from Jinja2 itself by scripts/record-jinja-cases.py, which also lists what
// Relay does differently on purpose.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compileExpression, compileTemplate } from './compile.ts';
import { type Scope, TemplateError } from './template.ts';

interface Case {
  readonly template: string;
  readonly mode: 'text' | 'expression';
  readonly expected?: unknown;
  readonly error?: true;
}

const fixture = new URL('../../test/fixtures/jinja-cases.json', import.meta.url);
const { scope, cases } = JSON.parse(readFileSync(fixture, 'utf8')) as { scope: Scope; cases: Case[] };

describe('Jinja2 and Relay give the same result', () => {
  it('has enough recorded cases to mean something', () => {
    expect(cases.length).toBeGreaterThan(400);
  });

  for (const { template, mode, expected, error } of cases) {
    it(`${mode} ${JSON.stringify(template)}${error ? ' is an error' : ''}`, () => {
      const render = (): unknown =>
        mode === 'text'
          ? asText(compileTemplate(template).render(scope))
          : compileExpression(template).render(scope);
      if (error) expect(render).toThrow(TemplateError);
      else expect(render()).toEqual(expected);
    });
  }
});

/** A single `{{ }}` keeps its type in Relay; the recording is always text. */
function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
