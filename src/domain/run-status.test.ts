/** Run status from counters, against a second derivation over whole lists of tasks. */
import { describe, expect, test } from 'vitest';
import { fc } from '../../test/support/property.ts';
import { InvariantError } from '../base/invariant.ts';
import {
  applyMove,
  classOf,
  deriveRunStatus,
  NO_TASKS,
  type RunCounters,
  type RunFacts,
} from './run-status.ts';
import { type RunStatus, STOP_REASONS, TASK_STATUSES, type TaskStatus } from './states.ts';

interface Task {
  readonly status: TaskStatus;
  readonly tolerated: boolean;
}

const QUIET: RunFacts = {
  paused: false,
  leased: false,
  cancelled: false,
  stopReason: null,
  unlocking: false,
  open: false,
};

const count = (tasks: readonly Task[]): RunCounters =>
  tasks.reduce((sum, task) => applyMove(sum, 'none', classOf(task.status, task)), NO_TASKS);
const derive = (statuses: readonly TaskStatus[], facts: Partial<RunFacts> = {}): RunStatus =>
  deriveRunStatus(count(statuses.map((status) => ({ status, tolerated: false }))), { ...QUIET, ...facts });

/** SPEC S3.3 and S4.10 word by word, with every task in sight. */
function naive(tasks: readonly Task[], facts: RunFacts): RunStatus {
  const has = (...wanted: TaskStatus[]): boolean => tasks.some((task) => wanted.includes(task.status));
  const terminal = (task: Task): boolean => /^(SUCCESS|FAILED|CANCELLED|SKIPPED)$/.test(task.status);
  if (!tasks.every(terminal) || facts.unlocking) {
    if (facts.paused && !has('LEASED', 'RUNNING')) return 'WAITING';
    if (has('READY', 'QUEUED', 'LEASED', 'RUNNING') || facts.unlocking) return 'RUNNING';
    return has('BLOCKED', 'WAITING_INPUT') ? 'WAITING' : 'RUNNING';
  }
  if (facts.cancelled) return 'CANCELLED';
  if (facts.stopReason !== null) return 'FAILED';
  if (tasks.length === 0) return 'PENDING';
  if (facts.open) return 'WAITING';
  if (tasks.some((task) => task.status === 'FAILED' && !task.tolerated)) return 'FAILED';
  return tasks.every((task) => task.status === 'CANCELLED') ? 'CANCELLED' : 'SUCCESS';
}

describe('something is unfinished', () => {
  test.each(['READY', 'QUEUED', 'LEASED', 'RUNNING'] as const)(
    'a %s task makes the run RUNNING',
    (status) => {
      // SPEC S3.3
      expect(derive([status, 'BLOCKED', 'PENDING', 'FAILED'])).toBe('RUNNING');
    },
  );

  test.each(['BLOCKED', 'WAITING_INPUT'] as const)('a %s task alone makes the run WAITING', (status) => {
    // SPEC S3.3
    expect(derive([status, 'PENDING', 'SUCCESS'])).toBe('WAITING');
  });

  test('an unlock under way makes the run RUNNING', () => {
    // SPEC S3.3
    expect(derive(['PENDING', 'BLOCKED', 'SUCCESS'], { unlocking: true })).toBe('RUNNING');
  });

  test('an unlock under way keeps the run from being over', () => {
    // SPEC S3.3
    expect(derive(['SUCCESS'], { unlocking: true })).toBe('RUNNING');
  });

  test('a paused run is WAITING once nothing is leased', () => {
    // SPEC S3.3, S4.11
    expect(derive(['QUEUED', 'RUNNING'], { paused: true, leased: true })).toBe('RUNNING');
    expect(derive(['QUEUED', 'SUCCESS'], { paused: true })).toBe('WAITING');
  });

  test('only PENDING tasks, as inside a transaction, make the run RUNNING', () => {
    // SPEC S3.3
    expect(derive(['PENDING', 'SUCCESS'])).toBe('RUNNING');
  });

  test('a cancelled or stopped run is not over before its last task is', () => {
    // SPEC S3.3
    expect(derive(['RUNNING', 'CANCELLED'], { cancelled: true })).toBe('RUNNING');
    expect(derive(['RUNNING', 'FAILED'], { stopReason: 'timeout' })).toBe('RUNNING');
  });
});

describe('all is terminal', () => {
  test('a run without tasks is PENDING until it is cancelled', () => {
    // SPEC S3.3
    expect(derive([])).toBe('PENDING');
    expect(derive([], { open: true, cancelled: true })).toBe('CANCELLED');
  });

  test('a cancelled run is CANCELLED, whatever its tasks did', () => {
    // SPEC S3.3
    expect(derive(['SUCCESS', 'FAILED'], { cancelled: true, stopReason: 'budget' })).toBe('CANCELLED');
  });

  test.each(STOP_REASONS)('a run stopped by %s is FAILED without a failed task', (stopReason) => {
    // SPEC S3.3
    expect(derive(['SUCCESS', 'CANCELLED'], { stopReason })).toBe('FAILED');
  });

  test('one failure makes the run FAILED, a tolerated one does not', () => {
    // SPEC S3.3
    expect(derive(['SUCCESS', 'FAILED', 'CANCELLED'])).toBe('FAILED');
    const tolerated = count([
      { status: 'FAILED', tolerated: true },
      { status: 'SUCCESS', tolerated: false },
    ]);
    expect(deriveRunStatus(tolerated, QUIET)).toBe('SUCCESS');
  });

  test('a run is CANCELLED when all its tasks are, and SUCCESS when all are skipped', () => {
    // SPEC S3.3
    expect(derive(['CANCELLED', 'CANCELLED'])).toBe('CANCELLED');
    expect(derive(['CANCELLED', 'SKIPPED'])).toBe('SUCCESS');
    expect(derive(['SKIPPED', 'SKIPPED'])).toBe('SUCCESS');
  });

  test('an idle open run waits for more tasks, also after a failure', () => {
    // SPEC S4.10
    expect(derive(['SUCCESS'], { open: true })).toBe('WAITING');
    expect(derive(['FAILED'], { open: true })).toBe('WAITING');
  });

  test('cancel and stop end an open run', () => {
    // SPEC S4.10
    expect(derive(['CANCELLED'], { open: true, cancelled: true })).toBe('CANCELLED');
    expect(derive(['SUCCESS'], { open: true, stopReason: 'timeout' })).toBe('FAILED');
  });
});

test('the counters say the same as a look at every task', () => {
  // SPEC S3.3
  const task = fc.record({ status: fc.constantFrom(...TASK_STATUSES), tolerated: fc.boolean() });
  const oneKind = fc
    .constantFrom(...TASK_STATUSES)
    .chain((status) => fc.array(task.map((t) => ({ ...t, status }))));
  const facts = fc.record({
    paused: fc.boolean(),
    cancelled: fc.boolean(),
    stopReason: fc.constantFrom(null, null, ...STOP_REASONS),
    unlocking: fc.boolean(),
    open: fc.boolean(),
  });
  const terminal = task.filter(({ status }) => /^(SUCCESS|FAILED|CANCELLED|SKIPPED)$/.test(status));
  const tasks = fc.oneof(fc.array(task, { maxLength: 6 }), fc.array(terminal, { maxLength: 6 }), oneKind);
  fc.assert(
    fc.property(tasks, facts, (list, given) => {
      const leased = list.some(({ status }) => status === 'LEASED' || status === 'RUNNING');
      expect(deriveRunStatus(count(list), { ...given, leased })).toBe(naive(list, { ...given, leased }));
    }),
    { numRuns: 2_000 },
  );
});

describe('applyMove', () => {
  test('counting move by move ends where counting afresh does', () => {
    // SPEC S3.3
    const task = fc.record({ status: fc.constantFrom(...TASK_STATUSES), tolerated: fc.boolean() });
    fc.assert(
      fc.property(fc.array(fc.tuple(task, task)), (pairs) => {
        const moved = pairs.reduce(
          (sum, [from, to]) => applyMove(sum, classOf(from.status, from), classOf(to.status, to)),
          count(pairs.map(([from]) => from)),
        );
        expect(moved).toEqual(count(pairs.map(([, to]) => to)));
      }),
    );
  });

  test('claim and start stay inside one class and change nothing', () => {
    // SPEC S3.3
    const counters = count([{ status: 'QUEUED', tolerated: false }]);
    const [queued, running] = (['QUEUED', 'RUNNING'] as const).map((status) =>
      classOf(status, { tolerated: false }),
    );
    expect(queued).toBe(running);
    expect(applyMove(counters, 'moving', 'moving')).toBe(counters);
  });

  test('leaving a class that counts nobody is a bug', () => {
    expect(() => applyMove(NO_TASKS, 'pending', 'moving')).toThrow(InvariantError);
  });

  test('tolerated says something about FAILED only', () => {
    // SPEC S3.3
    expect(classOf('FAILED', { tolerated: true })).toBe('tolerated');
    expect(classOf('SUCCESS', { tolerated: true })).toBe('success');
  });
});
