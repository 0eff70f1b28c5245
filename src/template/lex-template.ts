/** Splits a template into text and code, drops comments, and applies whitespace control (`-`). Text keeps its line ends as written. */
import { type CodeRegion, lexCode } from './lex-code.ts';
import { syntaxError } from './position.ts';
import type { Token } from './token.ts';

const RAW_OPEN = /\{%[-+]?\s*raw\s*(-?)%\}/y;
const RAW_CLOSE = /\{%([-+]?)\s*endraw\s*([-+]?)%\}/g;

/** All tokens of a template, ending with one `end` token. */
export function lexTemplate(source: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  let isTrimming = false;
  for (;;) {
    const open = nextOpening(source, at);
    const stop = open === -1 ? source.length : open;
    const isTrimmedBefore = open !== -1 && source[open + 2] === '-';
    pushText(source, tokens, { start: at, stop, isTrimmedAfter: isTrimming, isTrimmedBefore });
    if (open === -1) break;
    ({ end: at, isTrimming } = lexOpening(source, open, tokens));
  }
  tokens.push({ kind: 'end', text: '', start: source.length, end: source.length });
  return tokens;
}

/** All tokens of a bare expression, ending with one `end` token. */
export function lexExpression(source: string): Token[] {
  const tokens: Token[] = [];
  lexCode(source, { opened: 0, start: 0, closer: null }, tokens);
  tokens.push({ kind: 'end', text: '', start: source.length, end: source.length });
  return tokens;
}

/** Offset of the next `{{`, `{%` or `{#`, or -1. */
export function nextOpening(source: string, from: number): number {
  for (let at = source.indexOf('{', from); at !== -1; at = source.indexOf('{', at + 1)) {
    const next = source[at + 1];
    if (next === '{' || next === '%' || next === '#') return at;
  }
  return -1;
}

function lexOpening(source: string, open: number, tokens: Token[]): { end: number; isTrimming: boolean } {
  if (source[open + 1] === '#') return skipComment(source, open);
  RAW_OPEN.lastIndex = open;
  const raw = RAW_OPEN.exec(source);
  if (raw !== null) {
    return lexRaw(source, tokens, { open, start: open + raw[0].length, isTrimmed: raw[1] === '-' });
  }
  const sign = source[open + 2];
  const start = open + (sign === '-' || sign === '+' ? 3 : 2);
  const isOutput = source[open + 1] === '{';
  tokens.push({ kind: isOutput ? 'open-output' : 'open-block', text: '', start: open, end: start });
  const region: CodeRegion = { opened: open, start, closer: isOutput ? '}}' : '%}' };
  return lexCode(source, region, tokens);
}

function skipComment(source: string, open: number): { end: number; isTrimming: boolean } {
  const sign = source[open + 2];
  const body = open + (sign === '-' || sign === '+' ? 3 : 2);
  const close = source.indexOf('#}', body);
  if (close === -1) throw syntaxError(source, open, '`{#` is never closed', 'add `#}` after the comment');
  return { end: close + 2, isTrimming: close > body && source[close - 1] === '-' };
}

function lexRaw(
  source: string,
  tokens: Token[],
  raw: { open: number; start: number; isTrimmed: boolean },
): { end: number; isTrimming: boolean } {
  RAW_CLOSE.lastIndex = raw.start;
  const close = RAW_CLOSE.exec(source);
  if (close === null)
    throw syntaxError(source, raw.open, '`{% raw %}` is never closed', 'add `{% endraw %}`');
  pushText(source, tokens, {
    start: raw.start,
    stop: close.index,
    isTrimmedAfter: raw.isTrimmed,
    isTrimmedBefore: close[1] === '-',
  });
  return { end: close.index + close[0].length, isTrimming: close[2] === '-' };
}

function pushText(
  source: string,
  tokens: Token[],
  span: { start: number; stop: number; isTrimmedAfter: boolean; isTrimmedBefore: boolean },
): void {
  let text = source.slice(span.start, span.stop);
  if (span.isTrimmedAfter) text = text.trimStart();
  if (span.isTrimmedBefore) text = text.trimEnd();
  if (text !== '') tokens.push({ kind: 'text', text, start: span.start, end: span.stop });
}
