/**
 * The one authority on how a task run may move (SPEC S3.2): TRANSITIONS.md as data, row by row, and the questions asked
 * of it. The diagram, the SQL checks and the all-pairs test are made from this table. It says which moves exist; whether
 * a guard holds is decided by the caller. A row whose `to` is `same` changes no status and so allows no move.
 */
import { invariant } from '../base/invariant.ts';
import type { EventType } from './event-types.ts';
import {
  isTerminal,
  LEASED_TASK_STATUSES,
  TASK_STATUSES,
  type TaskStatus,
  TERMINAL_TASK_STATUSES,
} from './states.ts';

/** What a row costs: a failed attempt, a lost worker, a new attempt number, or the counts set back to zero. */
type Spending = 'nothing' | 'attempt' | 'loss' | 'claim' | 'reset';

/** One row of the table. */
export interface Transition {
  readonly number: number;
  /** `none` is a task run that does not exist yet. */
  readonly from: readonly TaskStatus[] | 'none';
  readonly trigger: string;
  readonly guard: string;
  readonly to: readonly TaskStatus[] | 'same';
  readonly events: readonly EventType[];
  readonly spends: Spending;
  /** Whether the write must carry the row's current `lease_id`. */
  readonly needsFence: boolean;
  /** Whether only a recorded action of an operator does this. */
  readonly operatorOnly: boolean;
}

/** Who asks for a move; an operator may do all that the engine may, and more. */
export type Mover = 'engine' | 'operator';

/** One legal change of status. */
export interface Move {
  readonly from: TaskStatus;
  readonly to: TaskStatus;
  readonly operatorOnly: boolean;
}

const UNFINISHED = TASK_STATUSES.filter((status) => !isTerminal(status));

// biome-ignore format: one entry per row, to be read beside TRANSITIONS.md
const ROWS: readonly Transition[] = [
  row({ number: 1, from: 'none', trigger: 'submit', guard: 'a parent is not terminal',
    to: ['PENDING'], events: ['run.created', 'task.expanded', 'task.enqueued'] }),
  row({ number: 2, from: 'none', trigger: 'submit_due', guard: 'no parent, or all terminal: as 3–12 in the same transaction',
    to: ['PENDING', 'READY', 'QUEUED', 'BLOCKED', 'SUCCESS', 'FAILED', 'SKIPPED'],
    events: ['task.skipped', 'task.failed', 'task.blocked', 'task.completed', 'task.expanded', 'task.queued', 'task.ready'] }),
  row({ number: 3, from: ['PENDING'], trigger: 'skip_downstream',
    guard: 'when: success, and a parent is FAILED (not tolerated), CANCELLED, or SKIPPED because of one; at once (upstream_failed, upstream_cancelled)',
    to: ['SKIPPED'], events: ['task.skipped'] }),
  row({ number: 4, from: ['PENDING'], trigger: 'advance', guard: 'all parents terminal: the first that fits of 5–12',
    to: ['READY', 'QUEUED', 'BLOCKED', 'SUCCESS', 'FAILED', 'SKIPPED'],
    events: ['task.skipped', 'task.failed', 'task.blocked', 'task.completed', 'task.expanded', 'task.queued', 'task.ready'] }),
  row({ number: 5, from: ['PENDING'], trigger: 'skip_join', guard: 'when: success, and all parents (at least one) SKIPPED by condition (upstream_skipped)',
    to: ['SKIPPED'], events: ['task.skipped'] }),
  row({ number: 6, from: ['PENDING'], trigger: 'skip_by_condition', guard: '`if` is false (condition_false)',
    to: ['SKIPPED'], events: ['task.skipped'] }),
  row({ number: 7, from: ['PENDING'], trigger: 'fail_decision', guard: 'error in `if`, `for_each`, `wait` or gate text; not a list; over the cap (template)',
    to: ['FAILED'], events: ['task.failed'] }),
  row({ number: 8, from: ['PENDING'], trigger: 'ask', guard: 'gate not passed yet, or `uses: approval`',
    to: ['BLOCKED'], events: ['task.blocked'] }),
  row({ number: 9, from: ['PENDING'], trigger: 'complete_empty', guard: '`for_each` without items: output []',
    to: ['SUCCESS'], events: ['task.completed'] }),
  row({ number: 10, from: ['PENDING'], trigger: 'expand', guard: '`for_each` with n items: deps_remaining = n, items made in chunks behind a cursor',
    to: 'same', events: ['task.expanded'] }),
  row({ number: 11, from: ['PENDING'], trigger: 'set_timer', guard: '`uses: wait`; SUCCESS if its time is past',
    to: ['QUEUED', 'SUCCESS'], events: ['task.queued', 'task.completed'] }),
  row({ number: 12, from: ['PENDING'], trigger: 'make_ready', guard: 'otherwise; and on to 14 when there is room',
    to: ['READY'], events: ['task.ready', 'task.queued'] }),
  row({ number: 13, from: ['PENDING'], trigger: 'settle_items', guard: 'the last item ends, or one fails under fail_fast; SUCCESS if all did or on collect',
    to: ['SUCCESS', 'FAILED', 'CANCELLED'], events: ['task.completed', 'task.failed', 'task.cancelled'] }),
  row({ number: 14, from: ['READY'], trigger: 'hand_out', guard: 'room (max_parallel, window), run not paused; with a broker an outbox message',
    to: ['QUEUED'], events: ['task.queued'] }),
  row({ number: 15, from: ['QUEUED'], trigger: 'hold_back', guard: 'claim finds a named limit or the budget full, or the run is paused; FAILED if it can never fit (S8)',
    to: ['READY', 'FAILED'], events: ['task.ready', 'task.failed'] }),
  row({ number: 16, from: ['QUEUED'], trigger: 'claim', guard: 'due, not a timer; run not stopped or paused, worker fits, limits have room; RUNNING with `start`',
    to: ['LEASED', 'RUNNING'], events: ['task.claimed'], spends: 'claim' }),
  row({ number: 17, from: ['LEASED'], trigger: 'start', guard: 'start, or the first heartbeat',
    to: ['RUNNING'], events: ['task.running'], needsFence: true }),
  row({ number: 18, from: LEASED_TASK_STATUSES, trigger: 'extend', guard: 'heartbeat (sampled), checkpoint, second witness',
    to: 'same', events: ['task.heartbeat', 'task.checkpointed'], needsFence: true }),
  row({ number: 19, from: LEASED_TASK_STATUSES, trigger: 'complete', guard: 'output valid',
    to: ['SUCCESS'], events: ['task.completed'], needsFence: true }),
  row({ number: 20, from: LEASED_TASK_STATUSES, trigger: 'fail', guard: 'fail, bad output or attempt timeout: retryable, attempts left; claimable at not_before',
    to: ['QUEUED'], events: ['task.retry_scheduled'], spends: 'attempt', needsFence: true }),
  row({ number: 21, from: LEASED_TASK_STATUSES, trigger: 'fail', guard: 'fail, bad output or attempt timeout: terminal class, or no attempts left',
    to: ['FAILED'], events: ['task.failed'], spends: 'attempt', needsFence: true }),
  row({ number: 22, from: LEASED_TASK_STATUSES, trigger: 'fail_rendering', guard: 'rendering the input fails (template)',
    to: ['FAILED'], events: ['task.failed'], needsFence: true }),
  row({ number: 23, from: LEASED_TASK_STATUSES, trigger: 'release', guard: 'release, hand-off, drain, deregister, or the reply never reached the worker; growing delay when repeated',
    to: ['QUEUED'], events: ['task.released'], needsFence: true }),
  row({ number: 24, from: LEASED_TASK_STATUSES, trigger: 'pause', guard: 'BLOCKED or WAITING_INPUT, as the worker asks',
    to: ['BLOCKED', 'WAITING_INPUT'], events: ['task.paused'], needsFence: true }),
  row({ number: 25, from: ['LEASED'], trigger: 'reap_unstarted', guard: 'lease over, never started; at most 5 in a row, then 26',
    to: ['QUEUED'], events: ['task.lease_expired'] }),
  row({ number: 26, from: LEASED_TASK_STATUSES, trigger: 'reap', guard: 'lease over, provisioner says gone, or attempt deadline + grace: losses left; with backoff',
    to: ['QUEUED'], events: ['task.lease_expired'], spends: 'loss' }),
  row({ number: 27, from: LEASED_TASK_STATUSES, trigger: 'reap', guard: 'lease over, provisioner says gone, or attempt deadline + grace: no losses left (worker_lost)',
    to: ['FAILED'], events: ['task.failed'], spends: 'loss' }),
  row({ number: 28, from: ['BLOCKED'], trigger: 'approve', guard: 'gate; approved, or timeout with on_timeout: approve; the decision goes on after 8, PENDING with `for_each`',
    to: ['READY', 'QUEUED', 'SUCCESS', 'FAILED', 'PENDING'], events: ['task.approved'] }),
  row({ number: 29, from: ['BLOCKED'], trigger: 'reject', guard: 'gate; rejected, or timeout with on_timeout: reject; SKIPPED with on_reject: skip',
    to: ['FAILED', 'SKIPPED'], events: ['task.rejected'] }),
  row({ number: 30, from: ['BLOCKED'], trigger: 'settle_approval', guard: '`uses: approval`; approved, rejected or timeout: output {approved, by, answer}',
    to: ['SUCCESS'], events: ['task.approved', 'task.rejected'] }),
  row({ number: 31, from: ['BLOCKED', 'WAITING_INPUT'], trigger: 'resume', guard: 'asked by a worker; answered or resumed: question id current, schema ok',
    to: ['QUEUED'], events: ['task.resumed'] }),
  row({ number: 32, from: ['BLOCKED', 'WAITING_INPUT'], trigger: 'reject', guard: 'asked by a worker; rejected or timeout (rejected)',
    to: ['FAILED'], events: ['task.rejected'] }),
  row({ number: 33, from: ['QUEUED'], trigger: 'wake', guard: 'timer of a `wait` is due',
    to: ['SUCCESS'], events: ['task.completed'] }),
  row({ number: 34, from: UNFINISHED, trigger: 'cancel', guard: 'cancel of task or run, fail_fast, run timeout, budget stop; lease revoked',
    to: ['CANCELLED'], events: ['task.cancelled'] }),
  row({ number: 35, from: ['FAILED', 'CANCELLED', 'SKIPPED'], trigger: 'retry', guard: 'retry of the run; not skipped by its own condition',
    to: ['PENDING'], events: ['task.replayed'], spends: 'reset', operatorOnly: true }),
  row({ number: 36, from: TERMINAL_TASK_STATUSES, trigger: 'rerun', guard: 'the chosen task and its descendants; generation + 1',
    to: ['PENDING'], events: ['task.replayed'], spends: 'reset', operatorOnly: true }),
  row({ number: 37, from: ['FAILED', 'SKIPPED'], trigger: 'replay', guard: 'a dead task, and its SKIPPED descendants without another bad parent; counts reset if asked',
    to: ['PENDING'], events: ['task.replayed'], spends: 'reset', operatorOnly: true }),
  row({ number: 38, from: ['PENDING', 'READY', 'QUEUED'], trigger: 'supersede', guard: 'item beyond the new list when a rerun map expands again (superseded)',
    to: ['SKIPPED'], events: ['task.skipped'] }),
  row({ number: 39, from: TASK_STATUSES, trigger: 'refuse_stale', guard: 'write with an old lease_id: the first answer if the content is the same, else STALE_LEASE; first after a revoke is the acknowledgement',
    to: 'same', events: ['task.cancel_acknowledged'] }),
];

/** The table: every row of TRANSITIONS.md, in its order. */
export const TRANSITIONS: readonly Transition[] = Object.freeze(ROWS);

/** Every legal change of status, once, in the order of `TASK_STATUSES`. */
export const MOVES: readonly Move[] = Object.freeze(TASK_STATUSES.flatMap(movesFrom));

const TARGETS: Readonly<Record<Mover, ReadonlyMap<TaskStatus, readonly TaskStatus[]>>> = Object.freeze({
  engine: targetsBy((move) => !move.operatorOnly),
  operator: targetsBy(() => true),
});

/** The statuses that may follow `from`; those only an operator may ask for are left out unless `by` is one. */
export function legalTargets(from: TaskStatus, by: Mover = 'engine'): readonly TaskStatus[] {
  return TARGETS[by].get(from) ?? [];
}

/** Whether the table lets a task run go from one status to another; staying where it is is no move. */
export function canMove(from: TaskStatus, to: TaskStatus, by: Mover = 'engine'): boolean {
  return legalTargets(from, by).includes(to);
}

/** Stops when a move is not in the table: the code that asked for it is wrong. */
export function assertMove(from: TaskStatus, to: TaskStatus, by: Mover = 'engine'): void {
  // The message is put together only when it is needed: every move comes through here.
  if (!canMove(from, to, by)) invariant(false, `a task run does not move from ${from} to ${to} by the ${by}`);
}

type RowDefaults = Pick<Transition, 'spends' | 'needsFence' | 'operatorOnly'>;

function row(given: Omit<Transition, keyof RowDefaults> & Partial<RowDefaults>): Transition {
  const { from, to, events } = given;
  return Object.freeze({
    spends: 'nothing',
    needsFence: false,
    operatorOnly: false,
    ...given,
    from: from === 'none' ? from : Object.freeze([...from]),
    to: to === 'same' ? to : Object.freeze([...to]),
    events: Object.freeze([...events]),
  });
}

function movesFrom(from: TaskStatus): Move[] {
  const rows = TRANSITIONS.filter((each) => each.from !== 'none' && each.from.includes(from));
  return TASK_STATUSES.flatMap((to) => {
    const ways = rows.filter((each) => each.to !== 'same' && each.to.includes(to));
    if (ways.length === 0) return [];
    return [Object.freeze({ from, to, operatorOnly: ways.every((way) => way.operatorOnly) })];
  });
}

function targetsBy(allowed: (move: Move) => boolean): ReadonlyMap<TaskStatus, readonly TaskStatus[]> {
  const of = (from: TaskStatus) => MOVES.filter((move) => move.from === from && allowed(move));
  return new Map(TASK_STATUSES.map((from) => [from, Object.freeze(of(from).map((move) => move.to))]));
}
