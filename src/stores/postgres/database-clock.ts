/**
 * The time of the database (DESIGN "Data model"). Processes on one store share leases and timers, so they must agree on the time,
 * and their machines may not. Between two looks at the database's clock the machine's monotonic clock counts on, so that a wall
 * clock that is set changes nothing. Before the first look it is the machine's time.
 */
import type { Clock } from '../../base/clock.ts';

/** An answer that took longer than this says too little about when it was given. */
const ROUND_TRIP_MAX_MS = 1_000;

/** A clock that is set by what the database says. */
export class DatabaseClock implements Clock {
  readonly #machine: Clock;
  /** Database time less the machine's monotonic time. */
  #aheadMs: number | null = null;

  constructor(machine: Clock) {
    this.#machine = machine;
  }

  now(): number {
    if (this.#aheadMs === null) return this.#machine.now();
    return Math.round(this.#machine.monotonic() + this.#aheadMs);
  }

  monotonic(): number {
    return this.#machine.monotonic();
  }

  /** Takes in the database's time, asked for at a moment of the monotonic clock and heard of just now. */
  set(databaseMs: number, askedAt: number): void {
    const heardAt = this.#machine.monotonic();
    if (this.#aheadMs !== null && heardAt - askedAt > ROUND_TRIP_MAX_MS) return;
    this.#aheadMs = databaseMs - (askedAt + heardAt) / 2;
  }
}
