/**
 * The breaker of one process (SPEC S10.4): two outages without a success between them open it, for the cooldown. A single outage may be
 * chance; from the second on, every further send would only wait for a broker that is away. Pure.
 */

/** How many outages there were since the last success, and until when nothing is started. */
export interface Breaker {
  readonly outages: number;
  readonly openUntil: number;
}

/** Outages in a row that open it. */
const OUTAGES_MAX = 2;

export const CLOSED: Breaker = Object.freeze({ outages: 0, openUntil: 0 });

/** After an outage. After the cooldown one more is enough: the broker has not been heard of since. */
export function afterOutage({ outages, openUntil }: Breaker, now: number, cooldownMs: number): Breaker {
  const count = outages + 1;
  return { outages: count, openUntil: count >= OUTAGES_MAX ? now + cooldownMs : openUntil };
}

/** How long nothing may be started. */
export function openForMs({ openUntil }: Breaker, now: number): number {
  return Math.max(0, openUntil - now);
}
