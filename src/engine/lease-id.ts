/** Lease ids: unguessable, new for every claim, and they say which row and attempt they belong to, so no index is needed. */
import { randomFillSync } from 'node:crypto';

/** What nobody can guess of a lease id, in bytes; in text it is twice as long. */
const SECRET_BYTES = 18;
/** Asking for many random bytes at once costs as much as asking for few. */
const pool = Buffer.alloc(256 * SECRET_BYTES);
let used = pool.length;

const LEASE_ID = /^[0-9a-z]{1,10}\.[0-9a-z]{1,6}\.[0-9a-f-]{36}$/;

/** A fresh lease for an attempt. */
export function newLeaseId(task_key: number, attempt: number): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += SECRET_BYTES;
  const secret = pool.toString('hex', used - SECRET_BYTES, used);
  return `${task_key.toString(36)}.${attempt.toString(36)}.${secret}`;
}

/** The row and attempt a lease id names, or null when the text is no lease id. */
export function parseLeaseId(lease_id: string): { task_key: number; attempt: number } | null {
  if (!LEASE_ID.test(lease_id)) return null;
  // A number ends at the point.
  const attempt = lease_id.slice(lease_id.indexOf('.') + 1);
  return { task_key: Number.parseInt(lease_id, 36), attempt: Number.parseInt(attempt, 36) };
}
