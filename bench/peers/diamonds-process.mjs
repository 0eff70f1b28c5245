// One of several processes on one Postgres: `node diamonds-process.mjs DIAMONDS STORE_URL`. Says `ready`, waits for a line, starts its
// diamonds and works, on its own and on everybody's, until it is told to stop by the end of its input.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { LocalRelay } from '../../dist/app/local-relay.js';

const CONCURRENCY = 256;
const [diamonds = '0', store = ''] = process.argv.slice(2);
const task = (...needs) => ({ needs, uses: 'transform', with: { value: 1 } });
const workflow = {
  name: 'bench-diamond',
  tasks: { a: task(), b: task('a'), c: task('a'), d: task('b', 'c') },
};
const data = mkdtempSync(join(tmpdir(), 'relay-bench-'));
const relay = await LocalRelay.open({
  data,
  store,
  cwd: data,
  env: {},
  log: 'warn',
  by: 'bench',
  writeLog: (line) => process.stderr.write(line),
});
await relay.startEngine();
const worker = await relay.startWorker({ concurrency: CONCURRENCY });
process.stdout.write('ready\n');
for await (const _ of createInterface({ input: process.stdin })) {
  const start = () => relay.engine.startRun({ workflow }, { caller: 'bench' });
  await Promise.all(Array.from({ length: Number(diamonds) }, start));
}
await worker.stop();
await relay.close();
rmSync(data, { recursive: true, force: true });
