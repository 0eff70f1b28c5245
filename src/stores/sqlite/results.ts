/** What attempts leave behind, in SQLite: how they ended, artifacts, logs. */
import { ARTIFACT_COLUMNS, ATTEMPT_COLUMNS } from '../columns.ts';
import type { ArtifactRow, AttemptRow } from '../rows.ts';
import type { Tx } from '../store.ts';
import type { Access } from './access.ts';
import type { SqlValue } from './driver.ts';
import { insertInto } from './row-statements.ts';

const ATTEMPTS = insertInto<AttemptRow>('attempts', ATTEMPT_COLUMNS, 'insert or ignore');
const ARTIFACTS = insertInto<ArtifactRow>('artifacts', ARTIFACT_COLUMNS);

/** Operations on attempts. */
export function attempts(access: Access): Tx['attempts'] {
  return {
    record: async (list) => access.insertAll(ATTEMPTS, list),
    find: async (keys) =>
      keys.length === 0 ? [] : access.rows<AttemptRow>('attempts.find', JSON.stringify(keys)),
    ofTask: async (task_key) => access.rows<AttemptRow>('attempts.of_task', task_key),
    acknowledge: async (keys) => access.many('attempts.acknowledge', keys),
  };
}

/** Operations on artifacts. */
export function artifacts(access: Access): Tx['artifacts'] {
  return {
    insert: async (list) => insertArtifacts(access, list),
    find: async (keys) =>
      keys.length === 0 ? [] : access.rows<ArtifactRow>('artifacts.find', JSON.stringify(keys)),
    ofTask: async (task_key) => access.rows<ArtifactRow>('artifacts.of_task', task_key),
    isBlobUsed: async (ref) => (access.one<{ n: number }>('artifacts.blob_uses', ref)?.n ?? 0) > 0,
  };
}

/** Operations on logs. */
export function logs(access: Access): Tx['logs'] {
  return {
    append: async (list) =>
      access.many(
        'logs.append',
        list.map((row) => [row.task_key, row.attempt, row.at, row.stream, row.text]),
      ),
    page: async (task_key, { after, limit }) => access.rows('logs.page', task_key, after, limit),
    pageOfRun: async (run_key, { after, limit }) => access.rows('logs.page_of_run', run_key, after, limit),
  };
}

/** Text travels in the list; bytes (files) need a parameter of their own. */
function insertArtifacts(access: Access, list: readonly ArtifactRow[]): void {
  const isBytes = (row: ArtifactRow): boolean => row.inline instanceof Uint8Array;
  access.insertAll(
    ARTIFACTS,
    list.filter((row) => !isBytes(row)),
  );
  for (const row of list.filter(isBytes)) {
    access.run('artifacts.insert_bytes', ...(ARTIFACT_COLUMNS.map((column) => row[column]) as SqlValue[]));
  }
}
