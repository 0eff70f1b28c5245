/**
 * When to try again, and when to stop (SPEC S5.2–S5.4). Times and randomness come in; a decision goes out. All delays
 * are whole milliseconds and finite. Counting attempts and losses is the store's work.
 */
import { invariant } from '../base/invariant.ts';
import { isRetryable, type TaskFailure } from './failure.ts';
import type { FailureReason } from './states.ts';

/** How often and how patiently a task is tried. */
export interface RetryPolicy {
  readonly maxAttempts: number;
  readonly maxLosses: number;
  readonly initialMs: number;
  readonly factor: number;
  readonly maxMs: number;
  /** The share of the delay that chance may take off, 0 to 1. */
  readonly jitter: number;
  readonly onOutputError: boolean;
  /** The longest `Retry-After` worth waiting for. */
  readonly afterMaxMs: number;
}

/** Gives a number from 0 (included) to 1 (not included). */
export type Random = () => number;

/** What follows a failure: another try at a time, or the end and why. */
export type RetryDecision =
  | { readonly outcome: 'retry'; readonly notBeforeMs: number }
  | { readonly outcome: 'dead'; readonly reason: FailureReason };

/** The defaults of SPEC S14.6. */
export const DEFAULT_RETRY_POLICY: RetryPolicy = Object.freeze({
  maxAttempts: 3,
  maxLosses: 10,
  initialMs: 1_000,
  factor: 2,
  maxMs: 60_000,
  jitter: 0.5,
  onOutputError: true,
  afterMaxMs: 3_600_000,
});

/** What follows a failed attempt; `attemptsSpent` counts this failure too. */
export function decideAfterFailure(
  policy: RetryPolicy,
  facts: {
    readonly attemptsSpent: number;
    readonly failure: TaskFailure;
    readonly nowMs: number;
    readonly random: Random;
  },
): RetryDecision {
  const { attemptsSpent, failure, nowMs, random } = facts;
  const askedMs = failure.retryAfterMs ?? 0;
  if (!isRetryable(failure) || askedMs > policy.afterMaxMs) return { outcome: 'dead', reason: 'terminal' };
  if (failure.class === 'output' && !policy.onOutputError) return { outcome: 'dead', reason: 'terminal' };
  if (attemptsSpent >= policy.maxAttempts) return { outcome: 'dead', reason: 'exhausted' };
  const delayMs = Math.max(backoffMs(policy, attemptsSpent, random), Math.ceil(askedMs));
  return { outcome: 'retry', notBeforeMs: nowMs + delayMs };
}

/** What follows a lost worker; `losses` counts this loss too. */
export function decideAfterLoss(
  policy: RetryPolicy,
  facts: { readonly losses: number; readonly nowMs: number; readonly random: Random },
): RetryDecision {
  const { losses, nowMs, random } = facts;
  if (losses >= policy.maxLosses) return { outcome: 'dead', reason: 'exhausted' };
  return { outcome: 'retry', notBeforeMs: nowMs + backoffMs(policy, losses, random) };
}

/** The delay after the n-th failure (from 1): min(initial × factor^(n−1), max) × (1 − jitter × random). */
export function backoffMs(
  policy: Pick<RetryPolicy, 'initialMs' | 'factor' | 'maxMs' | 'jitter'>,
  n: number,
  random: Random,
): number {
  invariant(n >= 1, 'failures are counted from 1');
  // Zero times an overflown power would not be a number.
  if (policy.initialMs === 0) return 0;
  const fullMs = Math.min(policy.initialMs * policy.factor ** (n - 1), policy.maxMs);
  return Math.round(fullMs * (1 - policy.jitter * random()));
}

const RELEASE_BACKOFF = Object.freeze({ initialMs: 1_000, factor: 2, maxMs: 60_000, jitter: 0 });

/** The delay after the n-th release in a row without progress: none for the first, then 1s, 2s, 4s … at most 60s. */
export function releaseDelayMs(releasesInRow: number): number {
  return releasesInRow <= 1 ? 0 : backoffMs(RELEASE_BACKOFF, releasesInRow - 1, () => 0);
}

const SECONDS = /^[+-]?\d+(\.\d+)?$/;
const TIME = '\\d{2}:\\d{2}:\\d{2}';
const TODAYS_DATE = new RegExp(`^[A-Z][a-z]{2}, \\d{2} [A-Z][a-z]{2} \\d{4} ${TIME} GMT$`);
const RFC_850_DATE = new RegExp(`^[A-Z][a-z]+day, (\\d{2})-([A-Z][a-z]{2})-(\\d{2}) (${TIME} GMT)$`);
const ASCTIME_DATE = new RegExp(`^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \\d]\\d ${TIME} \\d{4}$`);

/** How long a `Retry-After` header asks to wait, from seconds or an HTTP date; null when it is neither. */
export function parseRetryAfter(value: string, nowMs: number): number | null {
  const text = value.trim();
  const ms = SECONDS.test(text) ? Number(text) * 1_000 : httpDateMs(text) - nowMs;
  if (Number.isNaN(ms)) return null;
  return Math.min(Math.max(Math.ceil(ms), 0), Number.MAX_SAFE_INTEGER);
}

/** The moment an HTTP date names (all three forms of RFC 9110), or NaN. `Date.parse` alone takes `x 1` for a date. */
function httpDateMs(text: string): number {
  if (TODAYS_DATE.test(text)) return Date.parse(text);
  if (RFC_850_DATE.test(text)) return Date.parse(text.replace(RFC_850_DATE, '$1 $2 $3 $4'));
  return ASCTIME_DATE.test(text) ? Date.parse(`${text} GMT`) : Number.NaN;
}
