/** The product in a process of its own, engine, loops and worker on one store, with short leases and a task that takes its time. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { LocalRelay } from '../../src/app/local-relay.ts';
import { defineHandler, type Handler } from '../../src/handlers/handler.ts';
import { transform } from '../../src/handlers/transform.ts';

const [store = '', leaseMs = '1000', napMs = '100'] = process.argv.slice(2);
const nap: Handler['run'] = async (context) => {
  process.stdout.write('task\n');
  await delay(Number(napMs), undefined, { signal: context.signal });
  return transform.run(context as Parameters<typeof transform.run>[0]);
};
const data = mkdtempSync(join(tmpdir(), 'relay-process-'));
const relay = await LocalRelay.open({
  data,
  store,
  cwd: data,
  env: {},
  log: 'error',
  writeLog: () => {},
  by: 'test',
  leaseMs: Number(leaseMs),
  handlers: [defineHandler({ ...transform, run: nap } as Handler)],
});
await relay.startEngine();
const worker = await relay.startWorker({ concurrency: 4 });
process.once('SIGTERM', async () => {
  await worker.stop();
  await relay.close();
  rmSync(data, { recursive: true, force: true });
});
process.stdout.write('ready\n');
