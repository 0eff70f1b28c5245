/** From source to a `Template`: lex, parse, compile to closures. Everything that can be wrong without data is found here. */
import type { Expression, Statement } from './ast.ts';
import { SOURCE_CHARS_MAX } from './budget.ts';
import { emitExpression } from './emit-expression.ts';
import { emitBody } from './emit-statement.ts';
import { type Emitter, emitData, emitWritten } from './emitter.ts';
import { nextOpening } from './lex-template.ts';
import { parseBareExpression, parseTemplate } from './parse-template.ts';
import { syntaxError } from './position.ts';
import { type Rendering, startRendering } from './rendering.ts';
import { openScope } from './static-scope.ts';
import type { Template } from './template.ts';
import { checkResult } from './text.ts';

/** Compiles text with `{{ }}`, `{% %}` and `{# #}`. Throws TemplateError of kind `syntax`. */
export function compileTemplate(source: string): Template {
  checkSize(source);
  if (nextOpening(source, 0) === -1) {
    return Object.freeze({ source, references: [], isLiteral: true, render: () => source });
  }
  const body = parseTemplate(source);
  const single = singleOutput(source, body);
  if (single !== null) return expressionTemplate(source, single, emitWritten);
  const emitter = startEmitter(source);
  const run = emitBody(emitter, body);
  return finish(emitter, (rendering) => {
    run(rendering);
    return rendering.out;
  });
}

/**
 * Compiles a bare expression, as in `if:` and `for_each:`; the result keeps its type. One `{{ expression }}` is accepted too.
 * More than that would become text, which is always true, so it is an error.
 */
export function compileExpression(source: string): Template {
  checkSize(source);
  if (/^\s*\{%/.test(source)) {
    throw syntaxError(
      source,
      source.indexOf('{%'),
      'an expression has a value; `{% %}` has none',
      'write `a if b else c`',
    );
  }
  if (!source.includes('{{')) return expressionTemplate(source, parseBareExpression(source), emitData);
  const single = singleOutput(source, parseTemplate(source));
  if (single !== null) return expressionTemplate(source, single, emitData);
  const message = 'an expression is written bare or as one single `{{ … }}`, with nothing around it';
  throw syntaxError(source, source.indexOf('{{'), message, 'remove the braces: `a > 3`, not `{{ a }} > 3`');
}

/** The expression of a source that is one `{{ }}` and nothing else but white space at its ends. */
function singleOutput(source: string, body: readonly Statement[]): Expression | null {
  const start = source.length - source.trimStart().length;
  const end = source.trimEnd().length;
  const output = body.find((statement) => statement.kind === 'output');
  return output !== undefined && output.start === start && output.end === end ? output.value : null;
}

function expressionTemplate(source: string, node: Expression, emit: typeof emitData): Template {
  const emitter = startEmitter(source);
  const evaluate = emit(emitter, node);
  return finish(emitter, (rendering) => {
    const value = evaluate(rendering);
    rendering.at = node.start;
    checkResult(rendering, value);
    return value;
  });
}

function startEmitter(source: string): Emitter {
  return { source, references: [], expression: emitExpression, scope: openScope(null), slotCount: 0 };
}

function finish(emitter: Emitter, run: (rendering: Rendering) => unknown): Template {
  const { source, slotCount } = emitter;
  const references = emitter.references.sort((left, right) => left.start - right.start);
  return Object.freeze({
    source,
    references: Object.freeze(references),
    isLiteral: false,
    render: (scope, budget) => run(startRendering(source, scope, { slotCount, budget })),
  } satisfies Template);
}

function checkSize(source: string): void {
  if (source.length <= SOURCE_CHARS_MAX) return;
  const message = `the template has ${source.length} characters; the limit is ${SOURCE_CHARS_MAX}`;
  throw syntaxError(source, 0, message, 'pass large data as a value');
}
