/** Several processes on one SQLite file: nobody hears of a lock, and nothing is done twice (SPEC S14.1, S14.7). */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import { brokenPromises } from '../support/invariants.ts';

const run = promisify(execFile);
const PROGRAM = join(import.meta.dirname, '../support/store-process.ts');

describe('two processes on one file', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'relay-two-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('`database is locked` never reaches a user, and every task is done once', async () => {
    const path = join(folder, 'relay.db');
    const reports = await Promise.all(
      [20, 20, 0].map(async (runs) => {
        const { stdout, stderr } = await run(process.execPath, [
          '--import',
          'tsx',
          PROGRAM,
          path,
          String(runs),
        ]);
        return { ...(JSON.parse(stdout) as Record<string, unknown>), stderr };
      }),
    );
    for (const report of reports)
      expect(report).toMatchObject({
        error: null,
        refused: [],
        errors: [],
        stderr: expect.not.stringContaining('lock'),
      });
    const store = new SqliteStore({ path });
    await store.migrate();
    const rows = await store.read((tx) => tx.runs.list({ limit: 100 }));
    // A process without runs of its own may have found nothing to do yet; the others end only when all is over.
    expect(rows).toHaveLength(40);
    expect(new Set(rows.map(({ status }) => status))).toEqual(new Set(['SUCCESS']));
    const completed = reports.reduce(
      (sum, report) => sum + Number((report as { completed?: number }).completed),
      0,
    );
    expect(completed).toBe(160);
    for (const row of rows) {
      expect(await brokenPromises(store, row.id)).toEqual([]);
      const tasks = await store.read((tx) => tx.tasks.ofRun(row.key, { after: 0, limit: 10 }));
      expect(tasks.map(({ attempt, losses }) => [attempt, losses])).toEqual(tasks.map(() => [1, 0]));
    }
    await store.close();
  }, 120_000);
});
