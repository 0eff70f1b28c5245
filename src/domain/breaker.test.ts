/** The breaker: what opens it and what does not. */
import { describe, expect, it } from 'vitest';
import { afterOutage, CLOSED, openForMs } from './breaker.ts';

describe('a breaker', () => {
  // SPEC S10.4
  it('stays closed after one outage and opens with the second', () => {
    const once = afterOutage(CLOSED, 1_000, 30_000);
    expect(openForMs(once, 1_000)).toBe(0);
    const twice = afterOutage(once, 2_000, 30_000);
    expect(openForMs(twice, 2_000)).toBe(30_000);
    expect(openForMs(twice, 31_999)).toBe(1);
    expect(openForMs(twice, 32_000)).toBe(0);
  });

  // SPEC S10.4
  it('opens again with the first outage after the cooldown', () => {
    const open = afterOutage(afterOutage(CLOSED, 0, 10), 0, 10);
    expect(openForMs(afterOutage(open, 20, 10), 20)).toBe(10);
  });

  // SPEC S10.4
  it('is as new after a success', () => {
    expect(openForMs(afterOutage(CLOSED, 50, 10), 50)).toBe(0);
  });
});
