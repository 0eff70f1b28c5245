/** One timer for everything that is due at some time: it rings at the earliest, and whoever is rung sets it again. */
import type { Clock } from '../base/clock.ts';

/** Timers of Node overflow beyond about 25 days; ringing early is harmless. */
const DELAY_MS_MAX = 3_600_000;

/** Rings once at the earliest moment it was set to. Times are monotonic milliseconds. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #at = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings at `at`, unless it would ring before. */
  setBy(at: number): void {
    if (at >= this.#at) return;
    this.#at = at;
    clearTimeout(this.#timer);
    const delayMs = Math.ceil(at - this.#clock.monotonic());
    this.#timer = setTimeout(
      () => {
        this.#at = Number.POSITIVE_INFINITY;
        this.#ring();
      },
      Math.min(Math.max(delayMs, 1), DELAY_MS_MAX),
    );
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#at = Number.POSITIVE_INFINITY;
  }
}
