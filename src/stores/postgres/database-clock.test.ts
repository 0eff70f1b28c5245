import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { DatabaseClock } from './database-clock.ts';

describe('the database clock', () => {
  it('is the machine’s until the database was heard', () => {
    const machine = new ManualClock(5_000);
    expect(new DatabaseClock(machine).now()).toBe(5_000);
  });

  it('goes on from what the database said, whatever happens to the wall clock', () => {
    const machine = new ManualClock(5_000);
    const clock = new DatabaseClock(machine);
    const askedAt = machine.monotonic();
    machine.advance(20);
    clock.set(90_000, askedAt);
    // The answer was given somewhere between question and answer.
    expect(clock.now()).toBe(90_010);
    machine.advance(100);
    machine.jump(3_600_000);
    expect(clock.now()).toBe(90_110);
  });

  it('takes no time from an answer that came late, unless it is the first', () => {
    const machine = new ManualClock(0);
    const clock = new DatabaseClock(machine);
    clock.set(90_000, machine.monotonic());
    const askedAt = machine.monotonic();
    machine.advance(60_000);
    clock.set(90_001, askedAt);
    expect(clock.now()).toBe(150_000);
  });
});
