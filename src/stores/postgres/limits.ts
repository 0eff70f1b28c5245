/** Named limits in Postgres: definitions, grants, and the tasks that are held back. */
import { GRANT_COLUMNS, HELD_COLUMNS } from '../columns.ts';
import type { GrantRow, HeldRow, LimitRow, LimitUseRow } from '../rows.ts';
import type { Tx } from '../store.ts';
import type { Access } from './access.ts';
import type { Lists } from './batch.ts';
import type { Value } from './values.ts';

/** Operations on limits and grants. */
export function limits(access: Access): Tx['limits'] {
  const { transaction } = access;
  const all = (name: string, rows: readonly GrantRow[]): void => {
    if (rows.length > 0) transaction.later(name, ...columnsOf(GRANT_COLUMNS, rows));
  };
  return {
    all: () => transaction.rows<LimitRow>('limits.all'),
    save: async (rows) => {
      for (const { name, definition, updated_at } of rows)
        transaction.later('limits.save', name, definition, updated_at);
    },
    lock: (names) => (names.length === 0 ? Promise.resolve([]) : lock(access, names)),
    use: async (asked, now) =>
      asked.length === 0
        ? []
        : transaction.rows<LimitUseRow>(
            'limits.use',
            asked.map(([name]) => name),
            asked.map(([, since]) => since),
            now,
          ),
    grant: async (rows) => all('limits.grant', rows),
    settle: async (rows) => all('limits.settle', rows),
    free: async (attempts) => {
      if (attempts.length > 0)
        transaction.later(
          'limits.free',
          attempts.map(([task_key]) => task_key),
          attempts.map(([, attempt]) => attempt),
        );
    },
    aged: async (name, now, before) =>
      (await transaction.one<{ n: number }>('limits.aged', name, now, before))?.n ?? 0,
    age: async (name, now, before) => transaction.later('limits.age', name, now, before),
  };
}

/**
 * Limits come behind runs in the lock order, and are waited for once. Whoever holds one waits for nothing else: it comes to need
 * more, it takes what is free or starts again with all it knows of.
 */
async function lock({ transaction }: Access, names: readonly string[]): Promise<LimitRow[]> {
  const { locks } = transaction;
  if (!transaction.isWriter) return transaction.rows<LimitRow>('limits.read', names);
  const isFirst = locks.mayWaitForLimits(names);
  const found = await transaction.rows<LimitRow>(isFirst ? 'limits.lock' : 'limits.lock_free', names);
  locks.acceptLimits(names, { found: found.map(({ name }) => name), isFirst });
  return found;
}

/** Operations on tasks that are held back. */
export function held(access: Access): Tx['held'] {
  const { transaction } = access;
  return {
    add: async (rows) => {
      if (rows.length > 0) transaction.later('held.add', ...columnsOf(HELD_COLUMNS, rows));
    },
    remove: async (rows) => {
      if (rows.length > 0) transaction.later('held.remove', ...columnsOf(HELD_COLUMNS.slice(0, 4), rows));
    },
    limits: async (queues) =>
      (await transaction.lists('held.limits', queues === 'all' ? null : queues)).map(
        ([name]) => name as string,
      ),
    first: async (place, queues, limit) => {
      const name = transaction.isWriter ? 'held.first_locked' : 'held.first';
      const rows = toHeld(await transaction.lists(name, place, queues === 'all' ? null : queues, limit));
      if (transaction.isWriter) for (const row of rows) access.noteRun(row.task_key, row.run_key);
      return rows;
    },
    ofRun: async (run_key, place, limit) => {
      const read = transaction.command('held.of_run', run_key, place, limit);
      const [lists = []] = transaction.isWriter
        ? await access.lockFree([run_key], read)
        : await transaction.read(read);
      if (transaction.isWriter && !transaction.locks.holds(run_key)) return [];
      return toHeld(lists);
    },
    counts: () => transaction.rows<{ place: string; n: number }>('held.counts'),
  };
}

function toHeld(lists: Lists): HeldRow[] {
  return lists.map(([place, queue_key, rank, task_key, run_key]) => ({
    place: place as string,
    queue_key: queue_key as number,
    rank: rank as number,
    task_key: task_key as number,
    run_key: run_key as number,
  }));
}

/** The rows turned into one list for each column. */
function columnsOf<Row extends object>(
  columns: readonly (keyof Row)[],
  rows: readonly Row[],
): readonly Value[] {
  return columns.map((column) => rows.map((row) => row[column]) as never);
}
