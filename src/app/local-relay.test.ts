/** Store, engine and workers of one process are ended together. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LocalRelay } from './local-relay.ts';

const open = (cwd: string): Promise<LocalRelay> =>
  LocalRelay.open({ data: '.relay', cwd, env: {}, log: 'error', writeLog: () => {}, by: 'test' });

// SPEC S14.7
it('closing stops a worker that nobody has stopped, before the store is gone', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'relay-local-'));
  try {
    const first = await open(cwd);
    await first.startEngine();
    const worker = await first.startWorker({ concurrency: 1 });
    expect((await first.api.workers.list()).items).toHaveLength(1);
    await first.close();
    // Once more is no mistake.
    await worker.stop();
    const second = await open(cwd);
    expect((await second.api.workers.list()).items).toEqual([]);
    await second.close();
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
});
