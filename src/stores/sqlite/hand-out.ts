/** What decides about the next hand-out, in SQLite: queues, claimable rows, timers, cursors. */
import { invariant } from '../../base/invariant.ts';
import { groupAlike } from '../row-groups.ts';
import type { CursorRow, TimerRow } from '../rows.ts';
import type { ClaimableRow, QueueRow, Tx } from '../store.ts';
import type { Access } from './access.ts';
import { insertInto } from './row-statements.ts';

const CLAIMABLE = insertInto<ClaimableRow>(
  'claimable',
  ['queue_key', 'rank', 'task_key', 'run_key'],
  'insert or ignore',
);

/** Operations on queues. */
export function queues(access: Access): Tx['queues'] {
  return {
    all: async () => access.rows<QueueRow>('queues.all'),
    ensure: async (handler, worker) => {
      access.run('queues.add', handler, worker);
      const found = access.one<{ key: number }>('queues.find', handler, worker);
      invariant(found !== null, 'a queue that was just added exists');
      return found.key;
    },
  };
}

/** Operations on what can be claimed. */
export function claimable(access: Access): Tx['claimable'] {
  return {
    add: async (list) => access.insertAll(CLAIMABLE, list),
    remove: async (list) => {
      for (const rows of groupAlike(list, ({ queue_key, rank }) => `${queue_key} ${rank}`, 1)) {
        const { queue_key = 0, rank = 0 } = rows[0] ?? {};
        access.run('claimable.remove', JSON.stringify(rows.map((row) => row.task_key)), queue_key, rank);
      }
    },
    peek: async (queues, limit) => peek(access, queues, limit),
    ofRun: async (run_key, queues, limit) => {
      const wanted = queues === 'all' ? null : JSON.stringify(queues);
      return access.rows<ClaimableRow>('claimable.of_run', run_key, wanted, limit);
    },
    count: async () => access.one<{ n: number }>('claimable.count')?.n ?? 0,
  };
}

/** Operations on timers. */
export function timers(access: Access): Tx['timers'] {
  return {
    add: async (list) =>
      access.many(
        'timers.add',
        list.map((row) => [row.due_at, row.kind, row.subject]),
      ),
    remove: async (list) =>
      access.many(
        'timers.remove',
        list.map((row) => [row.due_at, row.kind, row.subject]),
      ),
    due: async (now, limit) => access.rows<TimerRow>('timers.due', now, limit),
    next: async () => access.one<{ due_at: number | null }>('timers.next')?.due_at ?? null,
  };
}

/** Operations on cursors. */
export function cursors(access: Access): Tx['cursors'] {
  return {
    add: async (list) =>
      access.many(
        'cursors.add',
        list.map((row) => [row.kind, row.run_key, row.subject, row.position, row.data]),
      ),
    first: async (limit) => access.rows<CursorRow>('cursors.first', limit),
    ofRun: async (run_key) => access.rows<CursorRow>('cursors.of_run', run_key),
    move: async (key, position) => access.run('cursors.move', key, position),
    remove: async (keys) => access.many('cursors.remove', keys),
  };
}

/** Several queues are read one by one and merged; most of the time at most one holds anything. */
function peek(access: Access, queues: readonly number[] | 'all', limit: number): ClaimableRow[] {
  const filled = access.rows<{ key: number }>('claimable.queues').map((row) => row.key);
  const wanted = queues === 'all' ? filled : filled.filter((key) => queues.includes(key));
  const found = wanted.flatMap((key) => access.lists('claimable.peek', key, limit).map(toClaimableRow));
  if (wanted.length <= 1) return found;
  return found.sort((a, b) => a.rank - b.rank || a.task_key - b.task_key).slice(0, limit);
}

function toClaimableRow([queue_key, rank, task_key, run_key]: readonly unknown[]): ClaimableRow {
  return { queue_key, rank, task_key, run_key } as ClaimableRow;
}
