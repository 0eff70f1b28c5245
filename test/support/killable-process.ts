/** A process that works on one wide run, notes every execution in a file, prints a line per step, and expects to be killed. */
import { appendFileSync } from 'node:fs';
import type { Settlement } from '../../src/worker/work-source.ts';
import { canonical } from './harness.ts';
import { openEngine } from './open-engine.ts';

const [path = '', notes = '', width = '0', claimed = '1'] = process.argv.slice(2);
// Whoever had to wait for a lease of a dead process would wait for a day.
const { store, engine } = await openEngine(path, { errors: [], leaseMs: 86_400_000 });
if ((await store.read((tx) => tx.runs.list({ limit: 1 }))).length === 0) {
  const middle = Array.from({ length: Number(width) }, (_, n) => [
    `t${n}`,
    { needs: n % 3 === 0 ? 'first' : `t${n - 1}` },
  ]);
  const tasks = {
    first: {},
    ...Object.fromEntries(middle),
    last: { needs: middle.map(([id]) => id as string) },
  };
  const retry = { max_losses: 1_000, initial: '1ms', max: '20ms' };
  const defaults = { uses: 'transform', with: { value: 1 }, retry };
  await engine.startRun({ workflow: await canonical({ name: 'wide', defaults, tasks }) }, { caller: 'test' });
}
const { source } = await engine.source({ handlers: ['transform'] });
let settlements: Settlement[] = [];
while (settlements.length > 0 || (await isBusy())) {
  const { leases } = await source.next({
    limit: Number(claimed),
    settlements,
    signal: AbortSignal.timeout(50),
  });
  for (const { task_id, attempt } of leases) appendFileSync(notes, `${task_id} ${attempt}\n`);
  process.stdout.write('step\n');
  settlements = leases.map(({ lease_id, task_id }) => ({ kind: 'complete', lease_id, output: task_id }));
}
process.stdout.write('over\n');
await engine.stop();
await store.close();

async function isBusy(): Promise<boolean> {
  const [run] = await store.read((tx) => tx.runs.list({ limit: 1 }));
  return run?.status !== 'SUCCESS';
}
