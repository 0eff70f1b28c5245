/** Filters for text that goes into HTML or addresses. */
import type { Operation } from '../operation.ts';
import { charge, fail, type Rendering, spend, spendOnText } from '../rendering.ts';
import { textOf } from '../text.ts';
import { isMap, itemsOf, kindOf, pairsOf } from '../values.ts';

const HTML: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
};
const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
};

const escapeHtml: Operation = {
  params: [],
  run: (rendering, subject) => {
    const text = textOf(rendering, subject);
    spendOnText(rendering, text.length);
    charge(rendering, text.length);
    const escaped = text.replace(/[&<>"']/g, (character) => HTML[character] ?? character);
    charge(rendering, escaped.length - text.length);
    return escaped;
  },
};

const striptags: Operation = {
  params: [],
  run: (rendering, subject) => {
    const text = textOf(rendering, subject);
    spendOnText(rendering, text.length);
    charge(rendering, text.length);
    const plain = without(without(text, '<!--', '-->'), '<', '>');
    return plain
      .replace(/\s+/g, ' ')
      .trim()
      .replace(/&(#?\w{1,8});/g, readEntity);
  },
};

const urlencode: Operation = {
  params: [],
  run: (rendering, subject) => {
    if (!isMap(subject) && !Array.isArray(subject))
      return percent(rendering, textOf(rendering, subject), '/');
    const pairs = isMap(subject) ? pairsOf(rendering, subject) : itemsOf(rendering, subject);
    const fields = pairs.map((pair) => {
      spend(rendering, 1);
      if (!Array.isArray(pair) || pair.length !== 2) {
        return fail(rendering, 'type', `expected a pair of name and value, found ${kindOf(pair)}`);
      }
      return pair
        .map((part) => percent(rendering, textOf(rendering, part), '').replaceAll('%20', '+'))
        .join('=');
    });
    return fields.join('&');
  },
};

/** Filters for markup, by name. */
export const MARKUP_FILTERS = { escape: escapeHtml, e: escapeHtml, striptags, urlencode } satisfies Record<
  string,
  Operation
>;

/** A text without what stands between two marks; an open mark without its end stays. Linear in the text. */
function without(text: string, open: string, close: string): string {
  let kept = '';
  let at = 0;
  for (let start = text.indexOf(open); start !== -1; start = text.indexOf(open, at)) {
    const end = text.indexOf(close, start + open.length);
    if (end === -1) break;
    kept += text.slice(at, start);
    at = end + close.length;
  }
  return kept + text.slice(at);
}

function readEntity(written: string, name: string): string {
  if (!name.startsWith('#')) return Object.hasOwn(ENTITIES, name) ? (ENTITIES[name] ?? written) : written;
  const isHex = name[1] === 'x' || name[1] === 'X';
  const code = isHex ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
  return Number.isInteger(code) && code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : written;
}

function percent(rendering: Rendering, text: string, unescaped: '/' | ''): string {
  spendOnText(rendering, text.length);
  charge(rendering, text.length);
  // Half a surrogate pair has no encoding; it becomes the replacement character.
  const encoded = encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'))
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%2F', unescaped === '/' ? '/' : '%2F');
  charge(rendering, encoded.length - text.length);
  return encoded;
}
