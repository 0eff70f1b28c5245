/** Delays and decisions after failures, losses and releases. */
import { describe, expect, test } from 'vitest';
import { fc } from '../../test/support/property.ts';
import { InvariantError } from '../base/invariant.ts';
import type { TaskFailure } from './failure.ts';
import {
  backoffMs,
  DEFAULT_RETRY_POLICY,
  decideAfterFailure,
  decideAfterLoss,
  parseRetryAfter,
  type RetryPolicy,
  releaseDelayMs,
} from './retry.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const none = () => 0;
const policy = (changes: Partial<RetryPolicy> = {}): RetryPolicy => ({ ...DEFAULT_RETRY_POLICY, ...changes });
const failure = (changes: Partial<TaskFailure> = {}): TaskFailure => ({
  class: 'handler',
  code: 'HANDLER_THREW',
  message: 'it broke',
  ...changes,
});
const decide = (attemptsSpent: number, failed: TaskFailure = failure(), changes: Partial<RetryPolicy> = {}) =>
  decideAfterFailure(policy(changes), { attemptsSpent, failure: failed, nowMs: NOW_MS, random: none });

test('the defaults are those of the contract', () => {
  // SPEC S14.6, S1.2
  expect(DEFAULT_RETRY_POLICY).toEqual({
    maxAttempts: 3,
    maxLosses: 10,
    initialMs: 1_000,
    factor: 2,
    maxMs: 60_000,
    jitter: 0.5,
    onOutputError: true,
    afterMaxMs: 3_600_000,
  });
});

describe('backoffMs', () => {
  test('the delay doubles from the first and stops at the maximum', () => {
    // SPEC S5.3
    const delays = [1, 2, 3, 6, 7, 8].map((n) => backoffMs(DEFAULT_RETRY_POLICY, n, none));
    expect(delays).toEqual([1_000, 2_000, 4_000, 32_000, 60_000, 60_000]);
  });

  test('jitter takes off at most its share', () => {
    // SPEC S5.3
    expect(backoffMs(DEFAULT_RETRY_POLICY, 1, () => 0.5)).toBe(750);
    expect(backoffMs(policy({ jitter: 0 }), 1, () => 0.999)).toBe(1_000);
  });

  test('no policy and no count make a delay that is not a whole number within bounds', () => {
    // SPEC S5.3
    const settings = fc.record({
      initialMs: fc.nat(1e9),
      factor: fc.double({ min: 0, max: 1e6, noNaN: true }),
      maxMs: fc.nat(1e9),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(settings, fc.integer({ min: 1 }), chance, (given, n, rand) => {
        const delay = backoffMs(given, n, () => rand);
        expect(Number.isSafeInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(delay).toBeLessThanOrEqual(given.maxMs);
      }),
    );
  });

  test('a huge count gives the maximum, and an initial delay of zero stays zero', () => {
    // SPEC S5.3
    expect(backoffMs(DEFAULT_RETRY_POLICY, Number.MAX_SAFE_INTEGER, none)).toBe(60_000);
    expect(backoffMs(policy({ initialMs: 0 }), Number.MAX_SAFE_INTEGER, none)).toBe(0);
  });

  test('a failure before the first is a bug', () => {
    expect(() => backoffMs(DEFAULT_RETRY_POLICY, 0, none)).toThrow(InvariantError);
  });
});

describe('decideAfterFailure', () => {
  test('a retryable failure is tried again after the backoff', () => {
    // SPEC S5.3
    expect(decide(1)).toEqual({ outcome: 'retry', notBeforeMs: NOW_MS + 1_000 });
    expect(decide(2)).toEqual({ outcome: 'retry', notBeforeMs: NOW_MS + 2_000 });
  });

  test('the last attempt makes the task dead as exhausted', () => {
    // SPEC S5.4, S5.6
    expect(decide(3)).toEqual({ outcome: 'dead', reason: 'exhausted' });
    expect(decide(4)).toEqual({ outcome: 'dead', reason: 'exhausted' });
    expect(decide(1, failure(), { maxAttempts: 1 })).toEqual({ outcome: 'dead', reason: 'exhausted' });
  });

  test('a failure that another try cannot mend is terminal on the first attempt', () => {
    // SPEC S5.2
    expect(decide(1, failure({ class: 'template', code: 'TEMPLATE_FAILED' }))).toEqual({
      outcome: 'dead',
      reason: 'terminal',
    });
    expect(decide(1, failure({ class: 'http', code: 'HTTP_STATUS', status: 404 }))).toMatchObject({
      reason: 'terminal',
    });
  });

  test('an output error is retried only while on_output_error holds', () => {
    // SPEC S5.2
    const output = failure({ class: 'output', code: 'OUTPUT_SCHEMA' });
    expect(decide(1, output).outcome).toBe('retry');
    expect(decide(1, output, { onOutputError: false })).toEqual({ outcome: 'dead', reason: 'terminal' });
  });

  test('Retry-After wins when it is longer than the backoff', () => {
    // SPEC S5.3
    const busy = { class: 'http', code: 'HTTP_STATUS', status: 429 } as const;
    expect(decide(1, failure({ ...busy, retryAfterMs: 90_000 }))).toEqual({
      outcome: 'retry',
      notBeforeMs: NOW_MS + 90_000,
    });
    expect(decide(2, failure({ ...busy, retryAfterMs: 500 }))).toMatchObject({ notBeforeMs: NOW_MS + 2_000 });
  });

  test('a Retry-After beyond after_max is terminal, one just within is waited for', () => {
    // SPEC S5.2
    expect(decide(1, failure({ retryAfterMs: 3_600_001 }))).toEqual({ outcome: 'dead', reason: 'terminal' });
    expect(decide(1, failure({ retryAfterMs: 3_600_000 }))).toMatchObject({
      notBeforeMs: NOW_MS + 3_600_000,
    });
  });
});

describe('decideAfterLoss', () => {
  const lose = (losses: number, changes: Partial<RetryPolicy> = {}) =>
    decideAfterLoss(policy(changes), { losses, nowMs: NOW_MS, random: none });

  test('a lost worker means another try with backoff', () => {
    // SPEC S6.2
    expect(lose(1)).toEqual({ outcome: 'retry', notBeforeMs: NOW_MS + 1_000 });
    expect(lose(9)).toEqual({ outcome: 'retry', notBeforeMs: NOW_MS + 60_000 });
  });

  test('the last loss makes the task dead, and attempts play no part', () => {
    // SPEC S5.4
    expect(lose(10)).toEqual({ outcome: 'dead', reason: 'exhausted' });
    expect(lose(3, { maxAttempts: 1 }).outcome).toBe('retry');
  });
});

test('releases in a row back off: none, then 1s, 2s, 4s, at most 60s', () => {
  // SPEC S5.4
  const delays = [0, 1, 2, 3, 4, 8, 1e9].map(releaseDelayMs);
  expect(delays).toEqual([0, 0, 1_000, 2_000, 4_000, 60_000, 60_000]);
});

describe('parseRetryAfter', () => {
  const at = Date.parse('1994-11-06T08:49:00Z');

  test.each([
    ['0', 0],
    ['120', 120_000],
    [' 7 ', 7_000],
    ['1.5', 1_500],
    ['-30', 0],
  ])('"%s" seconds is %d ms', (value, ms) => {
    // SPEC S5.3
    expect(parseRetryAfter(value, at)).toBe(ms);
  });

  test.each(['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'])(
    'the date "%s" is the time that is left until then',
    (value) => {
      // SPEC S5.3
      expect(parseRetryAfter(value, at)).toBe(37_000);
    },
  );

  test('a date that is past asks for no wait', () => {
    // SPEC S5.3
    expect(parseRetryAfter('Sun, 06 Nov 1994 08:49:37 GMT', NOW_MS)).toBe(0);
  });

  test.each([
    '',
    'soon',
    'x 1',
    '1e3',
    '12s',
    'NaN',
    'Infinity',
    '0x10',
    'Sun, 99 Nov 1994 08:49:37 GMT',
    '2026-01-01',
  ])('"%s" is garbage and ignored', (value) => {
    // SPEC S5.3
    expect(parseRetryAfter(value, at)).toBeNull();
  });

  test('an absurd number of seconds stays finite', () => {
    // SPEC S5.3
    expect(parseRetryAfter('9'.repeat(400), at)).toBe(Number.MAX_SAFE_INTEGER);
  });

  test('any text gives a whole number or null', () => {
    // SPEC S5.3
    fc.assert(
      fc.property(fc.string(), (text) => {
        const ms = parseRetryAfter(text, at);
        expect(ms === null || (Number.isSafeInteger(ms) && ms >= 0)).toBe(true);
      }),
    );
  });
});
