/** The text of a workflow file → plain JSON data, plus the way back from a path to its line and column. */
import { type Document, isMap, isScalar, isSeq, type LineCounter, type Node, type Pair } from 'yaml';
import { type AliasTargets, isMergeKey, keyText, toPlain } from './plain-tree.ts';
import type { Finding, Locate, Path } from './problem.ts';
import { offsetInSource } from './scalar-offset.ts';
import { parseYamlTree, positionAt } from './yaml-tree.ts';

/** A parsed file. When the text cannot be turned into data, `value` is undefined and findings say why. */
export interface SourceDocument {
  readonly value: unknown;
  readonly findings: readonly Finding[];
  readonly locate: Locate;
}

/** Parses YAML 1.2 or JSON. */
export function parseSource(text: string): SourceDocument {
  const { document, lines, findings } = parseYamlTree(text);
  if (document === null || findings.some((finding) => finding.code === 'syntax')) {
    return { value: undefined, findings, locate: () => null };
  }
  if (document.contents === null || document.contents.range[0] === document.contents.range[1]) {
    return { value: undefined, findings: [...findings, EMPTY], locate: () => ({ line: 1, column: 1 }) };
  }
  const { value, findings: found, aliases } = toPlain(document, lines);
  const isUsable = !found.some((finding) => finding.code === 'syntax');
  const locate = locator({ document, lines, text, aliases });
  return { value: isUsable ? value : undefined, findings: [...findings, ...found], locate };
}

const EMPTY: Finding = {
  code: 'empty_file',
  message: 'the file is empty; a workflow has at least `name` and `tasks`',
  hint: '`relay init` writes an example',
  path: [],
};

interface Source {
  readonly document: Document.Parsed;
  readonly lines: LineCounter;
  readonly text: string;
  readonly aliases: AliasTargets;
}

function locator({ document, lines, text, aliases }: Source): Locate {
  return (path, at) => {
    const { key, node } = follow(document.contents, path, aliases);
    if (at.key && key !== null) return positionOf(key, lines);
    const written = aliases.get(node as Node) ?? node;
    if (at.offset !== null && isScalar(written)) {
      return positionAt(lines, (written.range?.[0] ?? 0) + offsetInSource(written, at.offset, text));
    }
    return positionOf(node, lines);
  };
}

interface Place {
  readonly key: unknown;
  readonly node: unknown;
}

/** The node at a path, or the last one on the way that exists. */
function follow(top: unknown, path: Path, aliases: AliasTargets): Place {
  let place: Place = { key: null, node: top };
  for (const part of path) {
    const next = child(aliases.get(place.node as Node) ?? place.node, part, aliases);
    if (next === null) return place;
    place = next;
  }
  return place;
}

function child(node: unknown, part: string | number, aliases: AliasTargets): Place | null {
  if (isSeq(node) && typeof part === 'number') {
    return node.items[part] === undefined ? null : { key: null, node: node.items[part] };
  }
  if (!isMap(node)) return null;
  const pairs = node.items as Pair[];
  const pair = pairs.findLast((item) => !isMergeKey(item) && keyText(item) === String(part));
  if (pair !== undefined) return { key: pair.key, node: pair.value ?? pair.key };
  for (const merge of pairs.filter(isMergeKey)) {
    const source = aliases.get(merge.value as Node) ?? merge.value;
    for (const each of isSeq(source) ? source.items : [source]) {
      const found = child(aliases.get(each as Node) ?? each, part, aliases);
      if (found !== null) return found;
    }
  }
  return null;
}

function positionOf(node: unknown, lines: LineCounter): ReturnType<Locate> {
  const start = (node as Node | null)?.range?.[0];
  return start === undefined ? null : positionAt(lines, start);
}
