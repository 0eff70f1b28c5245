/** A real engine on a SQLite file, for programs that tests start and kill. */
import { dirname, join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import { createLogger } from '../../src/base/logger.ts';
import { Engine } from '../../src/engine/engine.ts';
import { BUILT_IN_HANDLERS } from '../../src/handlers/registry.ts';
import { FileBlobStore } from '../../src/stores/blobs/file-blob-store.ts';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';

/** Opens and starts it; `errors` collects what it logs as an error. */
export async function openEngine(
  path: string,
  options: { errors: string[]; leaseMs?: number },
): Promise<{ store: SqliteStore; engine: Engine }> {
  const store = new SqliteStore({ path });
  await store.migrate();
  const engine = new Engine({
    store,
    blobs: new FileBlobStore(join(dirname(path), 'blobs')),
    handlers: BUILT_IN_HANDLERS,
    clock: systemClock,
    random: () => 0.5,
    logger: createLogger({ level: 'error', clock: systemClock, write: (line) => options.errors.push(line) }),
    secret: () => undefined,
    env: () => undefined,
    ...(options.leaseMs !== undefined && { leaseMs: options.leaseMs }),
  });
  await engine.start();
  return { store, engine };
}
