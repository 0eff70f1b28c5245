/** What attempts leave behind, in Postgres: how they ended, artifacts, logs. */
import { ARTIFACT_COLUMNS, ATTEMPT_COLUMNS } from '../columns.ts';
import type { ArtifactRow, AttemptRow } from '../rows.ts';
import type { Tx } from '../store.ts';
import type { Access } from './access.ts';
import type { Value } from './values.ts';

/** Operations on attempts. */
export function attempts(access: Access): Tx['attempts'] {
  const { transaction } = access;
  return {
    record: async (rows) => access.insert('attempts', ATTEMPT_COLUMNS, rows, 'on conflict do nothing'),
    find: async (keys) =>
      keys.length === 0
        ? []
        : transaction.rows<AttemptRow>(
            'attempts.find',
            keys.map(([task_key]) => task_key),
            keys.map(([, attempt]) => attempt),
          ),
    ofTask: (task_key) => transaction.rows<AttemptRow>('attempts.of_task', task_key),
    acknowledge: async (rows) => {
      if (rows.length > 0)
        transaction.later(
          'attempts.acknowledge',
          rows.map(([task_key]) => task_key),
          rows.map(([, attempt]) => attempt),
          rows.map(([, , usage]) => usage),
        );
    },
  };
}

/** Operations on artifacts. */
export function artifacts(access: Access): Tx['artifacts'] {
  const { transaction } = access;
  return {
    insert: async (rows) => insertArtifacts(access, rows),
    find: async (keys) =>
      keys.length === 0
        ? []
        : transaction.rows<ArtifactRow>(
            'artifacts.find',
            keys.map(([task_key]) => task_key),
            keys.map(([, attempt]) => attempt),
            keys.map(([, , ordinal]) => ordinal),
          ),
    ofTask: (task_key) => transaction.rows<ArtifactRow>('artifacts.of_task', task_key),
    isBlobUsed: async (ref) =>
      ((await transaction.one<{ n: number }>('artifacts.blob_uses', ref))?.n ?? 0) > 0,
  };
}

/** Operations on logs. */
export function logs({ transaction }: Access): Tx['logs'] {
  return {
    append: async (rows) => {
      if (rows.length > 0)
        transaction.later(
          'logs.append',
          rows.map((row) => row.task_key),
          rows.map((row) => row.attempt),
          rows.map((row) => row.at),
          rows.map((row) => row.stream),
          rows.map((row) => row.text),
        );
    },
    page: (task_key, { after, limit }) => transaction.rows('logs.page', task_key, after, limit),
    pageOfRun: (run_key, { after, limit }) => transaction.rows('logs.page_of_run', run_key, after, limit),
  };
}

/** Text travels in arrays; bytes (files) need a parameter of their own. */
function insertArtifacts(access: Access, rows: readonly ArtifactRow[]): void {
  const isBytes = (row: ArtifactRow): boolean => row.inline instanceof Uint8Array;
  const texts = rows.filter((row) => !isBytes(row));
  if (texts.length > 0) access.insert('artifacts', ARTIFACT_COLUMNS, texts);
  for (const row of rows.filter(isBytes))
    access.transaction.later(
      'artifacts.insert_bytes',
      ...ARTIFACT_COLUMNS.map((column): Value => row[column]),
    );
}
