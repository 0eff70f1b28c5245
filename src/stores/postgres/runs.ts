/** Runs in Postgres. */
import { RUN_SHAPE } from '../row-shapes.ts';
import type { RunRow } from '../rows.ts';
import { listStatement } from '../run-list.ts';
import type { Tx } from '../store.ts';
import type { Access } from './access.ts';
import type { Value } from './values.ts';

/** What belongs to a run, in the order in which it is removed. */
const PARTS = [
  'logs',
  'attempts',
  'artifacts',
  'edges',
  'marks',
  'outbox',
  'dead_letters',
  'tasks',
  'events',
  'contexts',
  'idempotency',
];

/** Operations on runs. */
export function runs(access: Access): Tx['runs'] {
  const { transaction } = access;
  const list = async (name: string, ...values: readonly Value[]): Promise<RunRow[]> =>
    access.made(RUN_SHAPE, await transaction.lists(name, ...values));
  return {
    byKeys: (keys) => access.runsByKeys(keys),
    byId: async (id) => (await list('runs.by_id', id))[0] ?? null,
    insert: (added) => access.insertKeyed(RUN_SHAPE, added),
    save: async (changed) => access.save(RUN_SHAPE, changed),
    list: ({ before, status, workflow_name, label, limit }) =>
      list(
        listStatement(status, workflow_name),
        before ?? null,
        status ?? null,
        workflow_name ?? null,
        label === undefined ? null : label.map((part) => JSON.stringify(part)).join(':'),
        limit,
      ),
    finishing: (limit) => list('runs.finishing', limit),
    prunable: ({ statuses, before, limit }) =>
      list(transaction.isWriter ? 'runs.prunable_locked' : 'runs.prunable', statuses, before, limit),
    remove: async (keys) => {
      const blobs = await transaction.rows<{ blob_ref: string }>('runs.blobs', keys);
      for (const part of PARTS) transaction.later(`runs.remove_${part}`, keys);
      transaction.later('runs.remove', keys);
      access.forget(keys);
      return blobs.map((row) => row.blob_ref);
    },
  };
}
