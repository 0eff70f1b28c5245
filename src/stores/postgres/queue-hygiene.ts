/**
 * Keeps the queue tables short. Rows are added at one end and removed at the other; until a vacuum, every claim walks over those
 * that are gone, and autovacuum looks only once a minute. So whoever has removed many asks for one, beside the work and never twice.
 */
import type { Connections } from './connections.ts';

const ROWS_MIN = 5_000;
const PAUSE_MS = 1_000;
/** A table that another process vacuums at the moment is left to it. */
const VACUUM =
  'vacuum (truncate off, skip_locked) claimable, leases, timers, task_marks, held_tasks, limit_grants, outbox, outbox_marks';

/** Counts removed rows and vacuums when there are enough. */
export class QueueHygiene {
  readonly #connections: Connections;
  #removed = 0;
  #nextAt = 0;
  #running: Promise<unknown> | null = null;

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  /** A commit has removed this many rows from queue tables. */
  note(rows: number): void {
    this.#removed += rows;
    if (this.#removed < ROWS_MIN || this.#running !== null || performance.now() < this.#nextAt) return;
    this.#removed = 0;
    this.#running = this.#connections
      .withReader((session) => session.send([{ name: '', text: VACUUM, params: [] }]))
      // Only an owner may vacuum, and a server may be away: autovacuum does it later.
      .catch(() => {})
      .finally(() => {
        this.#running = null;
        this.#nextAt = performance.now() + PAUSE_MS;
      });
  }

  /** Waits for one that is under way. */
  async stop(): Promise<void> {
    await this.#running;
  }
}
