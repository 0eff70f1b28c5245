/** The outbox of an engine in this process, for operators. */
import { RelayError } from '../base/errors.ts';
import type { DeadLetterRow, OutboxListRow } from '../stores/rows.ts';
import type { DeadMessageView, OutboxMessageView, Page, RelayApi } from './api.ts';
import type { Local } from './local-api.ts';
import { PAGE_MAX } from './reader.ts';

const LIMIT = 100;

/** The part of the API that is about messages for a broker. */
export function outboxApi({ engine, by }: Local): RelayApi['outbox'] {
  const { store, clock, committer } = engine.context;
  const dead = (cursor: string | undefined, limit: number): Promise<DeadLetterRow[]> =>
    store.read((tx) => tx.outbox.deadLetters({ after: Number(cursor ?? 0), limit }));
  const named = async (ids: readonly string[] | undefined): Promise<readonly number[]> =>
    ids?.map(toKey) ?? (await dead(undefined, PAGE_MAX)).map(({ key }) => key);
  return {
    list: async ({ cursor, limit = LIMIT } = {}) => {
      const after = Number(cursor ?? 0);
      const rows = await store.read((tx) => tx.outbox.list({ after, limit: limit + 1 }));
      return pageOf(rows, limit, (row) => messageView(row, clock.now()));
    },
    stats: async () => {
      const now = clock.now();
      const { oldest_at, ...counts } = await store.read((tx) => tx.outbox.stats(now));
      return { ...counts, oldest_ms: oldest_at === null ? null : Math.max(0, now - oldest_at) };
    },
    deadLetters: async ({ cursor, limit = LIMIT } = {}) =>
      pageOf(await dead(cursor, limit + 1), limit, deadMessageView),
    replay: async ({ ids, dry_run }) => {
      const keys = await named(ids);
      if (!dry_run) await engine.replayDeadLetters(keys, by);
      return { ids: keys.map(String), dry_run };
    },
    purge: async ({ ids, dry_run }) => {
      const keys = await named(ids);
      if (!dry_run) await committer.commit((work) => work.tx.outbox.purge(keys));
      return { ids: keys.map(String), dry_run };
    },
  };
}

function pageOf<Row extends { readonly key: number }, View>(
  rows: readonly Row[],
  limit: number,
  view: (row: Row) => View,
): Page<View> {
  const shown = rows.slice(0, limit);
  return {
    items: shown.map(view),
    next_cursor: rows.length > limit ? String(shown.at(-1)?.key) : null,
  };
}

function toKey(id: string): number {
  const key = Number(id);
  if (/^\d{1,15}$/.test(id)) return key;
  throw new RelayError('USAGE', `\`${id}\` is not the id of a dead letter`, {
    hint: '`relay outbox dead-letters` lists them',
  });
}

function messageView(row: OutboxListRow, now: number): OutboxMessageView {
  const isInFlight = row.claimed_until !== null && row.claimed_until > now;
  return {
    task_run_id: row.task_run_id,
    run_id: row.run_id,
    task_id: row.task_id,
    attempt: row.attempt,
    status: isInFlight ? 'in_flight' : row.due === 1 ? 'due' : 'delayed',
    available_at: iso(row.available_at),
    created_at: iso(row.created_at),
    retries: row.retries,
    last_error: row.last_error,
  };
}

function deadMessageView(row: DeadLetterRow): DeadMessageView {
  return {
    id: String(row.key),
    task_run_id: row.task_run_id,
    run_id: row.run_id,
    task_id: row.task_id,
    attempt: row.attempt,
    retries: row.retries,
    last_error: row.last_error,
    created_at: iso(row.created_at),
    died_at: iso(row.died_at),
  };
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
