/** A process of its own with an engine and a worker on a Postgres store: takes work until no run is left, then tells what it took. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import { createLogger } from '../../src/base/logger.ts';
import { Engine } from '../../src/engine/engine.ts';
import { BUILT_IN_HANDLERS } from '../../src/handlers/registry.ts';
import { FileBlobStore } from '../../src/stores/blob-store.ts';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import type { Settlement } from '../../src/worker/work-source.ts';

const [url = '', limit = '50'] = process.argv.slice(2);
const store = new PostgresStore({ url });
const engine = new Engine({
  store,
  blobs: new FileBlobStore(join(tmpdir(), 'relay-no-blobs')),
  handlers: BUILT_IN_HANDLERS,
  clock: systemClock,
  random: Math.random,
  logger: createLogger({ level: 'warn', clock: systemClock, write: (line) => process.stderr.write(line) }),
  secret: () => undefined,
  env: () => undefined,
});
await engine.start();
const { source } = await engine.source({ handlers: ['transform'] });
const taken: string[] = [];
const refused: string[] = [];
let settlements: Settlement[] = [];
for (;;) {
  const asked = await source.next({ limit: Number(limit), settlements, signal: AbortSignal.abort() });
  for (const result of asked.results) if (!result.ok) refused.push(result.code);
  taken.push(...asked.leases.map(({ task_run_id, attempt }) => `${task_run_id} ${attempt}`));
  settlements = asked.leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }));
  if (settlements.length > 0) continue;
  const active = await store.read((tx) => tx.runs.list({ status: 'RUNNING', limit: 1 }));
  if (active.length === 0) break;
  await new Promise((resolve) => setTimeout(resolve, 5));
}
await engine.stop();
await store.close();
process.stdout.write(JSON.stringify({ taken, refused }));
