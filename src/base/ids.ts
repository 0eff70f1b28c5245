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

const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const COUNTS_MAX = 0xfff;
const RANDOM_BYTES = 8;
/** Asking for many random bytes at once costs as much as asking for few. */
const pool = new Uint8Array(512 * RANDOM_BYTES);
let used = pool.length;
let time = 0;
let timeText = '';
let count = 0;

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
  const variant = HEX[0x80 | (byte() & 0x3f)];
  return `${timeText}-7${HEX[count >> 8]?.[1]}${HEX[count & 0xff]}-${variant}${hex()}-${hex()}${hex()}${hex()}${hex()}${hex()}${hex()}`;
}

function setTime(ms: number): void {
  time = ms;
  count = 0;
  const text = ms.toString(16).padStart(12, '0');
  timeText = `${text.slice(0, 8)}-${text.slice(8)}`;
}

function byte(): number {
  used += 1;
  return pool[used - 1] ?? 0;
}

function hex(): string {
  return HEX[byte()] ?? '';
}
