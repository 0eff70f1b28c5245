/** The table against the list of SPEC S3.2, written out here by hand, for all 121 pairs. */
import { describe, expect, test } from 'vitest';
import { InvariantError } from '../base/invariant.ts';
import { EVENT_TYPES } from './event-types.ts';
import { isTerminal, TASK_STATUSES, type TaskStatus } from './states.ts';
import { assertMove, canMove, legalTargets, MOVES, TRANSITIONS } from './transitions.ts';

const BY_ENGINE: Readonly<Record<TaskStatus, string>> = {
  PENDING: 'READY BLOCKED QUEUED SUCCESS FAILED SKIPPED CANCELLED',
  READY: 'QUEUED CANCELLED SKIPPED',
  QUEUED: 'LEASED RUNNING READY SUCCESS FAILED CANCELLED SKIPPED',
  LEASED: 'RUNNING QUEUED BLOCKED WAITING_INPUT SUCCESS FAILED CANCELLED',
  RUNNING: 'QUEUED BLOCKED WAITING_INPUT SUCCESS FAILED CANCELLED',
  // PENDING: a gated `for_each` goes on with its list (docs/decisions/0010).
  BLOCKED: 'PENDING READY QUEUED SUCCESS FAILED SKIPPED CANCELLED',
  WAITING_INPUT: 'QUEUED FAILED CANCELLED',
  SUCCESS: '',
  FAILED: '',
  CANCELLED: '',
  SKIPPED: '',
};
const BY_OPERATOR_ONLY = [
  'SUCCESS → PENDING',
  'FAILED → PENDING',
  'CANCELLED → PENDING',
  'SKIPPED → PENDING',
] as const;

const PAIRS = TASK_STATUSES.flatMap((from) => TASK_STATUSES.map((to) => ({ from, to })));

function expectedBy(from: TaskStatus, to: TaskStatus): 'engine' | 'operator' | 'nobody' {
  if (BY_ENGINE[from].split(' ').includes(to)) return 'engine';
  return (BY_OPERATOR_ONLY as readonly string[]).includes(`${from} → ${to}`) ? 'operator' : 'nobody';
}

describe('all pairs', () => {
  test.each(PAIRS)('$from to $to is as SPEC S3.2 says', ({ from, to }) => {
    // SPEC S3.2
    const by = expectedBy(from, to);
    expect(canMove(from, to)).toBe(by === 'engine');
    expect(canMove(from, to, 'operator')).toBe(by !== 'nobody');
    expect(legalTargets(from).includes(to)).toBe(by === 'engine');
    expect(MOVES.find((move) => move.from === from && move.to === to)?.operatorOnly).toBe(
      by === 'nobody' ? undefined : by === 'operator',
    );
  });

  test('there are 121 pairs, and every legal one is listed once', () => {
    // SPEC S3.2
    expect(PAIRS).toHaveLength(121);
    expect(new Set(MOVES.map((move) => `${move.from} ${move.to}`)).size).toBe(MOVES.length);
    expect(MOVES).toHaveLength(PAIRS.filter(({ from, to }) => expectedBy(from, to) !== 'nobody').length);
  });
});

describe('assertMove', () => {
  test('a legal move passes', () => {
    // SPEC S3.2
    expect(() => assertMove('QUEUED', 'LEASED')).not.toThrow();
  });

  test('an illegal move is a bug that names both ends', () => {
    // SPEC S3.2
    expect(() => assertMove('READY', 'RUNNING')).toThrow(InvariantError);
    expect(() => assertMove('READY', 'RUNNING')).toThrow(/from READY to RUNNING/);
  });

  test('a terminal status is left by an operator and by nobody else', () => {
    // SPEC S3.2
    expect(() => assertMove('SUCCESS', 'PENDING')).toThrow(InvariantError);
    expect(() => assertMove('SUCCESS', 'PENDING', 'operator')).not.toThrow();
  });

  test('staying in a status is not a move', () => {
    // SPEC S3.2
    expect(() => assertMove('RUNNING', 'RUNNING', 'operator')).toThrow(InvariantError);
  });
});

describe('the rows', () => {
  const rowsWhere = (test: (row: (typeof TRANSITIONS)[number]) => boolean): number[] =>
    TRANSITIONS.filter(test).map((row) => row.number);

  test('they are numbered 1 to 39 in order', () => {
    // SPEC S3.2
    expect(rowsWhere(() => true)).toEqual(Array.from({ length: 39 }, (_, index) => index + 1));
  });

  test('every row names its events, all of them known', () => {
    // SPEC S12.1
    const known = new Set<string>(EVENT_TYPES);
    expect(
      TRANSITIONS.every((row) => row.events.length > 0 && row.events.every((name) => known.has(name))),
    ).toBe(true);
  });

  test('every write of a worker is fenced', () => {
    // SPEC S4.5
    expect(rowsWhere((row) => row.needsFence)).toEqual([17, 18, 19, 20, 21, 22, 23, 24]);
  });

  test('only a row that ends a lease or extends it asks for a fence', () => {
    // SPEC S4.5
    const fenced = TRANSITIONS.filter((row) => row.needsFence);
    expect(fenced.flatMap((row) => row.from).every((from) => from === 'LEASED' || from === 'RUNNING')).toBe(
      true,
    );
  });

  test('failures spend attempts, lost workers spend losses, release and pause spend nothing', () => {
    // SPEC S5.4
    expect(rowsWhere((row) => row.spends === 'attempt')).toEqual([20, 21]);
    expect(rowsWhere((row) => row.spends === 'loss')).toEqual([26, 27]);
    expect(rowsWhere((row) => row.spends === 'claim')).toEqual([16]);
    expect(rowsWhere((row) => row.spends === 'reset')).toEqual([35, 36, 37]);
  });

  test('exactly the rows that leave a terminal status are an operator’s', () => {
    // SPEC S3.2
    const leavesTerminal = rowsWhere(
      (row) => row.from !== 'none' && row.to !== 'same' && row.from.some((from) => isTerminal(from)),
    );
    expect(rowsWhere((row) => row.operatorOnly)).toEqual(leavesTerminal);
    expect(leavesTerminal).toEqual([35, 36, 37]);
  });

  test('everything unfinished can be cancelled', () => {
    // SPEC S5.8
    const unfinished = TASK_STATUSES.filter((status) => !isTerminal(status));
    expect(unfinished.every((status) => canMove(status, 'CANCELLED'))).toBe(true);
  });

  test('the table and its rows are frozen', () => {
    const parts = TRANSITIONS.flatMap((row) => [row, row.from, row.to, row.events]);
    expect([TRANSITIONS, MOVES, ...parts].every(Object.isFrozen)).toBe(true);
  });
});

test('no status is a trap: a terminal one can be reached from every other', () => {
  // SPEC S3.4
  const unfinished = TASK_STATUSES.filter((status) => !isTerminal(status));
  expect(unfinished.every((status) => legalTargets(status).some(isTerminal))).toBe(true);
});
