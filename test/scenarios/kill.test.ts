/** A real process killed with `kill -9` at random moments of a run of 300 tasks: nothing is lost, nothing is recorded twice. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import { seededRandom } from '../support/harness.ts';
import { brokenPromises } from '../support/invariants.ts';

const PROGRAM = join(import.meta.dirname, '../support/killable-process.ts');
const WIDTH = 298;
const KILLS = process.env.RELAY_LONG === 'yes' ? 100 : 20;
/** Small enough that the run is not over before the last kill. */
const CLAIMED = KILLS > 20 ? 1 : 3;
const STEPS_MAX = Math.floor((1.2 * WIDTH) / CLAIMED / KILLS);
const SEED = Number(process.env.RELAY_SEED ?? 20_260_101);

describe('kill -9', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'relay-kill-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it(`a run of ${WIDTH + 2} tasks survives ${KILLS} kills (seed ${SEED})`, async () => {
    const random = seededRandom(SEED);
    const path = join(folder, 'relay.db');
    const notes = join(folder, 'notes');
    const args = [path, notes, String(WIDTH), String(CLAIMED)];
    let kills = 0;
    while (kills < KILLS) {
      if (await runUntil(args, 1 + Math.floor(random() * STEPS_MAX), random() * 3)) break;
      kills += 1;
    }
    await runUntil(args, Number.POSITIVE_INFINITY, 0);
    process.stdout.write(`kill -9: ${kills} kills, seed ${SEED}\n`);
    expect(kills).toBe(KILLS);

    const store = new SqliteStore({ path });
    await store.migrate();
    const [run] = await store.read((tx) => tx.runs.list({ limit: 2 }));
    expect(run).toMatchObject({ status: 'SUCCESS', n_success: WIDTH + 2, n_leased: 0, n_queued: 0 });
    expect(await brokenPromises(store, run?.id ?? '')).toEqual([]);
    const tasks = await store.read((tx) => tx.tasks.ofRun(run?.key ?? 0, { after: 0, limit: 1_000 }));
    const executions = readFileSync(notes, 'utf8').trim().split('\n');
    const losses = tasks.reduce((sum, task) => sum + task.losses, 0);
    const attempts = tasks.reduce((sum, task) => sum + task.attempt, 0);
    expect(attempts).toBe(WIDTH + 2 + losses);
    // A worker that was killed between the claim and its note has not executed anything.
    expect(executions.length).toBeLessThanOrEqual(attempts);
    expect(new Set(executions).size).toBe(executions.length);
    expect(new Set(executions.map((line) => line.split(' ')[0])).size).toBe(WIDTH + 2);
    await store.close();
  }, 600_000);
});

/** Lets a process take some steps and a little more, then kills it; true when it was over before that. */
async function runUntil(args: readonly string[], steps: number, moreMs: number): Promise<boolean> {
  const child: ChildProcess = spawn(process.execPath, ['--import', 'tsx', PROGRAM, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const before = printed.split('step').length - 1;
    printed += text;
    const count = printed.split('step').length - 1;
    if (before < steps && count >= steps) setTimeout(() => child.kill('SIGKILL'), moreMs);
  });
  const code = await ended;
  expect(code === 0 || code === null, `the process ended with ${code}: ${printed}`).toBe(true);
  return printed.includes('over');
}
