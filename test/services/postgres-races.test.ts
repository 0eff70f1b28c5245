/** Several engines on one Postgres, in lock step with the test's clock. The same with processes: postgres-processes.test.ts. */
import { Client } from 'pg';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import { STORES } from '../conformance/stores.ts';
import { Harness } from '../support/harness.ts';
import { brokenPromises } from '../support/invariants.ts';

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
});

async function deadlocks(database: string): Promise<number> {
  const client = new Client({ connectionString: database });
  await client.connect();
  const { rows } = await client.query<{ deadlocks: string }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  );
  await client.end();
  return Number(rows[0]?.deadlocks);
}
