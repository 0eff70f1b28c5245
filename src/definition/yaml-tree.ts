/**
 * YAML text → the library's tree, with the file's own mistakes in words. Depth is bounded while reading, because the
 * library composes by recursion and a hundred thousand brackets would take the process down.
 */
import { Composer, type Document, Lexer, LineCounter, Parser } from 'yaml';
import { NESTING_DEPTH_MAX } from '../base/limits.ts';
import type { Finding, Position } from './problem.ts';

/** A parsed file: its tree, unless the text is not YAML at all, and what the library found wrong with it. */
export interface YamlTree {
  readonly document: Document.Parsed | null;
  readonly lines: LineCounter;
  readonly findings: readonly Finding[];
}

/** Parses YAML 1.2, and with it JSON. */
export function parseYamlTree(text: string): YamlTree {
  const lines = new LineCounter();
  const { tokens, deepAt } = readTokens(text, lines);
  if (deepAt !== null) {
    return { document: null, lines, findings: [tooDeep([], positionAt(lines, deepAt))] };
  }
  // The library's own check for unique keys is quadratic in the keys of one mapping; ours is linear.
  const composer = new Composer({ uniqueKeys: false });
  const documents = composer.compose(tokens, true, text.length);
  const first = documents.next().value as Document.Parsed;
  const second = documents.next();
  const findings = [
    ...withoutEchoes(first.errors.map((error) => syntaxFinding(error, text, lines))),
    ...first.warnings.map((warning) => unknownTag(warning.message, positionAt(lines, warning.pos[0]))),
  ];
  if (second.done !== true) {
    const position = positionAt(lines, (second.value as Document.Parsed).range[0]);
    const hint = 'remove the `---` that starts a second document';
    findings.push({ code: 'syntax', message: 'a file holds one workflow', hint, path: [], position });
  }
  return { document: first, lines, findings };
}

/** The place of an offset, 1-based. */
export function positionAt(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

/** Nesting beyond the limit. */
export function tooDeep(path: Finding['path'], position: Position | null): Finding {
  const message = `lists and mappings are nested more than ${NESTING_DEPTH_MAX} deep`;
  return { code: 'nested_too_deep', message, hint: 'flatten the data', path, position };
}

type Token = ReturnType<Parser['next']> extends Generator<infer Item> ? Item : never;

/** Stops well above the limit: the tree's own walk reports what is just over it by its path. */
function readTokens(text: string, lines: LineCounter): { tokens: readonly Token[]; deepAt: number | null } {
  const parser = new Parser(lines.addNewLine);
  const tokens: Token[] = [];
  let offset = 0;
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    if (parser.stack.length > NESTING_DEPTH_MAX * 2) return { tokens, deepAt: offset };
    offset = parser.offset;
  }
  for (const token of parser.end()) tokens.push(token);
  return { tokens, deepAt: null };
}

const HINTS: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'indent with spaces',
  BLOCK_AS_IMPLICIT_KEY: 'put quotes around text that has `: ` in it, or mend the indentation',
  MULTILINE_IMPLICIT_KEY: 'mend the indentation, or put quotes around the text',
  BAD_SCALAR_START: 'put quotes around the text',
  MISSING_CHAR: 'a quote, a bracket or the `:` after a key is missing',
  BAD_INDENT: 'mend the indentation, or close the bracket',
  UNEXPECTED_TOKEN: 'mend the indentation, or put quotes around the text',
};

function syntaxFinding(
  error: { code: string; message: string; pos: readonly [number, number] },
  text: string,
  lines: LineCounter,
): Finding {
  // What is missing at the end of the file is shown behind its last word.
  const position = positionAt(lines, Math.min(error.pos[0], text.trimEnd().length));
  const message = inWords(error.message);
  const hint = hasBareTemplate(text, error.pos[0]) ? QUOTE_TEMPLATE : HINTS[error.code];
  return { code: 'syntax', message, hint, path: [], position };
}

/** The remedy for `key: {{ … }}`, which YAML reads as a mapping in a mapping. */
export const QUOTE_TEMPLATE = 'put quotes around a value that starts with `{`: "{{ … }}"';

function hasBareTemplate(text: string, offset: number): boolean {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  return /(^|[:\-,[]\s+)\{[{%]/.test(text.slice(start, Math.min(offset + 2, start + 1000)));
}

function unknownTag(message: string, position: Position): Finding {
  const tag = message.replace(/^Unresolved tag: (tag:yaml\.org,2002:)?/, '');
  const hint = 'remove the tag; values are what JSON has: text, numbers, true, false, null, lists, mappings';
  return { code: 'not_json', message: `the tag \`${tag}\` is not known`, hint, path: [], position };
}

/** One mistake makes a parser stumble on; of each line the first counts, and nothing after the parser has lost its way. */
function withoutEchoes(findings: readonly Finding[]): readonly Finding[] {
  const lost = findings.findIndex((finding) => finding.message.endsWith(OUT_OF_PLACE));
  const counted = lost <= 0 ? findings.slice(0, lost === 0 ? 1 : undefined) : findings.slice(0, lost);
  const lines = new Set<number | undefined>();
  return counted.filter(({ position }) => {
    if (lines.has(position?.line)) return false;
    lines.add(position?.line);
    return true;
  });
}

const OUT_OF_PLACE = 'does not belong here';
const TOKENS: Readonly<Record<string, string>> = {
  'flow-map-start': '`{`',
  'flow-map-end': '`}`',
  'flow-seq-start': '`[`',
  'flow-seq-end': '`]`',
  'map-value-ind': '`:`',
  'seq-item-ind': '`-`',
  'explicit-key-ind': '`?`',
  'double-quoted-scalar': 'quoted text',
  'single-quoted-scalar': 'quoted text',
  'block-scalar-header': '`|` or `>`',
  scalar: 'text',
  comma: '`,`',
};

/** A sentence of the library in our style. */
function inWords(message: string): string {
  const astray = /^Unexpected ([\w-]+) token in YAML (?:stream|document): "(.*)"$/s.exec(message);
  if (astray !== null) return `${TOKENS[astray[1] ?? ''] ?? `\`${astray[2]}\``} ${OUT_OF_PLACE}`;
  if (/^Flow sequence .* end with a \]$/.test(message)) return 'a `[` is not closed by a `]`';
  if (/^Flow map.* end with a \}$/.test(message)) return 'a `{` is not closed by a `}`';
  return (message.charAt(0).toLowerCase() + message.slice(1))
    .replace(/^unexpected ([\w-]+) at node end$/, (_, token: string) => {
      return `the value has ended; ${TOKENS[token] ?? token} after it is unexpected`;
    })
    .replace('missing closing "quote', 'the closing `"` is missing')
    .replace("missing closing 'quote", "the closing `'` is missing");
}
