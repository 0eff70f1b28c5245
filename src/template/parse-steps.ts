/** What may follow a value: `.name`, `[index]`, `[from:to]`, calls, filters and tests; and the arguments inside them. */
import type { Arguments, Chain, Expression, Step } from './ast.ts';
import {
  atOperator,
  expectKind,
  expectOperator,
  lastEnd,
  nested,
  type Parser,
  peek,
  skipOperator,
  skipWord,
  take,
  unexpected,
} from './parser.ts';
import { syntaxError } from './position.ts';

/** Also bounds how deep `map('map', 'map', …)` can go. */
const ARGUMENTS_MAX = 100;
const NO_ARGUMENTS: Arguments = Object.freeze({ positional: [], named: [] });
/** Words that can follow a test without being its argument. */
const AFTER_TEST: ReadonlySet<string> = new Set(['else', 'or', 'and', 'if', 'in', 'not']);

/** Attributes, indexes and calls after a value. */
export function parsePostfix(parser: Parser, base: Expression): Expression {
  let value = base;
  if (value.kind === 'name' && atOperator(parser, '(')) {
    const args = parseArguments(parser);
    value = { kind: 'call', name: value.name, args, start: value.start, end: lastEnd(parser) };
  }
  return extend(value, collectPostfix(parser));
}

/** Filters and tests after a value. */
export function parseFilters(parser: Parser, base: Expression): Expression {
  const steps: Step[] = [];
  for (;;) {
    if (atOperator(parser, '|')) steps.push(parseFilter(parser));
    else if (peek(parser).kind === 'name' && peek(parser).text === 'is') steps.push(parseTest(parser));
    else break;
  }
  if (atOperator(parser, '(') && steps.length > 0) throw notCallable(parser);
  return extend(base, steps);
}

/** A filter and its arguments, from the `|` on. */
export function parseFilter(parser: Parser): Step {
  expectOperator(parser, '|');
  return parseFilterCall(parser);
}

/** A filter's name and arguments, as after `{% filter`. */
export function parseFilterCall(parser: Parser): Step {
  const token = expectKind(parser, 'name', 'the name of a filter');
  if (atOperator(parser, '.')) {
    const message = `a filter's result needs parentheses before \`.\` can follow`;
    throw syntaxError(parser.source, peek(parser).start, message, `write \`(… | ${token.text}).name\``);
  }
  const args = atOperator(parser, '(') ? parseArguments(parser) : NO_ARGUMENTS;
  return { kind: 'filter', name: token.text, args, start: token.start, end: lastEnd(parser) };
}

function extend(base: Expression, steps: readonly Step[]): Expression {
  const last = steps.at(-1);
  if (last === undefined) return base;
  const isChain = base.kind === 'chain';
  const chain: Chain = {
    kind: 'chain',
    base: isChain ? base.base : base,
    steps: isChain ? [...base.steps, ...steps] : steps,
    start: base.start,
    end: last.end,
  };
  return chain;
}

function collectPostfix(parser: Parser): Step[] {
  const steps: Step[] = [];
  for (;;) {
    if (atOperator(parser, '.')) steps.push(parseAttribute(parser));
    else if (atOperator(parser, '[')) steps.push(parseIndex(parser));
    else if (atOperator(parser, '(')) throw notCallable(parser);
    else return steps;
  }
}

function notCallable(parser: Parser): Error {
  const message =
    'this cannot be called: only `range`, `dict`, `namespace` and methods such as `.items()` can';
  return syntaxError(parser.source, peek(parser).start, message);
}

function parseAttribute(parser: Parser): Step {
  const { start } = take(parser);
  const token = peek(parser);
  if (token.kind === 'integer') {
    parser.index++;
    const value = Number(token.text.replaceAll('_', ''));
    const key: Expression = { kind: 'literal', value, start: token.start, end: token.end };
    return { kind: 'index', key, start, end: token.end };
  }
  const { text: name, end } = expectKind(parser, 'name', 'a name after `.`');
  if (!atOperator(parser, '(')) return { kind: 'attribute', name, start, end };
  const args = parseArguments(parser);
  return { kind: 'method', name, args, start, end: lastEnd(parser) };
}

function parseIndex(parser: Parser): Step {
  const { start } = take(parser);
  const from = atOperator(parser, ':') ? null : parser.expression(parser);
  if (from !== null && !atOperator(parser, ':')) {
    const { end } = expectOperator(parser, ']');
    return { kind: 'index', key: from, start, end };
  }
  expectOperator(parser, ':');
  const to = endsBound(parser) ? null : parser.expression(parser);
  const by = skipOperator(parser, ':') && !endsBound(parser) ? parser.expression(parser) : null;
  const { end } = expectOperator(parser, ']');
  return { kind: 'slice', from, to, by, start, end };
}

function endsBound(parser: Parser): boolean {
  return atOperator(parser, ':') || atOperator(parser, ']');
}

function parseTest(parser: Parser): Step {
  take(parser);
  const isNegated = skipWord(parser, 'not');
  const { text: name, start } = expectKind(parser, 'name', 'the name of a test');
  const args = parseTestArguments(parser);
  return { kind: 'test', name, isNegated, args, start, end: lastEnd(parser) };
}

/** A test takes its arguments in parentheses, or one plain value right after it: `x is divisibleby 3`. */
function parseTestArguments(parser: Parser): Arguments {
  if (atOperator(parser, '(')) return parseArguments(parser);
  const token = peek(parser);
  if (token.kind === 'name' && token.text === 'is') {
    throw syntaxError(parser.source, token.start, 'tests cannot be chained', 'join them with `and`');
  }
  if (!startsArgument(parser)) return NO_ARGUMENTS;
  return { positional: [nested(parser, () => parser.argument(parser))], named: [] };
}

function startsArgument(parser: Parser): boolean {
  const token = peek(parser);
  if (token.kind === 'name') return !AFTER_TEST.has(token.text);
  if (token.kind === 'operator') return token.text === '[' || token.text === '{';
  return token.kind === 'string' || token.kind === 'integer' || token.kind === 'float';
}

function parseArguments(parser: Parser): Arguments {
  expectOperator(parser, '(');
  const positional: Expression[] = [];
  const named: { name: string; value: Expression; start: number }[] = [];
  while (!atOperator(parser, ')')) {
    if (positional.length + named.length > 0) expectOperator(parser, ',');
    if (atOperator(parser, ')')) break;
    const token = peek(parser);
    if (positional.length + named.length === ARGUMENTS_MAX) {
      throw syntaxError(parser.source, token.start, `there are more than ${ARGUMENTS_MAX} arguments`);
    }
    if (atOperator(parser, '*') || atOperator(parser, '**')) throw unexpected(parser, 'an argument');
    if (token.kind === 'name' && peek(parser, 1).kind === 'operator' && peek(parser, 1).text === '=') {
      parser.index += 2;
      named.push({ name: token.text, value: parser.expression(parser), start: token.start });
    } else if (named.length > 0) {
      throw syntaxError(parser.source, token.start, 'a plain argument cannot follow a named one');
    } else {
      positional.push(parser.expression(parser));
    }
  }
  expectOperator(parser, ')');
  return { positional, named };
}
