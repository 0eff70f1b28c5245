/** Values on their way to Postgres and back, in its text formats. The one place where text it cannot hold is replaced. */
import { invariant } from '../../base/invariant.ts';

/** A parameter as it is sent. */
export type Param = string | Buffer | null;

/** A value that a statement takes. */
export type Value =
  | string
  | number
  | boolean
  | null
  | Uint8Array
  | readonly number[]
  | readonly (string | null)[];

/** The text of one value. */
export function toParam(value: Value): Param {
  if (value === null) return null;
  if (typeof value === 'string') return clean(value);
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return typeof value === 'object' ? arrayLiteral(value) : String(value);
}

/** `{1,2,null,"text"}`. Joined, not added up: a text of many parts is garbage many times its size. */
export function arrayLiteral(values: readonly unknown[]): string {
  const isPlain = values.every((value) => typeof value === 'number');
  return `{${(isPlain ? values : values.map(element)).join()}}`;
}

function element(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  return typeof value === 'number' ? String(value) : quoted(String(value));
}

function quoted(text: string): string {
  return SPECIAL.test(text) ? `"${clean(text).replace(/["\\]/g, '\\$&')}"` : `"${text}"`;
}

const SPECIAL = /["\\\0]/;

/** Postgres holds no NUL in text. Lone surrogates become U+FFFD when the text is encoded. */
function clean(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text;
}

const BYTEA = 17;
const NUMBERS: ReadonlySet<number> = new Set([20, 21, 23, 701]);
const BOOLEAN = 16;

type Decode = (text: string) => unknown;

/** How values of a type are read; null means that the text is the value. */
export function decoderOf(typeId: number): Decode | null {
  if (NUMBERS.has(typeId)) return toNumber;
  if (typeId === BYTEA) return (text) => Buffer.from(text.slice(2), 'hex');
  return typeId === BOOLEAN ? (text) => text === 't' : null;
}

function toNumber(text: string): number {
  const value = Number(text);
  invariant(Number.isSafeInteger(value) || text.includes('.') || text.includes('e'), `${text} fits a number`);
  return value;
}
