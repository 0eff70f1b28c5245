/** Several engines and several processes on one Postgres: nobody takes what another has, and nobody waits for ever. */
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import { STORES } from '../conformance/stores.ts';
import { Harness } from '../support/harness.ts';
import { brokenPromises } from '../support/invariants.ts';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const PROCESSES = 4;
const TASKS = 5_000;
const ROUNDS = Number(process.env.RELAY_DEADLOCK_ROUNDS ?? 1_000);

const place = inject('postgres');
const skipped = 'reason' in place ? `, skipped: ${place.reason}` : '';
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Two engines with a store each, as in two processes. */
async function pair(): Promise<readonly [Harness, Harness]> {
  const [kind] = STORES;
  if (kind === undefined) throw new TypeError('there is a store');
  const first = await Harness.on(kind);
  closing.push(() => first.close());
  const store = new PostgresStore({ url: first.store.description });
  closing.push(() => store.close());
  const { folder } = first.opened;
  const second = new Harness(
    { store, folder, reopen: async () => store, close: async () => {} },
    { clock: first.clock },
  );
  await second.connect();
  return [first, second];
}

describe.skipIf(skipped !== '')(`postgres: races${skipped}`, () => {
  // Issue "Postgres", 2: cancel against claim
  it(`cancel, claim and settle in two engines: no deadlock in ${ROUNDS} rounds`, async () => {
    const [left, right] = await pair();
    const runs: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const started = [
        await left.start({ a: {}, b: {}, c: { needs: ['a', 'b'] } }),
        await right.start({ a: {}, b: {}, c: { needs: ['a', 'b'] } }),
      ];
      runs.push(...started);
      const work = async (h: Harness, cancelled: string | undefined): Promise<void> => {
        const leases = await h.claim(3);
        const done = leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }) as const);
        await Promise.all([
          h.settle(...done),
          cancelled === undefined ? null : h.engine.cancelRun(cancelled, 'me').catch(() => {}),
          h.claim(2),
        ]);
      };
      const [one, two] = round % 2 === 0 ? started : started.toReversed();
      await Promise.all([work(left, two), work(right, one)]);
    }
    expect(await deadlocks(left.store.description)).toBe(0);
    for (const run of runs.slice(-40)) expect(await brokenPromises(left.store, run)).toEqual([]);
  }, 300_000);

  // SPEC S4.6
  it('two parents that finish in one instant in two engines unlock a child once', async () => {
    const [left, right] = await pair();
    for (let round = 0; round < 50; round++) {
      const run = await left.start({ a: {}, b: {}, c: { needs: ['a', 'b'] } });
      const [a, b] = await left.claim(2);
      await Promise.all([left.complete(a ?? { lease_id: null }), right.complete(b ?? { lease_id: null })]);
      expect(await left.statuses(run)).toEqual({ a: 'SUCCESS', b: 'SUCCESS', c: 'QUEUED' });
      expect(await brokenPromises(left.store, run)).toEqual([]);
      await left.finish(run);
    }
  });

  // SPEC S6.2
  it('heartbeat, complete, cancel and two reapers on one lease in one instant: one of them wins', async () => {
    const [left, right] = await pair();
    for (let round = 0; round < 25; round++) {
      const run = await left.start({ a: {} });
      const lease = await left.claimOne('a');
      // Steps that a reaper takes for a healthy clock, until the lease is over.
      for (let step = 0; step < 5; step++) {
        left.clock.advance(5_000);
        for (const h of [left, right]) await h.engine.runOnce();
      }
      left.clock.advance(6_000);
      const outcomes = await Promise.allSettled([
        left.engine.runOnce(),
        right.engine.runOnce(),
        right.complete(lease),
        left.beat(lease),
        right.engine.cancelRun(run, 'me'),
      ]);
      for (const outcome of outcomes)
        if (outcome.status === 'rejected') expect(outcome.reason.code).toBe('RUN_TERMINAL');
      expect(await brokenPromises(left.store, run)).toEqual([]);
      await left.engine.cancelRun(run, 'me').catch(() => {});
    }
    expect(await deadlocks(left.store.description)).toBe(0);
  });

  // SPEC S4.7
  it('one key in two engines in one instant starts one run', async () => {
    const [left, right] = await pair();
    const { canonical } = await import('../support/harness.ts');
    const workflow = await canonical({ name: 'keyed', tasks: { a: {} } });
    for (let round = 0; round < 20; round++) {
      const start = (h: Harness) => h.engine.startRun({ workflow }, { caller: 'me', key: `k${round}` });
      const [one, two] = await Promise.all([start(left), start(right)]);
      expect(one.id).toBe(two.id);
    }
  });

  // Issue "Postgres", 2; I1
  it(`${PROCESSES} processes take ${TASKS} tasks, each of them once`, async () => {
    const [h] = await pair();
    const width = 500;
    const wide = Object.fromEntries(
      Array.from({ length: width - 2 }, (_, n) => [`t${n}`, { needs: 'first' }]),
    );
    const tasks = { first: {}, ...wide, last: { needs: Object.keys(wide) } };
    const runs = [];
    for (let n = 0; n < TASKS / width; n++) runs.push(await h.start(tasks));
    const told = await Promise.all(Array.from({ length: PROCESSES }, () => worker(h.store.description)));
    const taken = told.flatMap((each) => each.taken);
    expect(told.flatMap((each) => each.refused)).toEqual([]);
    expect(taken).toHaveLength(TASKS);
    expect(new Set(taken).size).toBe(TASKS);
    for (const run of runs) expect((await h.run(run)).status).toBe('SUCCESS');
    expect(await brokenPromises(h.store, runs[0] ?? '')).toEqual([]);
    expect(await deadlocks(h.store.description)).toBe(0);
    // One process must not have starved the others.
    expect(told.filter((each) => each.taken.length > 0).length).toBeGreaterThan(1);
  });
});

function worker(url: string): Promise<{ taken: string[]; refused: string[] }> {
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', 'test/support/postgres-worker-process.ts', url],
      {
        cwd: ROOT,
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const parts: Buffer[] = [];
    child.stdout.on('data', (part: Buffer) => parts.push(part));
    child.once('error', reject);
    child.once('close', (code) => {
      if (code !== 0) reject(new TypeError(`a worker process ended with ${code}`));
      else resolve(JSON.parse(Buffer.concat(parts).toString()) as { taken: string[]; refused: string[] });
    });
  });
}

async function deadlocks(database: string): Promise<number> {
  const client = new Client({ connectionString: database });
  await client.connect();
  const { rows } = await client.query<{ deadlocks: string }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  );
  await client.end();
  return Number(rows[0]?.deadlocks);
}
