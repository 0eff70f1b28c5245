/** Identifiers: UUID version 7 (they sort by birth), branded so that one kind never passes for another. */
import { randomFillSync } from 'node:crypto';
import { systemClock } from './clock.ts';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** Names one run. */
export type RunId = Branded<'RunId'>;
/** Names one task in one run. */
export type TaskRunId = Branded<'TaskRunId'>;
/** Names one question to a person. */
export type QuestionId = Branded<'QuestionId'>;

export const newRunId = (): RunId => uuid() as RunId;
export const newTaskRunId = (): TaskRunId => uuid() as TaskRunId;
export const newQuestionId = (): QuestionId => uuid() as QuestionId;

const DIGITS = Buffer.from('0123456789abcdef');
const COUNTS_MAX = 0xfff;
const RANDOM_BYTES = 8;
/** Asking for many random bytes at once costs as much as asking for few. */
const pool = new Uint8Array(512 * RANDOM_BYTES);
let used = pool.length;
let time = 0;
let count = 0;
/** The id as text, written over and over: putting it together from small texts would leave each of them behind. */
const text = Buffer.from('00000000-0000-7000-8000-000000000000');
const COUNT_AT = 15;
const RANDOM_AT = [19, 21, 24, 26, 28, 30, 32, 34] as const;

/** 48 bits of time, 12 that count within a millisecond, 62 that are random (RFC 9562). A clock that goes back does not matter. */
function uuid(): string {
  const now = systemClock.now();
  if (now > time) setTime(now);
  else if (count === COUNTS_MAX) setTime(time + 1);
  else count += 1;
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  text[COUNT_AT] = DIGITS[count >> 8] as number;
  writeByte(COUNT_AT + 1, count & 0xff);
  for (const at of RANDOM_AT) writeByte(at, pool[used++] as number);
  // The two bits of the variant.
  text[RANDOM_AT[0]] = DIGITS[8 | ((pool[used - RANDOM_BYTES] as number) & 3)] as number;
  return text.toString('latin1');
}

function setTime(ms: number): void {
  time = ms;
  count = 0;
  const digits = ms.toString(16).padStart(12, '0');
  text.write(`${digits.slice(0, 8)}-${digits.slice(8)}`, 'latin1');
}

function writeByte(at: number, byte: number): void {
  text[at] = DIGITS[byte >> 4] as number;
  text[at + 1] = DIGITS[byte & 0xf] as number;
}
