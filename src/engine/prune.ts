/** Retention (SPEC S12.6): old terminal runs go with everything that is theirs; blobs that nobody refers to go a day later. */
import type { EngineContext } from './engine-context.ts';
import { KEY_LIFE_MS } from './idempotency.ts';

/** What is to be removed. */
export interface PruneFilter {
  readonly statuses: readonly string[];
  /** Runs that ended before this time. */
  readonly before: number;
  readonly limit: number;
  /** Only tells what would go. */
  readonly dryRun: boolean;
}

/** A blob is stored before the row that names it; one that is younger may be about to be referred to. */
const BLOB_AGE_MS = 86_400_000;
const CHUNK = 100;

/** Removes runs in chunks, each a transaction of its own; gives their ids. */
export async function prune(context: EngineContext, filter: PruneFilter): Promise<readonly string[]> {
  const { store, committer } = context;
  if (filter.dryRun) return store.read(async (tx) => (await tx.runs.prunable(filter)).map((run) => run.id));
  const ids: string[] = [];
  while (ids.length < filter.limit) {
    const limit = Math.min(CHUNK, filter.limit - ids.length);
    const removed = await committer.commit(async (work) => {
      const runs = await work.tx.runs.prunable({ ...filter, limit });
      await work.tx.runs.remove(runs.map((run) => run.key));
      await work.tx.idempotency.expire(work.now - KEY_LIFE_MS);
      return runs.map((run) => run.id);
    });
    ids.push(...removed);
    if (removed.length < limit) break;
  }
  await removeOrphans(context);
  return ids;
}

async function removeOrphans({ store, blobs, clock }: EngineContext): Promise<void> {
  const before = clock.now() - BLOB_AGE_MS;
  for await (const ref of blobs.olderThan(before)) {
    const isUsed = await store.read((tx) => tx.artifacts.isBlobUsed(ref));
    // One that was stored again in this moment is about to be referred to.
    if (!isUsed) await blobs.remove(ref, before);
  }
}
