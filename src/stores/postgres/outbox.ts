/** Messages for a broker, in Postgres. A daemon never waits for a row that an engine writes, so the two cannot lock each other out. */
import type { DeadLetterRow, OutboxListRow, OutboxStatsRow, TakenMessage } from '../rows.ts';
import type { OutboxOutcome, Tx } from '../store.ts';
import type { Access } from './access.ts';
import type { Transaction } from './transaction.ts';

/** Operations on the outbox. */
export function outbox({ transaction }: Access): Tx['outbox'] {
  return {
    home: async (draft) => {
      transaction.later('outbox.make_home', draft);
      return (await transaction.one<{ id: string }>('outbox.home'))?.id ?? draft;
    },
    add: async (rows) => addRows(transaction, rows),
    remove: async (keys) => {
      if (keys.length > 0) transaction.later('outbox.remove', keys);
    },
    peek: async () =>
      (await transaction.one<{ due: number; next_at: number | null }>('outbox.peek')) ?? {
        due: 0,
        next_at: null,
      },
    wake: async (now, limit) => transaction.later('outbox.wake', now, limit),
    take: ({ now, owner, until, limit, window }) => {
      transaction.later('outbox.relax');
      transaction.later('outbox.drop_marks');
      return transaction.rows<TakenMessage>('outbox.take', now, owner, until, limit, window);
    },
    settle: (outcome) => settle(transaction, outcome),
    isUntidy: async (now) =>
      (await transaction.one<{ is_untidy: boolean }>('outbox.is_untidy', now))?.is_untidy === true,
    tidy: async (now, limit) => {
      transaction.later('outbox.drop_stale', now, limit);
      transaction.later('outbox.adopt', now, limit);
    },
    stats: async (now) => (await transaction.one<OutboxStatsRow>('outbox.stats', now)) as OutboxStatsRow,
    list: ({ after, limit }) => transaction.rows<OutboxListRow>('outbox.list', after, limit),
    deadLetters: ({ after, limit }) => transaction.rows<DeadLetterRow>('dead_letters.list', after, limit),
    replay: async (keys, now) => {
      const lists = await transaction.lists('dead_letters.replay', keys, now);
      transaction.later('dead_letters.purge', keys);
      return lists.map(([task_key]) => task_key as number);
    },
    purge: async (keys) => transaction.later('dead_letters.purge', keys),
  };
}

/** In key order, as every writer of many rows. */
function addRows(transaction: Transaction, rows: Parameters<Tx['outbox']['add']>[0]): void {
  const [first] = rows;
  if (first === undefined) return;
  const sorted = rows.toSorted((a, b) => a.task_key - b.task_key);
  transaction.later(
    'outbox.add',
    sorted.map((row) => row.task_key),
    sorted.map((row) => row.run_key),
    sorted.map((row) => row.queue_key),
    sorted.map((row) => row.rank),
    sorted.map((row) => row.attempt),
    sorted.map((row) => row.due),
    sorted.map((row) => row.available_at),
    first.created_at,
  );
}

async function settle(transaction: Transaction, outcome: OutboxOutcome): Promise<number[]> {
  const { owner, now, sent, deferred, dead, released, renewed } = outcome;
  const keys = [sent, released, renewed.keys, [...deferred, ...dead].map((row) => row.task_key)].flat();
  if (keys.length === 0) return [];
  // A dead letter is an event, and what a reader of events has seen may not be forgotten.
  if (dead.length === 0) transaction.later('outbox.relax');
  const own = new Set(
    (await transaction.lists('outbox.lock_owned', owner, keys)).map(([key]) => key as number),
  );
  const isOwn = (key: number): boolean => own.has(key);
  const isOwnRow = (row: { readonly task_key: number }): boolean => own.has(row.task_key);
  const gone = [...sent, ...dead.map((row) => row.task_key)].filter(isOwn);
  if (sent.some(isOwn)) transaction.later('outbox.mark', sent.filter(isOwn), now);
  const buried = dead.filter(isOwnRow);
  if (buried.length > 0)
    transaction.later(
      'outbox.bury',
      now,
      buried.map((row) => row.task_key),
      buried.map((row) => row.retries),
      buried.map((row) => row.last_error),
    );
  if (gone.length > 0) transaction.later('outbox.remove', gone);
  const later = deferred.filter(isOwnRow);
  if (later.length > 0)
    transaction.later(
      'outbox.defer',
      later.map((row) => row.task_key),
      later.map((row) => row.available_at),
      later.map((row) => row.retries),
      later.map((row) => row.last_error),
    );
  if (released.some(isOwn)) transaction.later('outbox.release', released.filter(isOwn));
  const kept = renewed.keys.filter(isOwn);
  if (kept.length > 0) transaction.later('outbox.renew', kept, renewed.until);
  return [...own];
}
