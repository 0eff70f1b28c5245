/** How many tasks the workers on a broker can have at work at once; what they may be sent ahead depends on it. */
import type { WorkerRow } from '../stores/rows.ts';

/** How often a worker on a broker writes down that it is there, and how long it is believed. */
export const SEEN_EVERY_MS = 10_000;
const BELIEVED_MS = 6 * SEEN_EVERY_MS;

interface FleetInfo {
  readonly broker_concurrency?: number;
}

/** The sum over workers that consume from a broker and were heard of lately. */
export function fleetConcurrency(workers: readonly WorkerRow[], now: number): number {
  return workers
    .filter((worker) => worker.status === 'ACTIVE' && worker.seen_at > now - BELIEVED_MS)
    .map((worker) => (JSON.parse(worker.info) as FleetInfo).broker_concurrency ?? 0)
    .reduce((sum, slots) => sum + slots, 0);
}
