/** Runs in SQLite. */
import { RUN_CHANGES, RUN_COLUMN_INDEX, RUN_NEW, toRunRow } from '../columns.ts';
import type { RunRow } from '../rows.ts';
import type { Tx } from '../store.ts';
import type { Access } from './access.ts';
import type { SqlValue } from './driver.ts';

/** Operations on runs. */
export function runs(access: Access): Tx['runs'] {
  const list = (name: string, ...params: SqlValue[]): RunRow[] => access.listed(toRunRow, name, ...params);
  return {
    byKeys: async (keys) => (keys.length === 0 ? [] : list('runs.by_keys', JSON.stringify(keys))),
    byId: async (id) => list('runs.by_id', id)[0] ?? null,
    insert: async (added) => access.insertKeyed('runs', RUN_NEW, added),
    save: async (changed) =>
      access.save('runs', { columns: RUN_CHANGES, indexOf: RUN_COLUMN_INDEX }, changed),
    list: async ({ before, status, workflow_name, label, limit }) =>
      list(
        'runs.list',
        before ?? null,
        status ?? null,
        workflow_name ?? null,
        label?.[0] ?? null,
        label?.[1] ?? null,
        limit,
      ),
    finishing: async (limit) => list('runs.finishing', limit),
    prunable: async ({ statuses, before, limit }) =>
      list('runs.prunable', JSON.stringify(statuses), before, limit),
    remove: async (keys) => {
      const gone = JSON.stringify(keys);
      const blobs = access.rows<{ blob_ref: string }>('runs.blobs', gone).map((row) => row.blob_ref);
      const parts = ['logs', 'attempts', 'artifacts', 'edges', 'tasks', 'events', 'contexts', 'idempotency'];
      for (const part of parts) access.run(`runs.remove_${part}`, gone);
      access.run('runs.remove', gone);
      return blobs;
    },
  };
}
