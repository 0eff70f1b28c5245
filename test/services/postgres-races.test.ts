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
  // SPEC S4.9
  it('two engines make and work off the items of one map: each once, never more than its max_parallel', async () => {
    const [left, right] = await pair();
    const [items, slots] = [1_200, 7];
    const run = await left.start({
      map: { for_each: `range(${items})`, max_parallel: slots, with: { value: '{{ item }}' } },
    });
    let atWork = 0;
    const taken: number[] = [];
    const work = async (h: Harness): Promise<void> => {
      while ((await h.run(run)).status !== 'SUCCESS') {
        await h.engine.runOnce();
        const leases = await h.claim(5);
        atWork += leases.length;
        expect(atWork).toBeLessThanOrEqual(slots);
        taken.push(...leases.flatMap(({ map_index }) => map_index ?? []));
        // A moment in which both may be at work; the end is counted before it is said, because the other may have the slot before the answer is here.
        await h.run(run);
        atWork -= leases.length;
        await h.settle(
          ...leases.map(
            ({ lease_id, config }) => ({ kind: 'complete', lease_id, output: config.value }) as const,
          ),
        );
      }
    };
    await Promise.all([work(left), work(right)]);
    const all = Array.from({ length: items }, (_, index) => index);
    expect(taken.toSorted((a, b) => a - b)).toEqual(all);
    expect(await left.output(run, 'map')).toEqual(all);
    expect(await brokenPromises(left.store, run)).toEqual([]);
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
