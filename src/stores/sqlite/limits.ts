/** Named limits in SQLite: definitions, grants, and the tasks that are held back. */
import { GRANT_COLUMNS, HELD_COLUMNS } from '../columns.ts';
import type { HeldRow, LimitRow, LimitUseRow } from '../rows.ts';
import type { Tx } from '../store.ts';
import type { Access } from './access.ts';

/** Operations on limits and grants. */
export function limits(access: Access): Tx['limits'] {
  return {
    all: async () => access.rows<LimitRow>('limits.all'),
    save: async (list) => {
      for (const { name, definition, updated_at } of list)
        access.run('limits.save', name, definition, updated_at);
    },
    lock: async (names) =>
      names.length === 0 ? [] : access.rows<LimitRow>('limits.lock', JSON.stringify(names)),
    use: async (asked, now) =>
      asked.length === 0 ? [] : access.rows<LimitUseRow>('limits.use', JSON.stringify(asked), now),
    grant: async (list) =>
      access.many(
        'limits.grant',
        list.map((row) => GRANT_COLUMNS.map((column) => row[column])),
      ),
    settle: async (list) =>
      access.many(
        'limits.settle',
        list.map((row) => GRANT_COLUMNS.map((column) => row[column])),
      ),
    free: async (attempts) => access.many('limits.free', attempts),
    aged: async (name, now, before) => access.one<{ n: number }>('limits.aged', name, now, before)?.n ?? 0,
    age: async (name, now, before) => access.run('limits.age', name, now, before),
  };
}

/** Operations on tasks that are held back. */
export function held(access: Access): Tx['held'] {
  return {
    add: async (list) =>
      access.many(
        'held.add',
        list.map((row) => HELD_COLUMNS.map((column) => row[column])),
      ),
    remove: async (list) =>
      access.many(
        'held.remove',
        list.map((row) => HELD_COLUMNS.map((column) => row[column])),
      ),
    limits: async (queues) => {
      const wanted = queues === 'all' ? null : JSON.stringify(queues);
      return access.rows<{ name: string }>('held.limits', wanted).map(({ name }) => name);
    },
    first: async (place, queues, limit) => first(access, place, queues, limit),
    ofRun: async (run_key, place, limit) => access.rows<HeldRow>('held.of_run', run_key, place, limit),
    counts: async () => access.rows<{ place: string; n: number }>('held.counts'),
  };
}

/** Queue by queue, each by its index, and then merged. */
function first(access: Access, place: string, queues: readonly number[] | 'all', limit: number): HeldRow[] {
  const wanted = queues === 'all' ? access.rows<{ key: number }>('queues.all').map(({ key }) => key) : queues;
  const found = wanted.flatMap((key) => access.rows<HeldRow>('held.first', place, key, limit));
  return found.sort((a, b) => a.rank - b.rank || a.task_key - b.task_key).slice(0, limit);
}
