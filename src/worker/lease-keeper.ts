/**
 * The leases a worker holds: signs of life for all of them in one call, orders that come back, and deadlines by the worker's
 * own monotonic clock (SPEC S6.1, S6.3). A lease is held until its settlement has arrived, so a result waiting for a store
 * that is away does not lose it.
 */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { traceIdOf } from '../base/trace.ts';
import type { Attempt } from './attempt.ts';
import type { HeartbeatAnswer, Settlement, WorkSource } from './work-source.ts';

const RETRY_MS = 1_000;
const BEATS_PER_LEASE = 3;

/** What a keeper needs. */
export interface LeaseKeeperOptions {
  readonly source: Pick<WorkSource, 'extend'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when a handler that was told to stop has not stopped in time. */
  readonly onAbandon: (attempt: Attempt) => void;
}

/** Holds leases and keeps them alive. */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions;
  readonly #held = new Map<string, Attempt>();
  #beatAt = Number.POSITIVE_INFINITY;
  /** No deadline of a held attempt is before this. */
  #deadlineAt = Number.POSITIVE_INFINITY;
  #beating: Promise<void> | null = null;

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#held.size;
  }

  /** The moment at which `enforce` or `beatDue` may have something to do. */
  get dueAt(): number {
    return Math.min(this.#beatAt, this.#deadlineAt);
  }

  get(leaseId: string): Attempt | undefined {
    return this.#held.get(leaseId);
  }

  add(attempt: Attempt, now: number): void {
    this.#held.set(attempt.lease.lease_id, attempt);
    this.#beatAt = Math.min(this.#beatAt, now + attempt.lease.lease_ms / BEATS_PER_LEASE);
    this.#deadlineAt = Math.min(this.#deadlineAt, deadlineOf(attempt));
  }

  /** Sends the next heartbeat by a moment, not later. */
  beatBy(at: number): void {
    this.#beatAt = Math.min(this.#beatAt, at);
  }

  remove(leaseId: string): void {
    this.#held.delete(leaseId);
  }

  /** Tells every handler to stop. */
  stopAll(cause: 'shutdown', now: number): void {
    for (const attempt of this.#held.values()) attempt.stop(cause, now);
    this.#deadlineAt = now;
  }

  /** Stops what has run out of time or of lease, and leaves behind what does not stop. */
  enforce(now: number): void {
    if (now < this.#deadlineAt) return;
    let next = Number.POSITIVE_INFINITY;
    for (const attempt of this.#held.values()) {
      if (attempt.isOver) continue;
      if (now >= attempt.abandonAt) {
        this.#options.onAbandon(attempt);
        continue;
      }
      if (now >= attempt.timeoutAt) attempt.stop('timeout', now);
      if (now >= attempt.expiresAt) attempt.stop('expired', now);
      next = Math.min(next, deadlineOf(attempt));
    }
    this.#deadlineAt = next;
  }

  /** Sends heartbeats when they are due. Never rejects. */
  async beatDue(now: number): Promise<void> {
    if (now >= this.#beatAt) await this.beat();
  }

  /** Sends a heartbeat for every lease, one call at a time. Never rejects: the next one follows soon. */
  async beat(): Promise<void> {
    if (this.#beating !== null) return this.#beating;
    this.#beating = this.#beat();
    try {
      await this.#beating;
    } finally {
      this.#beating = null;
    }
  }

  /** Sends what attempts that did not succeed have kept for the next one. Tried once more if a heartbeat was under way. */
  async sendCheckpoints(settlements: readonly Settlement[]): Promise<void> {
    const isUnsent = ({ kind, lease_id }: Settlement): boolean =>
      kind !== 'complete' && this.#held.get(lease_id)?.hasUnsentCheckpoint === true;
    const wasBeating = this.#beating !== null;
    if (!settlements.some(isUnsent)) return;
    await this.beat();
    if (wasBeating && settlements.some(isUnsent)) await this.beat();
  }

  async #beat(): Promise<void> {
    const { source, clock, logger } = this.#options;
    const sentAt = clock.monotonic();
    const sent = [...this.#held.values()].map((attempt) => ({ attempt, ...attempt.heartbeat() }));
    this.#beatAt = Number.POSITIVE_INFINITY;
    if (sent.length === 0) return;
    try {
      const answers = await source.extend(sent.map(({ beat }) => beat));
      for (const { arrived } of sent) arrived();
      for (const answer of answers) this.#obey(answer, sentAt);
      this.#planBeat(sentAt, Number.POSITIVE_INFINITY);
    } catch (error) {
      logger.warn('worker.heartbeat_failed', { leases: sent.length, error });
      this.#planBeat(clock.monotonic(), RETRY_MS);
    }
  }

  #planBeat(now: number, delayMsMax: number): void {
    for (const { lease } of this.#held.values()) {
      this.#beatAt = Math.min(this.#beatAt, now + Math.min(lease.lease_ms / BEATS_PER_LEASE, delayMsMax));
    }
  }

  /** The new expiry counts from when the heartbeat was sent: the source cannot have counted from earlier. */
  #obey({ lease_id, order, expires_in_ms }: HeartbeatAnswer, sentAt: number): void {
    const attempt = this.#held.get(lease_id);
    if (attempt === undefined) return;
    if (order === 'continue') {
      attempt.expiresAt = sentAt + expires_in_ms;
      return;
    }
    const { task_id, trace } = attempt.lease;
    const trace_id = traceIdOf(trace);
    this.#options.logger.info('worker.lease_ended', { lease_id, order, task_id, trace_id });
    const now = this.#options.clock.monotonic();
    attempt.stop(order === 'cancel' ? 'cancelled' : 'lost', now);
    this.#deadlineAt = Math.min(this.#deadlineAt, deadlineOf(attempt));
  }
}

function deadlineOf({ stopCause, abandonAt, timeoutAt, expiresAt }: Attempt): number {
  return stopCause === null ? Math.min(timeoutAt, expiresAt) : abandonAt;
}
