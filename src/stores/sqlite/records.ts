/** Everything that is only looked up, in SQLite: workflows, events, context snapshots, idempotency records, workers. */
import { EVENT_COLUMNS } from '../columns.ts';
import type { ContextRow, EventRow, IdempotencyRow, WorkerRow, WorkflowRow } from '../rows.ts';
import type { Tx } from '../store.ts';
import type { Access } from './access.ts';

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
    append: async (list) => access.insertAll('events', EVENT_COLUMNS, list),
    page: async ({ after, run_key, types, limit }) => {
      const wanted = types === undefined ? null : JSON.stringify(types);
      return run_key === undefined
        ? access.rows<EventRow>('events.page', after, wanted, limit)
        : access.rows<EventRow>('events.page_of_run', after, wanted, limit, run_key);
    },
    bounds: async () =>
      access.one<{ oldest: number; newest: number }>('events.bounds') ?? { oldest: 0, newest: 0 },
  };
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
