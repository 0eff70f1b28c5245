/** Messages for a broker, in SQLite. The write lock of the file orders daemons and engines. */
import { invariant } from '../../base/invariant.ts';
import type { DeadLetterRow, OutboxListRow, OutboxStatsRow, TakenMessage } from '../rows.ts';
import type { OutboxOutcome, Tx } from '../store.ts';
import type { Access } from './access.ts';

/** Operations on the outbox. */
export function outbox(access: Access): Tx['outbox'] {
  return {
    home: async (draft) => {
      access.run('outbox.make_home', draft);
      return access.one<{ id: string }>('outbox.home')?.id ?? draft;
    },
    add: async (rows) =>
      access.many(
        'outbox.add',
        rows.map((row) => [
          row.task_key,
          row.run_key,
          row.queue_key,
          row.rank,
          row.attempt,
          row.due,
          row.available_at,
          row.created_at,
        ]),
      ),
    remove: async (keys) => access.many('outbox.remove', keys),
    peek: async () =>
      access.one<{ due: number; next_at: number | null }>('outbox.peek') ?? { due: 0, next_at: null },
    wake: async (now, limit) => access.run('outbox.wake', now, limit),
    take: async ({ now, owner, until, limit, window }) => {
      access.run('outbox.drop_marks');
      return access.rows<TakenMessage>('outbox.take', now, owner, until, limit, window);
    },
    settle: async (outcome) => settle(access, outcome),
    isUntidy: async (now) => access.one<{ is_untidy: number }>('outbox.is_untidy', now)?.is_untidy === 1,
    tidy: async (now, limit) => {
      access.run('outbox.drop_stale', now, limit);
      access.run('outbox.adopt', now, limit);
    },
    stats: async (now) => {
      const found = access.one<OutboxStatsRow>('outbox.stats', now);
      invariant(found !== null, 'counting returns a row');
      return found;
    },
    list: async ({ after, limit }) => access.rows<OutboxListRow>('outbox.list', after, limit),
    deadLetters: async ({ after, limit }) => access.rows<DeadLetterRow>('dead_letters.list', after, limit),
    replay: async (keys, now) => {
      const rows = access.rows<{ task_key: number }>('dead_letters.replay', JSON.stringify(keys), now);
      access.many('dead_letters.purge', keys);
      return rows.map((row) => row.task_key);
    },
    purge: async (keys) => access.many('dead_letters.purge', keys),
  };
}

function settle(access: Access, outcome: OutboxOutcome): number[] {
  const { owner, now, sent, deferred, dead, released, renewed } = outcome;
  const keys = [sent, released, renewed.keys, [...deferred, ...dead].map((row) => row.task_key)].flat();
  if (keys.length === 0) return [];
  const rows = access.rows<{ task_key: number }>('outbox.lock_owned', owner, JSON.stringify(keys));
  const own = new Set(rows.map((row) => row.task_key));
  const isOwn = (key: number): boolean => own.has(key);
  const isOwnRow = (row: { readonly task_key: number }): boolean => own.has(row.task_key);
  if (sent.some(isOwn)) access.run('outbox.mark', JSON.stringify(sent.filter(isOwn)), now);
  const buried = dead.filter(isOwnRow).map((row) => [row.task_key, row.retries, row.last_error]);
  if (buried.length > 0) access.run('outbox.bury', now, JSON.stringify(buried));
  access.many('outbox.remove', [...sent, ...dead.map((row) => row.task_key)].filter(isOwn));
  access.many(
    'outbox.defer',
    deferred
      .filter(isOwnRow)
      .map(({ task_key, available_at, retries, last_error }) => [
        task_key,
        available_at,
        retries,
        last_error,
      ]),
  );
  access.many('outbox.release', released.filter(isOwn));
  const kept = renewed.keys.filter(isOwn);
  if (kept.length > 0) access.run('outbox.renew', JSON.stringify(kept), renewed.until);
  return [...own];
}
