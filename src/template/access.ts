/**
 * `value.name`, `value[key]` and `value[from:to:by]`. Only own properties of maps, elements of lists and characters of text can be
 * reached: no prototype, no method, no getter of anything else. What is missing is undefined, with a reason told when it is used.
 */
import { didYouMean } from '../base/suggest.ts';
import { characterAt, charactersOf } from './characters.ts';
import { isKey } from './compare.ts';
import { METHODS } from './methods.ts';
import { type LoopHeld, Opaque, refuse, undefinedAt } from './opaque.ts';
import { quoted } from './position.ts';
import { charge, fail, type Rendering, spend } from './rendering.ts';
import { isMap, kindOf } from './values.ts';

/** Where in a text something is read, for messages. Offsets only: long chains have many sites and few errors. */
export interface Site {
  readonly text: string;
  /** The owner stands from `start` to `middle`, the step from there to `end`. */
  readonly start: number;
  readonly middle: number;
  readonly end: number;
  /** Offset of the error in the source; `start`, unless the text is not the source. */
  readonly at: number;
  /** The task whose output the owner is, if it is `tasks.<id>.output`. */
  readonly taskId: string | null;
}

/** Names that are worth a suggestion: comparing takes the product of their lengths, and data can have very long keys. */
const SUGGESTED_CHARS_MAX = 64;
const SUGGESTED_FROM_MAX = 1000;

/** The attribute of a value. */
export function readAttribute(rendering: Rendering, owner: unknown, name: string, site: Site): unknown {
  if (typeof owner === 'object' && owner !== null) {
    if (owner instanceof Opaque) return readOpaque(rendering, owner, name, site);
    if (Array.isArray(owner)) return readGroup(owner, name, site);
    if (Object.hasOwn(owner, name)) return present(owner, name, site);
  }
  return missing(owner, name, site);
}

/** The element of a value at a computed key. */
export function readIndex(rendering: Rendering, owner: unknown, key: unknown, site: Site): unknown {
  if (typeof key === 'string') return readAttribute(rendering, owner, key, site);
  if (owner instanceof Opaque) return refuse(rendering, owner);
  if (isMap(owner) && isKey(key)) return readAttribute(rendering, owner, String(key), site);
  const isText = typeof owner === 'string';
  if (!isText && !Array.isArray(owner)) return missing(owner, String(isKey(key) ? key : kindOf(key)), site);
  if (typeof key !== 'number' || !Number.isInteger(key)) {
    const message = `${quoted(ownerText(site))} is ${kindOf(owner)}, so its index must be a whole number, not ${kindOf(key)}`;
    return undefinedAt(site.at, () => ({ message }));
  }
  const element: unknown = isText ? characterAt(rendering, owner, key) : owner.at(key);
  if (element !== undefined) return element;
  return undefinedAt(site.at, () => {
    const size = isText ? `${owner.length} characters` : `${owner.length} elements`;
    return { message: `${quoted(wholeText(site))} is undefined: ${quoted(ownerText(site))} has ${size}` };
  });
}

/** A part of a list or a text. Bounds are whole numbers or none; negative ones count from the end. */
export function readSlice(
  rendering: Rendering,
  owner: unknown,
  bounds: { from: unknown; to: unknown; by: unknown },
): unknown {
  const isText = typeof owner === 'string';
  if (!isText && !Array.isArray(owner)) return fail(rendering, 'type', `${kindOf(owner)} cannot be sliced`);
  const items: readonly unknown[] = isText ? charactersOf(rendering, owner) : owner;
  const by = bound(rendering, bounds.by, 1);
  if (by === 0) return fail(rendering, 'type', 'the step of a slice cannot be zero');
  const length = items.length;
  const [low, high] = by > 0 ? [0, length] : [-1, length - 1];
  const clamp = (value: number): number => Math.min(high, Math.max(low, value < 0 ? value + length : value));
  const from = bounds.from === null ? (by > 0 ? 0 : length - 1) : clamp(bound(rendering, bounds.from, 0));
  const to = bounds.to === null ? (by > 0 ? length : -1) : clamp(bound(rendering, bounds.to, 0));
  const count = Math.max(0, Math.ceil((to - from) / by));
  spend(rendering, count);
  charge(rendering, count);
  const taken = Array.from({ length: count }, (_, index) => items[from + index * by]);
  return isText ? taken.join('') : taken;
}

/** Something undefined because a map (or the scope) lacks a name; near names become the hint. */
export function missingName(site: Site, name: string, known: () => Iterable<string>): Opaque {
  return undefinedAt(site.at, () => {
    // A computed key does not show in the source, so the message has to show it.
    const key = stepText(site).includes(name) ? '' : `: there is no key ${quoted(name)}`;
    const message = `${quoted(wholeText(site))} is undefined${key}`;
    return { message, hint: dashHint(site) ?? callHint(name) ?? suggestion(name, known()) };
  });
}

function bound(rendering: Rendering, value: unknown, fallback: number): number {
  if (value === null) return fallback;
  if (typeof value === 'number' && Number.isInteger(value)) return value;
  return fail(rendering, 'type', `the bounds of a slice are whole numbers, not ${kindOf(value)}`);
}

function present(owner: object, name: string, site: Site): unknown {
  const value = (owner as Record<string, unknown>)[name];
  return value === undefined ? missingName(site, name, () => Object.keys(owner)) : value;
}

/** A pair made by `groupby` answers to `.grouper` and `.list`; lists have no other attributes. */
function readGroup(owner: unknown[], name: string, site: Site): unknown {
  if ((name === 'grouper' || name === 'list') && Object.hasOwn(owner, 'grouper')) {
    return owner[name === 'grouper' ? 0 : 1];
  }
  return missing(owner, name, site);
}

function readOpaque(rendering: Rendering, owner: Opaque, name: string, site: Site): unknown {
  const { held } = owner;
  if (held.kind === 'undefined') return refuse(rendering, owner);
  if (held.kind === 'loop') return readLoop(held, name, site);
  const value = held.fields.get(name);
  return value === undefined ? missingName(site, name, () => held.fields.keys()) : value;
}

const LOOP_FIELDS: Readonly<Record<string, (loop: LoopHeld) => unknown>> = {
  index: (loop) => loop.index0 + 1,
  index0: (loop) => loop.index0,
  revindex: (loop) => loop.items.length - loop.index0,
  revindex0: (loop) => loop.items.length - loop.index0 - 1,
  first: (loop) => loop.index0 === 0,
  last: (loop) => loop.index0 === loop.items.length - 1,
  length: (loop) => loop.items.length,
  previtem: (loop) => loop.items[loop.index0 - 1],
  nextitem: (loop) => loop.items[loop.index0 + 1],
};

function readLoop(loop: LoopHeld, name: string, site: Site): unknown {
  const field = Object.hasOwn(LOOP_FIELDS, name) ? LOOP_FIELDS[name] : undefined;
  const value = field?.(loop);
  return value === undefined ? missingName(site, name, () => Object.keys(LOOP_FIELDS)) : value;
}

function missing(owner: unknown, name: string, site: Site): Opaque {
  if (isMap(owner)) return missingName(site, name, () => Object.keys(owner));
  return undefinedAt(site.at, () => {
    if (owner !== null) {
      const message = `${quoted(ownerText(site))} is ${kindOf(owner)}, so \`${stepText(site)}\` cannot be read`;
      return { message, hint: callHint(name) };
    }
    const skipped = site.taskId === null ? '' : ` (task \`${site.taskId}\` has no output; was it skipped?)`;
    return {
      message: `${quoted(ownerText(site))} is none, so \`${stepText(site)}\` cannot be read${skipped}`,
    };
  });
}

/** A method is found only where it is called. */
function callHint(name: string): string | undefined {
  return METHODS.has(name) ? `call it: \`.${name}()\`` : undefined;
}

/** `tasks.my-task` reads as a subtraction; whoever wrote it meant a name. */
function dashHint(site: Site): string | undefined {
  if (site.text[site.end] !== '-') return undefined;
  const after = site.text.slice(site.end, site.end + SUGGESTED_CHARS_MAX);
  const tail = /^(?:-[\p{ID_Start}_]\p{ID_Continue}*)+/u.exec(after)?.[0];
  if (tail === undefined) return undefined;
  const owner = ownerText(site) || 'tasks';
  return `names with \`-\` need brackets: ${owner}['${stepText(site).replace(/^\./, '')}${tail}']`;
}

function suggestion(name: string, known: Iterable<string>): string | undefined {
  if (name.length > SUGGESTED_CHARS_MAX) return undefined;
  const candidates: string[] = [];
  for (const candidate of known) {
    if (candidate.length <= SUGGESTED_CHARS_MAX) candidates.push(candidate);
    if (candidates.length === SUGGESTED_FROM_MAX) break;
  }
  return didYouMean(name, candidates);
}

const ownerText = (site: Site): string => site.text.slice(site.start, site.middle);
const stepText = (site: Site): string => site.text.slice(site.middle, site.end).trim();
const wholeText = (site: Site): string => site.text.slice(site.start, site.end);
