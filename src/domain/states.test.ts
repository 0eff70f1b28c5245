/** The words of S3 are complete and frozen. */
import { expect, test } from 'vitest';
import { isTerminal, RUN_STATUSES, TASK_STATUSES, TERMINAL_TASK_STATUSES, WAITING_FOR } from './states.ts';

test('a task run has eleven statuses, of which four are terminal', () => {
  // SPEC S3.1
  expect(TASK_STATUSES).toHaveLength(11);
  expect(TASK_STATUSES.filter(isTerminal)).toEqual([...TERMINAL_TASK_STATUSES]);
});

test('a run is over when it is SUCCESS, FAILED or CANCELLED', () => {
  // SPEC S3.3
  expect(RUN_STATUSES.filter(isTerminal)).toEqual(['SUCCESS', 'FAILED', 'CANCELLED']);
});

test('every reason to wait that users are shown is known', () => {
  // SPEC S3.5
  const shown = 'dependency, capacity, limit, budget, pool, person, time, paused';
  expect(WAITING_FOR.join(', ')).toBe(shown);
});

test('the lists cannot be changed by who reads them', () => {
  expect([TASK_STATUSES, TERMINAL_TASK_STATUSES, RUN_STATUSES, WAITING_FOR].every(Object.isFrozen)).toBe(
    true,
  );
});
