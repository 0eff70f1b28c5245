/** Runs in SQLite. */
import { isTerminal } from '../../domain/states.ts';
import { RUN_NEW } from '../columns.ts';
import { RUN_SHAPE } from '../row-shapes.ts';
import type { RunRow } from '../rows.ts';
import { listStatement } from '../run-list.ts';
import type { Tx } from '../store.ts';
import type { Access, Shape } from './access.ts';
import type { SqlValue } from './driver.ts';
import { insertInto } from './row-statements.ts';

const SHAPE: Shape<RunRow> = {
  ...RUN_SHAPE,
  insert: insertInto('runs', RUN_NEW),
  texts: new Map(),
  isHot: (run) => !isTerminal(run.status),
};

/** Operations on runs. */
export function runs(access: Access): Tx['runs'] {
  const list = (name: string, ...params: SqlValue[]): RunRow[] => access.listed(SHAPE, name, ...params);
  return {
    byKeys: async (keys) => access.byKeys(SHAPE, 'runs.by_keys', keys),
    byId: async (id) => list('runs.by_id', id)[0] ?? null,
    insert: async (added) => access.insertKeyed(SHAPE, added),
    save: async (changed) => access.save(SHAPE, changed),
    list: async ({ before, status, workflow_name, label, limit }) =>
      list(
        listStatement(status, workflow_name),
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
      const parts = [
        'logs',
        'attempts',
        'artifacts',
        'edges',
        'outbox',
        'dead_letters',
        'tasks',
        'events',
        'contexts',
        'idempotency',
      ];
      for (const part of parts) access.run(`runs.remove_${part}`, gone);
      access.run('runs.remove', gone);
      access.forget();
      return blobs;
    },
  };
}
