/** Everything that is only looked up, in Postgres: workflows, events, context snapshots, idempotency records, workers. */
import { RelayError } from '../../base/errors.ts';
import { EVENT_COLUMNS } from '../columns.ts';
import { groupAlike } from '../row-groups.ts';
import type {
  ContextRow,
  EventRow,
  IdempotencyRow,
  StatsRow,
  TokenRow,
  WorkerRow,
  WorkflowRow,
} from '../rows.ts';
import type { Tx } from '../store.ts';
import type { Access } from './access.ts';

/** Events that say the same are worth a statement of their own from this many on. */
const ALIKE_MIN = 32;

/** Operations on workflows. */
export function workflows({ transaction }: Access): Tx['workflows'] {
  return {
    latest: (name) => transaction.one<WorkflowRow>('workflows.latest', name),
    get: (name, version) => transaction.one<WorkflowRow>('workflows.get', name, version),
    insert: async (row) =>
      transaction.later('workflows.insert', row.name, row.version, row.hash, row.definition, row.created_at),
    list: () => transaction.rows<WorkflowRow>('workflows.list'),
  };
}

/** Operations on events. */
export function events(access: Access): Tx['events'] {
  const { transaction } = access;
  return {
    append: async (rows) => {
      for (const alike of groupAlike(rows, ({ data }) => data, ALIKE_MIN))
        access.insert('events', EVENT_COLUMNS, alike);
    },
    page: async ({ after, run_key, types, limit }) => {
      const [xid, seq] = after === undefined ? ['0', 0] : parseCursor(after);
      const wanted = types ?? null;
      return run_key === undefined
        ? transaction.rows<EventRow>('events.page', xid, seq, wanted, limit)
        : transaction.rows<EventRow>('events.page_of_run', seq, wanted, limit, run_key);
    },
    isExpired: async (cursor) => {
      const found = await transaction.one<{ is_expired: boolean }>(
        'events.is_expired',
        ...parseCursor(cursor),
      );
      return found?.is_expired === true;
    },
    newest: async () => (await transaction.one<{ cursor: string }>('events.newest'))?.cursor ?? '0',
    estimate: async () => (await transaction.one<{ n: number }>('events.estimate'))?.n ?? 0,
  };
}

/** A cursor is the transaction and the number of an event: `771.1204`; `0` is the beginning. */
function parseCursor(text: string): [xid: string, seq: number] {
  if (text === '0') return ['0', 0];
  const match = /^(\d{1,20})\.(\d{1,15})$/.exec(text);
  if (match !== null) return [match[1] ?? '0', Number(match[2])];
  throw new RelayError('USAGE', `\`${text}\` is not a cursor`);
}

/** Operations on context snapshots. */
export function contexts({ transaction }: Access): Tx['contexts'] {
  return {
    insert: async (row) =>
      transaction.later(
        'contexts.insert',
        row.id,
        row.run_key,
        row.task_key,
        row.parent_id,
        row.label,
        row.data,
        row.created_by,
        row.created_at,
      ),
    ofRun: (run_key) => transaction.rows<ContextRow>('contexts.of_run', run_key),
  };
}

/** Operations on idempotency records. */
export function idempotency({ transaction }: Access): Tx['idempotency'] {
  return {
    find: (scope, key) => transaction.one<IdempotencyRow>('idempotency.find', scope, key),
    record: async (row) =>
      transaction.later(
        'idempotency.record',
        row.scope,
        row.idempotency_key,
        row.digest,
        row.answer,
        row.run_key,
        row.created_at,
      ),
    expire: async (before) => transaction.later('idempotency.expire', before),
  };
}

/** Operations on workers. */
export function workers({ transaction }: Access): Tx['workers'] {
  return {
    save: async (row) =>
      transaction.later(
        'workers.save',
        row.id,
        row.boot_id,
        row.host,
        row.pid,
        row.process_start,
        row.status,
        row.info,
        row.started_at,
        row.seen_at,
      ),
    list: () => transaction.rows<WorkerRow>('workers.list'),
    remove: async (id) => transaction.later('workers.remove', id),
  };
}

/** Operations on tokens. */
export function tokens({ transaction }: Access): Tx['tokens'] {
  return {
    insert: async (row) =>
      transaction.later(
        'tokens.insert',
        row.id,
        row.name,
        row.scopes,
        row.hash,
        row.created_at,
        row.last_used_at,
        row.revoked_at,
      ),
    byHash: (hash) => transaction.one<TokenRow>('tokens.by_hash', hash),
    list: () => transaction.rows<TokenRow>('tokens.list'),
    revoke: async (id, at) => transaction.later('tokens.revoke', id, at),
    touch: async (id, at) => transaction.later('tokens.touch', id, at),
  };
}

/** How much there is to do. */
export function stats({ transaction }: Access): Tx['stats'] {
  return {
    handOut: async (now) =>
      (await transaction.one<StatsRow>('stats.hand_out', now)) ?? {
        queued: 0,
        oldest_at: null,
        leased: 0,
        asking: 0,
        delayed: 0,
      },
    runs: () => transaction.rows<{ status: string; n: number }>('stats.runs'),
  };
}
