/** Requests that may be repeated: the first answer is kept with the change itself (SPEC S4.7). */
import { createHash } from 'node:crypto';
import { RelayError } from '../base/errors.ts';
import type { IdempotencyRow, RunRow } from '../stores/rows.ts';
import type { Tx } from '../stores/store.ts';
import type { Work } from './work.ts';

/** How long a key is kept; that of a start lives as long as its run. */
export const KEY_LIFE_MS = 7 * 86_400_000;

/** A request under a key. */
export interface KeyedRequest {
  readonly operation: string;
  readonly caller: string;
  readonly key: string;
  readonly request: unknown;
}

/** Does something once per key. A refused request burns none: the record is written in the transaction of the change. */
export async function doOnce<T>(
  work: Work,
  keyed: KeyedRequest,
  action: (work: Work) => Promise<T>,
): Promise<T> {
  let known = await find(work.tx, keyed);
  if (known !== null && known.run_key === null && known.created_at < work.now - KEY_LIFE_MS) {
    await work.tx.idempotency.expire(work.now - KEY_LIFE_MS);
    known = null;
  }
  if (known !== null) return JSON.parse(known.answer) as T;
  const result = await action(work);
  await work.tx.idempotency.record({
    scope: scopeOf(keyed),
    idempotency_key: keyed.key,
    digest: digestOf(keyed.request),
    answer: JSON.stringify(result ?? null),
    run_key: keyed.operation === 'runs.start' ? (result as RunRow).key : null,
    created_at: work.now,
  });
  return result;
}

/** Whether a request was done before under its key; another one under the same key is a conflict. */
export async function isDone(tx: Tx, keyed: KeyedRequest): Promise<boolean> {
  return (await find(tx, keyed)) !== null;
}

async function find(tx: Tx, keyed: KeyedRequest): Promise<IdempotencyRow | null> {
  const known = await tx.idempotency.find(scopeOf(keyed), keyed.key);
  if (known !== null && known.digest !== digestOf(keyed.request))
    throw new RelayError('IDEMPOTENCY_CONFLICT', `the key ${keyed.key} was used with another request`);
  return known;
}

function scopeOf({ caller, operation }: KeyedRequest): string {
  return `${caller} ${operation}`;
}

function digestOf(request: unknown): string {
  return createHash('sha256').update(JSON.stringify(request)).digest('hex');
}
