/** Statements: text, output, `if`, `for`, `set` and `filter`. Blocks nest by recursion, bounded like expressions. */
import { didYouMean } from '../base/suggest.ts';
import type { Expression, Statement, Step, Target } from './ast.ts';
import { lexExpression, lexTemplate } from './lex-template.ts';
import { parseArgument, parseExpression, parseOr, parseTuple } from './parse-expression.ts';
import { parseFilter, parseFilterCall } from './parse-steps.ts';
import {
  atOperator,
  atWord,
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
import { quoted, syntaxError } from './position.ts';
import { refusedTag } from './refused.ts';
import type { TemplateError } from './template.ts';
import type { Token } from './token.ts';

const TAGS: Readonly<Record<string, (parser: Parser, tag: Token) => Statement>> = {
  if: parseIf,
  for: parseFor,
  set: parseSet,
  filter: parseFilterBlock,
};
const CLOSING_TAGS = ['elif', 'else', 'endif', 'endfor', 'endset', 'endfilter', 'endraw'];

/** The statements of a template. */
export function parseTemplate(source: string): readonly Statement[] {
  const parser = startParser(source, lexTemplate(source));
  const body = parseBody(parser, null);
  if (peek(parser).kind !== 'end') throw strayTag(parser, peek(parser, 1), null);
  return body;
}

/** A bare expression, as in `if:` and `for_each:`. */
export function parseBareExpression(source: string): Expression {
  const parser = startParser(source, lexExpression(source));
  const value = parseTuple(parser);
  if (peek(parser).kind !== 'end') throw unexpected(parser, 'the end of the expression');
  return value;
}

function startParser(source: string, tokens: readonly Token[]): Parser {
  return { source, tokens, expression: parseExpression, argument: parseArgument, index: 0, depth: 0 };
}

/** What a block is waiting for: the tags that may end this part of it. */
interface OpenBlock {
  readonly tag: Token;
  readonly ends: readonly string[];
}

/** Statements up to one of the block's closing tags, whose `{%` stays at the cursor. */
function parseBody(parser: Parser, block: OpenBlock | null): Statement[] {
  const body: Statement[] = [];
  for (;;) {
    const token = peek(parser);
    if (token.kind === 'text') {
      parser.index++;
      body.push({ kind: 'text', text: token.text, start: token.start, end: token.end });
    } else if (token.kind === 'open-output') {
      body.push(parseOutput(parser));
    } else if (token.kind === 'open-block') {
      const tag = peek(parser, 1);
      if (block?.ends.includes(tag.text)) return body;
      body.push(nested(parser, () => parseTag(parser, block)));
    } else {
      if (block !== null) throw neverEnded(parser, block);
      return body;
    }
  }
}

function parseOutput(parser: Parser): Statement {
  const { start } = take(parser);
  if (peek(parser).kind === 'close-output')
    throw syntaxError(parser.source, start, 'nothing stands between `{{` and `}}`');
  const value = parseTuple(parser);
  const { end } = expectKind(parser, 'close-output', '`}}`');
  return { kind: 'output', value, start, end };
}

function parseTag(parser: Parser, block: OpenBlock | null): Statement {
  parser.index++;
  const tag = expectKind(parser, 'name', 'the name of a statement');
  const parse = Object.hasOwn(TAGS, tag.text) ? TAGS[tag.text] : undefined;
  if (parse === undefined) throw strayTag(parser, tag, block);
  return parse(parser, tag);
}

function parseIf(parser: Parser, tag: Token): Statement {
  const branches: { condition: Expression; body: Statement[] }[] = [];
  let otherwise: Statement[] | null = null;
  do {
    const condition = parseExpression(parser);
    closeTag(parser);
    branches.push({ condition, body: parseBody(parser, { tag, ends: ['elif', 'else', 'endif'] }) });
    parser.index++;
  } while (skipWord(parser, 'elif'));
  if (skipWord(parser, 'else')) {
    if (atWord(parser, 'if')) {
      throw syntaxError(parser.source, peek(parser).start, '`else if` is not a statement', 'write `elif`');
    }
    closeTag(parser);
    otherwise = parseBody(parser, { tag, ends: ['endif'] });
    parser.index++;
  }
  return { kind: 'if', branches, otherwise, start: tag.start, end: endTag(parser) };
}

function parseFor(parser: Parser, tag: Token): Statement {
  const target = parseTargets(parser);
  if (target.kind === 'field')
    throw syntaxError(parser.source, target.start, 'a loop can only bind plain names');
  if (!skipWord(parser, 'in')) throw unexpected(parser, '`in`');
  const items = parseTuple(parser, parseOr);
  const condition = skipWord(parser, 'if') ? parseExpression(parser) : null;
  if (atWord(parser, 'recursive')) {
    throw syntaxError(parser.source, peek(parser).start, 'recursive loops are not supported');
  }
  closeTag(parser);
  const body = parseBody(parser, { tag, ends: ['else', 'endfor'] });
  parser.index++;
  let otherwise: Statement[] | null = null;
  if (skipWord(parser, 'else')) {
    closeTag(parser);
    otherwise = parseBody(parser, { tag, ends: ['endfor'] });
    parser.index++;
  }
  return { kind: 'for', target, items, condition, body, otherwise, start: tag.start, end: endTag(parser) };
}

function parseSet(parser: Parser, tag: Token): Statement {
  const target = parseTargets(parser);
  if (skipOperator(parser, '=')) {
    const value = parseTuple(parser);
    const end = closeTag(parser);
    return { kind: 'set', target, value, start: tag.start, end };
  }
  if (target.kind === 'tuple') throw unexpected(parser, '`=`');
  const filters: Step[] = [];
  while (atOperator(parser, '|')) filters.push(parseFilter(parser));
  closeTag(parser, '`=`, `|` or `%}`');
  const body = parseBody(parser, { tag, ends: ['endset'] });
  parser.index++;
  return { kind: 'capture', target, filters, body, start: tag.start, end: endTag(parser) };
}

function parseFilterBlock(parser: Parser, tag: Token): Statement {
  const filters = [parseFilterCall(parser)];
  while (atOperator(parser, '|')) filters.push(parseFilter(parser));
  closeTag(parser);
  const body = parseBody(parser, { tag, ends: ['endfilter'] });
  parser.index++;
  return { kind: 'capture', target: null, filters, body, start: tag.start, end: endTag(parser) };
}

/** A target or, where commas follow, a tuple of them. */
function parseTargets(parser: Parser): Target {
  const first = parseTarget(parser);
  if (!atOperator(parser, ',')) return first;
  const items = [first];
  while (skipOperator(parser, ',')) {
    if (atOperator(parser, '=') || atOperator(parser, ')') || atWord(parser, 'in')) break;
    items.push(parseTarget(parser));
  }
  const field = items.find((item) => item.kind === 'field');
  if (field !== undefined)
    throw syntaxError(parser.source, field.start, 'a field of a namespace is set on its own');
  return { kind: 'tuple', items, start: first.start, end: lastEnd(parser) };
}

function parseTarget(parser: Parser): Target {
  const { start } = peek(parser);
  if (skipOperator(parser, '(')) {
    const inner = nested(parser, () => parseTargets(parser));
    expectOperator(parser, ')');
    return inner;
  }
  const { text: name, end } = expectKind(parser, 'name', 'a name to set');
  if (RESERVED.has(name)) throw syntaxError(parser.source, start, `\`${name}\` cannot be set`);
  if (!skipOperator(parser, '.')) return { kind: 'name', name, start, end };
  const field = expectKind(parser, 'name', 'a name after `.`');
  return { kind: 'field', name, field: field.text, start, end: field.end };
}

const RESERVED: ReadonlySet<string> = new Set(
  'true True false False none None and or not in is if else elif for loop'.split(' '),
);

function closeTag(parser: Parser, expected = '`%}`'): number {
  return expectKind(parser, 'close-block', expected).end;
}

/** Takes the closing tag's name and its `%}`; the body before it has stopped exactly there. */
function endTag(parser: Parser): number {
  parser.index++;
  return closeTag(parser);
}

function neverEnded(parser: Parser, block: OpenBlock): TemplateError {
  const end = block.ends.at(-1) ?? '';
  const message = `\`{% ${block.tag.text} %}\` is never ended`;
  return syntaxError(parser.source, block.tag.start, message, `add \`{% ${end} %}\``);
}

/** The error for a tag that cannot stand where it does. */
function strayTag(parser: Parser, tag: Token, block: OpenBlock | null): TemplateError {
  const refused = refusedTag(tag.text);
  if (refused !== null) return syntaxError(parser.source, tag.start, refused.message, refused.hint);
  if (CLOSING_TAGS.includes(tag.text)) {
    const open = block === null ? 'no block is open' : `the open block is \`{% ${block.tag.text} %}\``;
    const message = `\`{% ${tag.text} %}\` does not belong here: ${open}`;
    return syntaxError(parser.source, tag.start, message);
  }
  const hint = didYouMean(tag.text, [...Object.keys(TAGS), ...CLOSING_TAGS, 'raw']);
  return syntaxError(parser.source, tag.start, `${quoted(tag.text)} is not a statement`, hint);
}
