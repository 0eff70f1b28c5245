/** A process that works on a SQLite file like any other: starts runs, claims, completes, until every run is over. Prints what it did. */
import { toRelayError } from '../../src/base/errors.ts';
import type { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import type { Settlement } from '../../src/worker/work-source.ts';
import { canonical } from './harness.ts';
import { openEngine } from './open-engine.ts';

const [path = '', runs = '0', textBytes = '1'] = process.argv.slice(2);

interface Report {
  completed: number;
  refused: string[];
  error: { code: string; message: string } | null;
}

const report: Report = { completed: 0, refused: [], error: null };
const errors: string[] = [];
try {
  await work();
} catch (error) {
  const { code, message } = toRelayError(error);
  report.error = { code, message };
}
process.stdout.write(`${JSON.stringify({ ...report, errors })}\n`);

async function work(): Promise<void> {
  const { store, engine } = await openEngine(path, { errors });
  const workflow = await canonical({
    name: 'diamond',
    tasks: { a: {}, b: { needs: 'a' }, c: { needs: 'a', if: 'tasks.a.output' }, d: { needs: ['b', 'c'] } },
  });
  const { source } = await engine.source({ handlers: ['transform'] });
  try {
    for (let n = 0; n < Number(runs); n++)
      await engine.startRun({ workflow }, { caller: String(process.pid) });
    let settlements: Settlement[] = [];
    while (settlements.length > 0 || (await isBusy(store))) {
      const { results, leases } = await source.next({
        limit: 4,
        settlements,
        signal: AbortSignal.timeout(200),
      });
      for (const result of results) {
        if (result.ok) report.completed += 1;
        else report.refused.push(`${result.code} ${result.message}`);
      }
      const output = 'x'.repeat(Number(textBytes));
      settlements = leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output }));
    }
  } finally {
    await engine.stop();
    await store.close();
  }
}

async function isBusy(store: SqliteStore): Promise<boolean> {
  const rows = await store.read((tx) => tx.runs.list({ limit: 1_000 }));
  return rows.some((run) => ['PENDING', 'RUNNING', 'WAITING'].includes(run.status));
}
