/** Time as a dependency: the only file that reads the machine's clocks, so that tests can own them. */

/** Wall-clock and monotonic time in milliseconds. */
export interface Clock {
  /** Milliseconds since the epoch; may jump when the machine's clock is set. */
  now(): number;
  /** Milliseconds since an arbitrary start; never goes back. */
  monotonic(): number;
}

/** The machine's own clocks. */
export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  monotonic: () => performance.now(),
});

/** A clock that moves only when told to; `jump` moves wall time alone, as a set clock does. */
export class ManualClock implements Clock {
  #nowMs: number;
  #monotonicMs = 0;

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#monotonicMs;
  }

  advance(ms: number): void {
    this.#nowMs += ms;
    this.#monotonicMs += ms;
  }

  jump(ms: number): void {
    this.#nowMs += ms;
  }
}
