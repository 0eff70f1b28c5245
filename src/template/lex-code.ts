/** Tokens of code: what stands between `{{ }}` or `{% %}`, or a whole bare expression. Every loop moves forward, so time is linear. */
import { syntaxError } from './position.ts';
import { unescapeString } from './string-escapes.ts';
import type { Token } from './token.ts';

const SPACE = /\s+/y;
const NAME = /[\p{ID_Start}_]\p{ID_Continue}*/uy;
const FLOAT = /\d+(?:_\d+)*(?:\.\d+(?:_\d+)*(?:[eE][+-]?\d+(?:_\d+)*)?|[eE][+-]?\d+(?:_\d+)*)/y;
const INTEGER = /0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[\da-fA-F])+|\d+(?:_\d+)*/y;
const OPERATOR = /\/\/|\*\*|==|!=|>=|<=|[-+*/%~[\](){}<>=.:|,]/y;
const CLOSES: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };

/** What people write out of habit from other languages, and what it is called here. Longer spellings come first. */
const FOREIGN: readonly (readonly [string, string])[] = [
  ['===', 'write `==`'],
  ['!==', 'write `!=`'],
  ['&&', 'write `and`'],
  ['||', 'write `or`'],
  ['??', 'write `| default(…)`'],
  ['?', 'write `a if condition else b`'],
  ['=>', 'templates have no functions; use filters such as `map` and `select`'],
  ['&', 'write `and`'],
  ['$', 'a variable is written `{{ name }}`, without `$`'],
  ['`', 'quote text with \' or "'],
  [';', 'one expression at a time; put statements in their own `{% %}`'],
];

/** Where code ends: the closing delimiter, or null for a bare expression that ends with the source. */
export interface CodeRegion {
  readonly opened: number;
  readonly start: number;
  readonly closer: '}}' | '%}' | null;
}

/** Appends the tokens of one region; returns where it ended and whether its end was written with `-`. */
export function lexCode(
  source: string,
  region: CodeRegion,
  tokens: Token[],
): { end: number; isTrimming: boolean } {
  const brackets: number[] = [];
  let at = region.start;
  while (at < source.length) {
    at = matchEnd(SPACE, source, at) ?? at;
    if (brackets.length === 0 && region.closer !== null) {
      const close = closeAt(source, at, region.closer, tokens);
      if (close !== null) return close;
    }
    if (at < source.length) at = lexToken(source, at, { brackets, region, tokens });
  }
  const open = brackets.at(-1);
  if (open !== undefined) throw neverClosed(source, open);
  if (region.closer !== null) {
    const opener = source.slice(region.opened, region.opened + 2);
    const message = `\`${opener}\` is never closed`;
    throw syntaxError(source, region.opened, message, `add \`${region.closer}\` after the expression`);
  }
  return { end: at, isTrimming: false };
}

function closeAt(
  source: string,
  at: number,
  closer: '}}' | '%}',
  tokens: Token[],
): { end: number; isTrimming: boolean } | null {
  const sign = source[at];
  const isSigned = sign === '-' || (sign === '+' && closer === '%}');
  const end = at + (isSigned ? 3 : 2);
  if (source.slice(end - 2, end) !== closer || end - 2 < at) return null;
  tokens.push({ kind: closer === '}}' ? 'close-output' : 'close-block', text: closer, start: at, end });
  return { end, isTrimming: sign === '-' };
}

function lexToken(
  source: string,
  at: number,
  state: { brackets: number[]; region: CodeRegion; tokens: Token[] },
): number {
  const character = source[at] ?? '';
  if (character === "'" || character === '"') return lexString(source, at, state.tokens);
  for (const [kind, pattern] of [
    ['name', NAME],
    ['float', FLOAT],
    ['integer', INTEGER],
  ] as const) {
    const end = matchEnd(pattern, source, at);
    if (end === null) continue;
    state.tokens.push({ kind, text: source.slice(at, end), start: at, end });
    // `a.0.5` is two indexes, not an index by a half.
    if (kind === 'float' && isPoint(state.tokens.at(-2))) return splitIndexes(source, state.tokens);
    return end;
  }
  refuseForeign(source, at);
  const end = matchEnd(OPERATOR, source, at);
  if (end === null) throw unknownCharacter(source, at);
  trackBrackets(source, at, state);
  state.tokens.push({ kind: 'operator', text: source.slice(at, end), start: at, end });
  return end;
}

function lexString(source: string, start: number, tokens: Token[]): number {
  const quote = source[start];
  let at = start + 1;
  while (at < source.length && source[at] !== quote) at += source[at] === '\\' ? 2 : 1;
  if (at >= source.length) {
    throw syntaxError(source, start, 'this text is never closed', `add a closing ${quote}`);
  }
  tokens.push({ kind: 'string', text: unescapeString(source, start + 1, at), start, end: at + 1 });
  return at + 1;
}

/** Takes a float back apart into the integer before its point; lexing goes on at the point. */
function splitIndexes(source: string, tokens: Token[]): number {
  const float = tokens.pop();
  const start = float?.start ?? 0;
  const end = matchEnd(/\d+/y, source, start) ?? start;
  tokens.push({ kind: 'integer', text: source.slice(start, end), start, end });
  return end;
}

function trackBrackets(source: string, at: number, state: { brackets: number[]; region: CodeRegion }): void {
  const character = source[at] ?? '';
  const open = state.brackets.at(-1);
  if (character === '(' || character === '[' || character === '{') {
    state.brackets.push(at);
  } else if (open !== undefined && source.startsWith('%}', at)) {
    throw neverClosed(source, open);
  } else if (Object.hasOwn(CLOSES, character)) {
    if (open !== undefined && source[open] !== CLOSES[character]) throw neverClosed(source, open);
    if (open === undefined) {
      const hint =
        character === '}' && state.region.closer === '}}' ? 'close the expression with `}}`' : undefined;
      throw syntaxError(source, at, `unexpected \`${character}\``, hint);
    }
    state.brackets.pop();
  }
}

function refuseForeign(source: string, at: number): void {
  for (const [spelling, hint] of FOREIGN) {
    if (source.startsWith(spelling, at))
      throw syntaxError(source, at, `\`${spelling}\` is not an operator here`, hint);
  }
  if (source[at] === '!' && source[at + 1] !== '=') {
    throw syntaxError(source, at, '`!` is not an operator here', 'write `not`');
  }
}

function isPoint(token: Token | undefined): boolean {
  return token?.kind === 'operator' && token.text === '.';
}

function unknownCharacter(source: string, at: number): Error {
  const character = String.fromCodePoint(source.codePointAt(at) ?? 0);
  return syntaxError(source, at, `unexpected character ${JSON.stringify(character)}`);
}

function neverClosed(source: string, at: number): Error {
  return syntaxError(source, at, `\`${source[at]}\` is never closed`);
}

function matchEnd(pattern: RegExp, source: string, at: number): number | null {
  pattern.lastIndex = at;
  return pattern.test(source) ? pattern.lastIndex : null;
}
