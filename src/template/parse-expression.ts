/** Expressions, by Jinja2's levels of precedence: inline `if`, or, and, not, comparison, `+ -`, `~`, `* / // %`, `**`, sign, value. */
import type { ArithmeticOperator, CompareOperator, Expression } from './ast.ts';
import { parseFilters, parsePostfix } from './parse-steps.ts';
import {
  atOperator,
  atWord,
  descend,
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

const COMPARISONS: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>=']);
const CONSTANTS: ReadonlyMap<string, boolean | null> = new Map<string, boolean | null>([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['none', null],
  ['None', null],
]);
/** Words with a place of their own in the grammar; as a value they are always a slip. */
const KEYWORDS: ReadonlySet<string> = new Set(['and', 'or', 'not', 'in', 'is', 'if', 'else', 'elif', 'for']);

/** One expression, with inline `if`. */
export function parseExpression(parser: Parser): Expression {
  return nested(parser, () => {
    const depth = parser.depth;
    let value = parseOr(parser);
    while (skipWord(parser, 'if')) {
      descend(parser);
      const condition = parseOr(parser);
      const otherwise = skipWord(parser, 'else') ? parseExpression(parser) : null;
      value = {
        kind: 'conditional',
        condition,
        whenTrue: value,
        otherwise,
        start: value.start,
        end: lastEnd(parser),
      };
    }
    parser.depth = depth;
    return value;
  });
}

/** A value with its attributes and indexes, as the argument of a test without parentheses. */
export function parseArgument(parser: Parser): Expression {
  return parsePostfix(parser, parsePrimary(parser));
}

/** One expression or, where commas follow, the list of several. */
export function parseTuple(
  parser: Parser,
  element: (parser: Parser) => Expression = parseExpression,
): Expression {
  const first = element(parser);
  if (!atOperator(parser, ',')) return first;
  const items = [first];
  while (skipOperator(parser, ',')) {
    if (endsTuple(parser)) break;
    items.push(element(parser));
  }
  return { kind: 'list', items, start: first.start, end: lastEnd(parser) };
}

/** One expression without inline `if`, as in `{% for x in … if … %}`. */
export function parseOr(parser: Parser): Expression {
  return parseLogic(parser, 'or', () => parseLogic(parser, 'and', () => parseNot(parser)));
}

function endsTuple(parser: Parser): boolean {
  const { kind } = peek(parser);
  const isClosing = kind === 'close-output' || kind === 'close-block' || kind === 'end';
  return isClosing || atOperator(parser, ')');
}

function parseLogic(parser: Parser, operator: 'and' | 'or', operand: () => Expression): Expression {
  const first = operand();
  if (!atWord(parser, operator)) return first;
  const operands = [first];
  while (skipWord(parser, operator)) operands.push(operand());
  return { kind: 'logic', operator, operands, start: first.start, end: lastEnd(parser) };
}

function parseNot(parser: Parser): Expression {
  const { start } = peek(parser);
  if (!skipWord(parser, 'not')) return parseCompare(parser);
  const operand = nested(parser, () => parseNot(parser));
  return { kind: 'unary', operator: 'not', operand, start, end: operand.end };
}

function parseCompare(parser: Parser): Expression {
  const first = parseArithmetic(parser, ['+', '-'], () => parseConcat(parser));
  const rest: { operator: CompareOperator; operand: Expression }[] = [];
  for (let operator = takeComparison(parser); operator !== null; operator = takeComparison(parser)) {
    rest.push({ operator, operand: parseArithmetic(parser, ['+', '-'], () => parseConcat(parser)) });
  }
  if (rest.length === 0) return first;
  return { kind: 'compare', first, rest, start: first.start, end: lastEnd(parser) };
}

function takeComparison(parser: Parser): CompareOperator | null {
  const token = peek(parser);
  if (token.kind === 'operator' && COMPARISONS.has(token.text)) return take(parser).text as CompareOperator;
  if (skipWord(parser, 'in')) return 'in';
  const next = peek(parser, 1);
  if (!atWord(parser, 'not') || next.kind !== 'name' || next.text !== 'in') return null;
  parser.index += 2;
  return 'not in';
}

function parseConcat(parser: Parser): Expression {
  const first = parseProduct(parser);
  if (!atOperator(parser, '~')) return first;
  const parts = [first];
  while (skipOperator(parser, '~')) parts.push(parseProduct(parser));
  return { kind: 'concat', parts, start: first.start, end: lastEnd(parser) };
}

function parseProduct(parser: Parser): Expression {
  return parseArithmetic(parser, ['*', '/', '//', '%'], () =>
    parseArithmetic(parser, ['**'], () => parseSigned(parser)),
  );
}

function parseArithmetic(
  parser: Parser,
  operators: readonly ArithmeticOperator[],
  operand: () => Expression,
): Expression {
  const first = operand();
  const rest: { operator: ArithmeticOperator; operand: Expression }[] = [];
  for (;;) {
    const operator = operators.find((candidate) => atOperator(parser, candidate));
    if (operator === undefined) break;
    parser.index++;
    rest.push({ operator, operand: operand() });
  }
  if (rest.length === 0) return first;
  return { kind: 'arithmetic', first, rest, start: first.start, end: lastEnd(parser) };
}

/** A sign binds tighter than a filter (`-x | abs` is `(-x) | abs`) and looser than `.a` and `[0]`. */
function parseSigned(parser: Parser): Expression {
  return parseFilters(parser, parseSign(parser));
}

function parseSign(parser: Parser): Expression {
  const token = peek(parser);
  if (!atOperator(parser, '-') && !atOperator(parser, '+')) return parsePostfix(parser, parsePrimary(parser));
  parser.index++;
  const operand = nested(parser, () => parseSign(parser));
  if (operand.kind === 'literal' && typeof operand.value === 'number') {
    const value = token.text === '-' ? -operand.value : operand.value;
    return { kind: 'literal', value, start: token.start, end: operand.end };
  }
  return { kind: 'unary', operator: token.text as '-' | '+', operand, start: token.start, end: operand.end };
}

function parsePrimary(parser: Parser): Expression {
  const token = peek(parser);
  const { start, end } = token;
  if (token.kind === 'string') return parseString(parser);
  if (token.kind === 'integer' || token.kind === 'float') {
    parser.index++;
    return { kind: 'literal', value: numberValue(parser, token.text, start), start, end };
  }
  if (token.kind === 'name') {
    if (KEYWORDS.has(token.text)) throw unexpected(parser, 'a value');
    parser.index++;
    const constant = CONSTANTS.get(token.text);
    if (constant !== undefined) return { kind: 'literal', value: constant, start, end };
    return { kind: 'name', name: token.text, start, end };
  }
  if (atOperator(parser, '(')) return parseGroup(parser);
  if (atOperator(parser, '[')) return parseList(parser);
  if (atOperator(parser, '{')) return parseMap(parser);
  throw unexpected(parser, 'a value');
}

function parseString(parser: Parser): Expression {
  const first = take(parser);
  let value = first.text;
  while (peek(parser).kind === 'string') value += take(parser).text;
  return { kind: 'literal', value, start: first.start, end: lastEnd(parser) };
}

function numberValue(parser: Parser, text: string, start: number): number {
  const value = Number(text.replaceAll('_', ''));
  if (Number.isFinite(value)) return value;
  throw syntaxError(parser.source, start, 'this number is too large');
}

function parseGroup(parser: Parser): Expression {
  const { start } = take(parser);
  if (atOperator(parser, ')')) return { kind: 'list', items: [], start, end: take(parser).end };
  const inner = parseTuple(parser);
  const { end } = expectOperator(parser, ')');
  return { kind: 'group', inner, start, end };
}

function parseList(parser: Parser): Expression {
  const { start } = take(parser);
  const items: Expression[] = [];
  while (!atOperator(parser, ']')) {
    if (items.length > 0) expectOperator(parser, ',');
    if (atOperator(parser, ']')) break;
    items.push(parseExpression(parser));
  }
  return { kind: 'list', items, start, end: take(parser).end };
}

function parseMap(parser: Parser): Expression {
  const { start } = take(parser);
  const entries: [Expression, Expression][] = [];
  while (!atOperator(parser, '}')) {
    if (entries.length > 0) expectOperator(parser, ',');
    if (atOperator(parser, '}')) break;
    if (peek(parser).kind === 'end') expectKind(parser, 'operator', '`}`');
    const key = parseExpression(parser);
    expectOperator(parser, ':');
    entries.push([key, parseExpression(parser)]);
  }
  return { kind: 'map', entries, start, end: take(parser).end };
}
