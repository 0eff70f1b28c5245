/** Lease ids: unguessable, new for every claim, and they say which row and attempt they belong to, so no index is needed. */
import { randomUUID } from 'node:crypto';

/** A fresh lease for an attempt. */
export function newLeaseId(task_key: number, attempt: number): string {
  return `${task_key.toString(36)}.${attempt.toString(36)}.${randomUUID()}`;
}

/** The row and attempt a lease id names, or null when the text is no lease id. */
export function parseLeaseId(lease_id: string): { task_key: number; attempt: number } | null {
  const match = /^([0-9a-z]{1,10})\.([0-9a-z]{1,6})\.[0-9a-f-]{36}$/.exec(lease_id);
  if (match === null) return null;
  return { task_key: Number.parseInt(match[1] ?? '', 36), attempt: Number.parseInt(match[2] ?? '', 36) };
}
