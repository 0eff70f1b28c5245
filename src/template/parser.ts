/** A cursor over tokens, with the errors and the nesting bound that every parsing function shares. */
import type { Expression } from './ast.ts';
import { NESTING_MAX } from './budget.ts';
import { quoted, syntaxError } from './position.ts';
import type { TemplateError } from './template.ts';
import type { Token, TokenKind } from './token.ts';

/** The state of one parse. The two functions are injected so that the parts of the grammar need not import each other. */
export interface Parser {
  readonly source: string;
  readonly tokens: readonly Token[];
  /** Any expression. */
  readonly expression: (parser: Parser) => Expression;
  /** A value with attributes and indexes only, as after the name of a test. */
  readonly argument: (parser: Parser) => Expression;
  index: number;
  depth: number;
}

/** The token at the cursor, or some tokens after it; past the end it is the `end` token. */
export function peek(parser: Parser, ahead = 0): Token {
  return parser.tokens[Math.min(parser.index + ahead, parser.tokens.length - 1)] as Token;
}

/** The token at the cursor; the cursor moves past it. */
export function take(parser: Parser): Token {
  const token = peek(parser);
  parser.index++;
  return token;
}

/** Whether the token at the cursor is this operator. */
export function atOperator(parser: Parser, text: string): boolean {
  const token = peek(parser);
  return token.kind === 'operator' && token.text === text;
}

/** Whether the token at the cursor is this word. */
export function atWord(parser: Parser, word: string): boolean {
  const token = peek(parser);
  return token.kind === 'name' && token.text === word;
}

/** Moves past an operator if it is next. */
export function skipOperator(parser: Parser, text: string): boolean {
  if (!atOperator(parser, text)) return false;
  parser.index++;
  return true;
}

/** Moves past a word if it is next. */
export function skipWord(parser: Parser, word: string): boolean {
  if (!atWord(parser, word)) return false;
  parser.index++;
  return true;
}

/** Takes an operator that must come next. */
export function expectOperator(parser: Parser, text: string): Token {
  if (!atOperator(parser, text)) throw unexpected(parser, `\`${text}\``);
  return take(parser);
}

/** Takes a token of a kind that must come next; `what` names it in the error. */
export function expectKind(parser: Parser, kind: TokenKind, what: string): Token {
  if (peek(parser).kind !== kind) throw unexpected(parser, what);
  return take(parser);
}

/** The offset where the last taken token ended. */
export function lastEnd(parser: Parser): number {
  return parser.tokens[parser.index - 1]?.end ?? 0;
}

/** Runs `inner` one level deeper; too many levels are an error here instead of an exhausted stack later. */
export function nested<T>(parser: Parser, inner: () => T): T {
  descend(parser);
  const result = inner();
  parser.depth--;
  return result;
}

/** Counts one more level of nesting. */
export function descend(parser: Parser): void {
  if (++parser.depth > NESTING_MAX) {
    const message = `this is nested more than ${NESTING_MAX} levels deep`;
    throw syntaxError(parser.source, peek(parser).start, message, 'split it with `{% set %}`');
  }
}

/** The error for the token at the cursor, when something else had to come. */
export function unexpected(parser: Parser, expected: string): TemplateError {
  const token = peek(parser);
  const found = describe(parser, token);
  const isAssignment = token.kind === 'operator' && token.text === '=';
  const hint = isAssignment ? 'write `==` to compare' : undefined;
  return syntaxError(parser.source, token.start, `expected ${expected}, found ${found}`, hint);
}

function describe(parser: Parser, token: Token): string {
  if (token.kind === 'end') return 'the end';
  if (token.kind === 'text') return 'text';
  return quoted(parser.source.slice(token.start, token.end));
}
