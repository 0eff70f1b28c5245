/** Everything that is only looked up, in SQLite: workflows, events, context snapshots, idempotency records, workers. */
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
import type { NewEvent, Tx } from '../store.ts';
import type { Access } from './access.ts';
import { insertInto } from './row-statements.ts';

/** Events that say the same are worth a statement of their own from this many on. */
const ALIKE_MIN = 8;
const EVENTS = insertInto<NewEvent>('events', EVENT_COLUMNS);

/** Operations on workflows. */
export function workflows(access: Access): Tx['workflows'] {
  return {
    latest: async (name) => access.one<WorkflowRow>('workflows.latest', name),
    get: async (name, version) => access.one<WorkflowRow>('workflows.get', name, version),
    insert: async (row) =>
      access.run('workflows.insert', row.name, row.version, row.hash, row.definition, row.created_at),
    list: async () => access.rows<WorkflowRow>('workflows.list'),
  };
}

/** Operations on events. */
export function events(access: Access): Tx['events'] {
  return {
    append: async (list) => {
      for (const alike of groupAlike(list, ({ data }) => data, ALIKE_MIN)) access.insertAll(EVENTS, alike);
    },
    page: async ({ after: cursor, run_key, types, limit }) => {
      const after = cursor === undefined ? 0 : parseCursor(cursor);
      const wanted = types === undefined ? null : JSON.stringify(types);
      return run_key === undefined
        ? access.rows<EventRow>('events.page', after, wanted, limit)
        : access.rows<EventRow>('events.page_of_run', after, wanted, limit, run_key);
    },
    isExpired: async (cursor) =>
      access.one<{ is_expired: number }>('events.is_expired', parseCursor(cursor))?.is_expired === 1,
    newest: async () => access.one<{ cursor: string }>('events.newest')?.cursor ?? '0',
    estimate: async () => access.one<{ n: number }>('events.estimate')?.n ?? 0,
  };
}

/** A cursor is the number of an event. */
function parseCursor(text: string): number {
  const seq = Number(text);
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(seq)) return seq;
  throw new RelayError('USAGE', `\`${text}\` is not a cursor`);
}

/** Operations on context snapshots. */
export function contexts(access: Access): Tx['contexts'] {
  return {
    insert: async (row) =>
      access.run(
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
    ofRun: async (run_key) => access.rows<ContextRow>('contexts.of_run', run_key),
  };
}

/** Operations on idempotency records. */
export function idempotency(access: Access): Tx['idempotency'] {
  return {
    find: async (scope, key) => access.one<IdempotencyRow>('idempotency.find', scope, key),
    record: async (row) =>
      access.run(
        'idempotency.record',
        row.scope,
        row.idempotency_key,
        row.digest,
        row.answer,
        row.run_key,
        row.created_at,
      ),
    expire: async (before) => access.run('idempotency.expire', before),
  };
}

/** Operations on workers. */
export function workers(access: Access): Tx['workers'] {
  return {
    save: async (row) =>
      access.run(
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
    list: async () => access.rows<WorkerRow>('workers.list'),
    remove: async (id) => access.run('workers.remove', id),
  };
}

/** Operations on tokens. */
export function tokens(access: Access): Tx['tokens'] {
  return {
    insert: async (row) =>
      access.run(
        'tokens.insert',
        row.id,
        row.name,
        row.scopes,
        row.hash,
        row.created_at,
        row.last_used_at,
        row.revoked_at,
      ),
    byHash: async (hash) => access.one<TokenRow>('tokens.by_hash', hash),
    list: async () => access.rows<TokenRow>('tokens.list'),
    revoke: async (id, at) => access.run('tokens.revoke', id, at),
    touch: async (id, at) => access.run('tokens.touch', id, at),
  };
}

/** How much there is to do. */
export function stats(access: Access): Tx['stats'] {
  return {
    handOut: async (now) =>
      access.one<StatsRow>('stats.hand_out', now) ?? {
        queued: 0,
        oldest_at: null,
        leased: 0,
        asking: 0,
        delayed: 0,
      },
    runs: async () => access.rows<{ status: string; n: number }>('stats.runs'),
  };
}
