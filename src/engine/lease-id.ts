/** Lease ids: unguessable, new for every claim, and they say which row and attempt they belong to, so no index is needed. */
import { randomUUID } from 'node:crypto';

const LEASE_ID = /^[0-9a-z]{1,10}\.[0-9a-z]{1,6}\.[0-9a-f-]{36}$/;

/** A fresh lease for an attempt. */
export function newLeaseId(task_key: number, attempt: number): string {
  return `${task_key.toString(36)}.${attempt.toString(36)}.${randomUUID()}`;
}

/** The row and attempt a lease id names, or null when the text is no lease id. */
export function parseLeaseId(lease_id: string): { task_key: number; attempt: number } | null {
  if (!LEASE_ID.test(lease_id)) return null;
  // A number ends at the point.
  const attempt = lease_id.slice(lease_id.indexOf('.') + 1);
  return { task_key: Number.parseInt(lease_id, 36), attempt: Number.parseInt(attempt, 36) };
}
