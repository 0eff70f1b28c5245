/** What decides about the next hand-out, in Postgres: queues, claimable rows, timers, cursors. */
import type { CursorRow, TimerRow } from '../rows.ts';
import type { ClaimableRow, QueueRow, Tx } from '../store.ts';
import type { Access } from './access.ts';
import type { Lists } from './batch.ts';

/** Finds or adds a queue outside any transaction; see `queues`. */
export type EnsureQueue = (handler: string, worker: string) => Promise<number>;

/**
 * Operations on queues. A queue is a fact that is never taken back, so it is added apart from the transaction that needs it:
 * two transactions that add the same one would otherwise wait for each other.
 */
export function queues({ transaction }: Access, ensure: EnsureQueue): Tx['queues'] {
  return { all: () => transaction.rows<QueueRow>('queues.all'), ensure };
}

/** Operations on what can be claimed. */
export function claimable(access: Access): Tx['claimable'] {
  const { transaction } = access;
  return {
    add: async (rows) => {
      if (rows.length > 0)
        transaction.later(
          'claimable.add',
          rows.map((row) => row.queue_key),
          rows.map((row) => row.rank),
          rows.map((row) => row.task_key),
          rows.map((row) => row.run_key),
        );
    },
    remove: async (rows) => {
      if (rows.length > 0)
        transaction.later(
          'claimable.remove',
          rows.map((row) => row.queue_key),
          rows.map((row) => row.rank),
          rows.map((row) => row.task_key),
        );
    },
    peek: async (queues, limit) => {
      const name = transaction.isWriter ? 'claimable.peek_locked' : 'claimable.peek';
      const lists = await transaction.lists(name, queues === 'all' ? null : queues, limit);
      if (transaction.isWriter) {
        for (const [, , task_key, run_key, writer, xid] of lists) {
          access.noteRun(task_key as number, run_key as number);
          access.noteLocked(run_key as number, writer as string, xid as string);
        }
      }
      return toClaimable(lists);
    },
    ofRun: async (run_key, queues, limit) => {
      const read = transaction.command('claimable.of_run', run_key, queues === 'all' ? null : queues, limit);
      const [lists = []] = transaction.isWriter
        ? await access.lockFree([run_key], read)
        : await transaction.read(read);
      if (transaction.isWriter && !transaction.locks.holds(run_key)) return [];
      return toClaimable(lists);
    },
    count: async () => (await transaction.one<{ n: number }>('claimable.count'))?.n ?? 0,
  };
}

function toClaimable(lists: Lists): ClaimableRow[] {
  return lists.map(([queue_key, rank, task_key, run_key]) => ({
    queue_key: queue_key as number,
    rank: rank as number,
    task_key: task_key as number,
    run_key: run_key as number,
  }));
}

/** Operations on timers. */
export function timers(access: Access): Tx['timers'] {
  const { transaction } = access;
  const columns = (rows: readonly TimerRow[]): [number[], string[], number[]] => [
    rows.map((row) => row.due_at),
    rows.map((row) => row.kind),
    rows.map((row) => row.subject),
  ];
  return {
    add: async (rows) => {
      if (rows.length > 0) transaction.later('timers.add', ...columns(rows));
    },
    remove: async (rows) => {
      if (rows.length > 0) transaction.later('timers.remove', ...columns(rows));
    },
    due: (now, limit) => dueTimers(access, now, limit),
    next: async () => (await transaction.one<{ due_at: number | null }>('timers.next'))?.due_at ?? null,
  };
}

/** A writer takes the runs of due timers that nobody holds, and looks again: a timer that is still there is its own. */
async function dueTimers(access: Access, now: number, limit: number): Promise<TimerRow[]> {
  const { transaction } = access;
  const first = await transaction.lists('timers.due', now, limit);
  if (!transaction.isWriter) return first.map(toTimer);
  const runs = first.flatMap(([, , , run_key]) => (run_key === null ? [] : [run_key as number]));
  const [lists = []] = await access.lockFree(runs, transaction.command('timers.due', now, limit));
  return lists
    .filter(([, , , run_key]) => run_key === null || transaction.locks.holds(run_key as number))
    .map(toTimer);
}

function toTimer([due_at, kind, subject]: readonly unknown[]): TimerRow {
  return { due_at: due_at as number, kind: kind as TimerRow['kind'], subject: subject as number };
}

/** Operations on cursors. */
export function cursors(access: Access): Tx['cursors'] {
  const { transaction } = access;
  return {
    add: async (rows) => {
      if (rows.length > 0)
        transaction.later(
          'cursors.add',
          rows.map((row) => row.kind),
          rows.map((row) => row.run_key),
          rows.map((row) => row.subject),
          rows.map((row) => row.position),
          rows.map((row) => row.data),
        );
    },
    first: (limit) => firstCursors(access, limit),
    ofRun: (run_key) => transaction.rows<CursorRow>('cursors.of_run', run_key),
    move: async (key, position) => transaction.later('cursors.move', key, position),
    remove: async (keys) => {
      if (keys.length > 0) transaction.later('cursors.remove', keys);
    },
  };
}

/** A writer takes runs that nobody works on, and then reads their cursors: these are as the last one has left them. */
async function firstCursors({ transaction }: Access, limit: number): Promise<CursorRow[]> {
  if (!transaction.isWriter) return transaction.rows<CursorRow>('cursors.first', limit);
  const free = (await transaction.lists('cursors.free_runs', limit)).map(([run_key]) => run_key as number);
  if (free.length === 0) return [];
  for (const run_key of free) transaction.locks.add(run_key);
  return transaction.rows<CursorRow>('cursors.first_of_runs', free, limit);
}
