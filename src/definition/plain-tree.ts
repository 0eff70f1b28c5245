/**
 * The tree of a YAML file → plain JSON data, in one walk that also notes what the data can no longer show: duplicate
 * keys, numbers that JSON cannot hold, aliases that multiply. Aliases are written out, under a budget.
 */
import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  type LineCounter,
  type Node,
  type Pair,
  type Scalar,
  type YAMLMap,
} from 'yaml';
import { NESTING_DEPTH_MAX } from '../base/limits.ts';
import type { Finding, Position } from './problem.ts';
import { positionAt, QUOTE_TEMPLATE, tooDeep } from './yaml-tree.ts';

/** How much text aliases may stand for, all together; a value counts for its length and this much more. */
const ALIAS_CHARS_MAX = 8 * 1024 * 1024;
const VALUE_CHARS = 16;

/** Aliases and the nodes they stand for. */
export type AliasTargets = ReadonlyMap<Node, Node>;

/** Plain data and what was found on the way; `value` is undefined when the file cannot be turned into data. */
export interface PlainTree {
  readonly value: unknown;
  readonly findings: readonly Finding[];
  readonly aliases: AliasTargets;
}

/** Walks the tree once. */
export function toPlain(document: Document.Parsed, lines: LineCounter): PlainTree {
  const walk = new Walk(lines);
  const value = walk.value(document.contents);
  const isUsable = !walk.isStopped;
  return { value: isUsable ? value : undefined, findings: walk.findings, aliases: walk.aliases };
}

/** The text of a key: `1: x` and `"1": x` are the same key. */
export function keyText(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value ?? '') : '';
}

/** True for `<<`, which takes over the keys of another mapping. */
export function isMergeKey(pair: Pair): boolean {
  return isScalar(pair.key) && pair.key.value === '<<' && pair.key.type === 'PLAIN';
}

class Walk {
  readonly findings: Finding[] = [];
  readonly aliases = new Map<Node, Node>();
  /** Set when going on would cost more than the file can be worth. */
  isStopped = false;
  readonly #lines: LineCounter;
  /** Where the walk stands; copied only into findings. */
  readonly #path: (string | number)[] = [];
  readonly #anchors = new Map<string, Node>();
  #aliasDepth = 0;
  #aliasChars = 0;
  #aliasPosition: Position | null = null;

  constructor(lines: LineCounter) {
    this.#lines = lines;
  }

  value(node: unknown): unknown {
    if (this.isStopped) return null;
    if (this.#path.length > NESTING_DEPTH_MAX) {
      this.#stop(tooDeep(this.#path.slice(0, 6), this.#position(node)));
      return null;
    }
    if (isAlias(node)) return this.#alias(node as Node & { source: string });
    this.#remember(node);
    if (isMap(node)) return this.#map(node);
    if (isSeq(node)) return node.items.map((item, index) => this.#at(index, item));
    return isScalar(node) ? this.#scalar(node) : null;
  }

  #at(part: string | number, node: unknown): unknown {
    this.#path.push(part);
    const value = this.value(node);
    this.#path.pop();
    return value;
  }

  #remember(node: unknown): void {
    const { anchor } = (node ?? {}) as { anchor?: string };
    if (anchor !== undefined && this.#aliasDepth === 0) this.#anchors.set(anchor, node as Node);
    if (this.#aliasDepth === 0) return;
    this.#aliasChars += VALUE_CHARS + (isScalar(node) ? (node.source ?? '').length : 0);
    if (this.#aliasChars <= ALIAS_CHARS_MAX) return;
    const message = 'aliases (`*name`) expand to too much data';
    const hint = 'write the value where it is needed';
    this.#stop({ code: 'too_many_aliases', message, hint, path: [], position: this.#aliasPosition });
  }

  /** An alias means the anchor last seen before it, also when it is met again inside another alias. */
  #alias(alias: Node & { source: string }): unknown {
    const target = this.aliases.get(alias) ?? this.#anchors.get(alias.source);
    if (target === undefined) {
      const message = `there is no anchor \`&${alias.source}\` before this alias`;
      const hint = 'put quotes around text that starts with `*`';
      this.#note({ code: 'syntax', message, hint, position: this.#position(alias) });
      return null;
    }
    this.aliases.set(alias, target);
    if (this.#aliasDepth === 0) this.#aliasPosition = this.#position(alias);
    this.#aliasDepth += 1;
    const value = this.value(target);
    this.#aliasDepth -= 1;
    return value;
  }

  #map(map: YAMLMap): Record<string, unknown> {
    const entries = new Map<string, unknown>();
    const firstAt = new Map<string, unknown>();
    const merges: Pair[] = [];
    for (const pair of map.items as Pair[]) {
      if (isMergeKey(pair)) merges.push(pair);
      else if (this.#isGoodKey(pair)) {
        const key = keyText(pair);
        if (firstAt.has(key)) this.#duplicate(pair, firstAt.get(key));
        else firstAt.set(key, pair.key);
        entries.set(key, this.#at(key, pair.value));
      }
    }
    for (const pair of merges) this.#merge(pair, entries);
    return Object.fromEntries(entries);
  }

  /** Keys of the mapping itself win over merged ones, earlier merged ones over later. */
  #merge(pair: Pair, entries: Map<string, unknown>): void {
    const merged = this.#at('<<', pair.value);
    for (const source of Array.isArray(merged) ? merged : [merged]) {
      if (typeof source !== 'object' || source === null || Array.isArray(source)) {
        const message = '`<<` takes over the keys of a mapping, and this is none';
        this.#note({ code: 'wrong_type', message, position: this.#position(pair.key) });
        return;
      }
      for (const [key, value] of Object.entries(source)) if (!entries.has(key)) entries.set(key, value);
    }
  }

  #isGoodKey(pair: Pair): boolean {
    const position = this.#position(pair.key);
    if (isCollection(pair.key) || isAlias(pair.key)) {
      const hint = isMap(pair.key) ? QUOTE_TEMPLATE : undefined;
      const message = 'a key must be plain text';
      this.#note({ code: 'wrong_type', message, hint, position });
      return false;
    }
    if (keyText(pair) !== '__proto__') return true;
    const message = 'a key cannot be called `__proto__`';
    this.#note({ code: 'unknown_key', message, position }, '__proto__');
    return false;
  }

  #duplicate(pair: Pair, first: unknown): void {
    if (this.#aliasDepth > 0) return;
    const isTask = this.#path.length === 1 && this.#path[0] === 'tasks';
    const key = keyText(pair);
    const line = this.#position(first)?.line;
    const message = `${isTask ? 'task' : 'key'} \`${key}\` is defined twice; the first is on line ${line}`;
    const code = isTask ? 'duplicate_id' : 'duplicate_key';
    const hint = isTask ? 'give one of them another id' : 'remove one of them';
    this.#note({ code, message, hint, position: this.#position(pair.key) }, key);
  }

  #scalar(scalar: Scalar): unknown {
    const { value, source } = scalar;
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
    const isNumber = typeof value === 'number' && Number.isFinite(value);
    const isExact = !/^[-+]?\d+$/.test(source ?? '') || isExactInteger(value as number, source ?? '');
    if (isNumber && isExact) return value === 0 ? 0 : value;
    const message = isNumber
      ? `the integer ${source} is too large to be exact`
      : `\`${source}\` is not a value that JSON can hold`;
    const hint = 'put quotes around it to keep it as text';
    this.#note({ code: 'not_json', message, hint, position: this.#position(scalar) });
    return null;
  }

  #position(node: unknown): Position | null {
    const start = (node as Node | null)?.range?.[0];
    return start === undefined ? null : positionAt(this.#lines, start);
  }

  #note(finding: Omit<Finding, 'path'>, ...key: readonly string[]): void {
    this.findings.push({ ...finding, path: [...this.#path, ...key] });
  }

  #stop(finding: Finding): void {
    this.isStopped = true;
    this.findings.push(finding);
  }
}

/** Whether the number would be written as it was, up to a sign and leading zeros. */
function isExactInteger(value: number, source: string): boolean {
  return (
    Number.isSafeInteger(value) || String(value) === source.replace(/^\+/, '').replace(/^(-?)0+(?=\d)/, '$1')
  );
}
