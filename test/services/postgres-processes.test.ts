/** Several processes on one Postgres, in one instant: nobody takes what another has, and nobody waits for ever. */
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import type { Lease, SettlementResult } from '../../src/worker/work-source.ts';
import { Actor, soon } from '../support/actors.ts';
import { Harness } from '../support/harness.ts';
import { brokenPromises } from '../support/invariants.ts';
import { createDatabase } from '../support/postgres.ts';

const PROCESSES = 4;
const TASKS = 5_000;
const LEASE_MS = 100;
const CANCELS = 10_000;

const place = inject('postgres');
const skipped = 'reason' in place ? `, skipped: ${place.reason}` : '';

describe.skipIf(skipped !== '')(`postgres: processes in one instant${skipped}`, () => {
  let url = '';
  let actors: Actor[] = [];
  let h: Harness;
  const closing: (() => unknown)[] = [];

  beforeAll(async () => {
    const database = await createDatabase('url' in place ? place.url : '');
    closing.push(database.drop);
    url = database.url;
    const store = new PostgresStore({ url });
    closing.push(() => store.close());
    await store.migrate();
    // Only looks on.
    h = new Harness({ store, folder: '/nonexistent', reopen: async () => store, close: async () => {} });
    actors = await Actor.start(url, PROCESSES, { leaseMs: LEASE_MS });
    closing.push(() => Promise.all(actors.map((actor) => actor.stop())));
  });
  afterEach(async () => {
    expect(await deadlocks(url)).toBe(0);
  });
  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
  });

  const by = (index: number): Actor => actors[index] as Actor;
  const start = (tasks: object, rest: object = {}): Promise<string> =>
    by(0).do('start', { definition: { name: 'race', ...rest, tasks } });
  const complete = ({ lease_id } = { lease_id: '' }) => ({
    settlements: [{ kind: 'complete', lease_id, output: 1 } as const],
  });

  // SPEC S4.6, I15
  it('two parents that finish in one instant unlock their child once', async () => {
    for (let round = 0; round < 50; round++) {
      const run = await start({ a: {}, b: {}, c: { needs: ['a', 'b'] } });
      const [a, b] = await by(0).do<Lease[]>('claim', { limit: 2 });
      const at = soon();
      const answers = await Promise.all([
        by(1).do<SettlementResult[]>('settle', complete(a), at),
        by(2).do<SettlementResult[]>('settle', complete(b), at),
      ]);
      expect(answers.flat().map(({ ok }) => ok)).toEqual([true, true]);
      expect(await h.statuses(run)).toEqual({ a: 'SUCCESS', b: 'SUCCESS', c: 'QUEUED' });
      expect(await h.eventsOf(run, 'c')).toHaveLength(1);
      expect(await brokenPromises(h.store, run)).toEqual([]);
      await by(3).do('cancel', { run });
    }
  });

  // SPEC S4.5, S5.8, S6.2
  it('two reapers, a heartbeat, a completion and a cancel meet one lease: the first wins, the others hear of it', async () => {
    // A reaper gives heartbeats one lease after its start; that is over by now.
    const ends = new Set<string>();
    for (let round = 0; round < 40; round++) {
      const run = await start({ a: { retry: { initial: '1ms' } } });
      const [lease] = await by(0).do<Lease[]>('claim', { limit: 1 });
      const at = soon() + LEASE_MS;
      const cancelAt = round % 2 === 0 ? at : at + 3;
      const outcomes = await Promise.all([
        by(0).attempt('reap', {}, at),
        by(1).attempt('reap', {}, at),
        by(1).attempt('beat', { lease_id: lease?.lease_id ?? '' }, at),
        by(2).attempt('settle', complete(lease), at),
        by(3).attempt('cancel', { run }, cancelAt),
      ]);
      for (const told of outcomes) if ('code' in told) expect(told).toMatchObject({ code: 'RUN_TERMINAL' });
      const task = await h.task(run, 'a');
      const [settled] = (outcomes[3] as { value: SettlementResult[] }).value;
      expect(settled?.ok === true, 'a completion that was answered is kept').toBe(task.status === 'SUCCESS');
      expect(await h.attempts(task)).toHaveLength(1);
      expect(
        (await h.events(run, 'task.completed')).length + (await h.events(run, 'task.cancelled')).length,
      ).toBe(1);
      expect(await brokenPromises(h.store, run)).toEqual([]);
      ends.add(`${task.status} ${task.losses}`);
    }
    // Had the same one won every time, it would not have been a race.
    expect(ends.size).toBeGreaterThan(1);
  });

  // SPEC S1.2, I13
  it('max_parallel holds for all processes together', async () => {
    const max_parallel = 3;
    const tasks = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`t${n}`, {}]));
    const run = await start(tasks, { max_parallel });
    const told = await Promise.all(
      actors.map((actor) => actor.do<{ taken: string[] }>('drain', { limit: 2 })),
    );
    expect(told.flatMap(({ taken }) => taken)).toHaveLength(60);
    const events = await h.events(run);
    const active = new Set<string>();
    let most = 0;
    for (const [index, { cursor, task_id, data }] of events.entries()) {
      if (task_id === null) continue;
      if (['QUEUED', 'LEASED', 'RUNNING'].includes(String(data.to))) active.add(task_id);
      else active.delete(task_id);
      // What one transaction did is seen as one.
      const isLast = cursor.split('.')[0] !== events[index + 1]?.cursor.split('.')[0];
      if (isLast) most = Math.max(most, active.size);
    }
    expect(most).toBe(max_parallel);
    expect((await h.run(run)).status).toBe('SUCCESS');
    expect(await brokenPromises(h.store, run)).toEqual([]);
  });

  // SPEC S4.4, I1
  it(`${PROCESSES} processes take ${PROCESSES * TASKS} tasks, each of them once`, async () => {
    const width = 500;
    const wide = Object.fromEntries(
      Array.from({ length: width - 2 }, (_, n) => [`t${n}`, { needs: 'first' }]),
    );
    const tasks = { first: {}, ...wide, last: { needs: Object.keys(wide) } };
    const runs: string[] = [];
    for (let n = 0; n < (PROCESSES * TASKS) / width; n++) runs.push(await start(tasks));
    const told = await Promise.all(
      actors.map((actor) => actor.do<{ taken: string[]; refused: string[] }>('drain', { limit: 100 })),
    );
    const taken = told.flatMap((each) => each.taken);
    expect(told.flatMap((each) => each.refused)).toEqual([]);
    expect(taken).toHaveLength(PROCESSES * TASKS);
    expect(new Set(taken).size).toBe(PROCESSES * TASKS);
    for (const run of runs) expect((await h.run(run)).status).toBe('SUCCESS');
    expect(await brokenPromises(h.store, runs[0] ?? '')).toEqual([]);
    // One process must not have starved the others.
    expect(told.filter((each) => each.taken.length > 0).length).toBeGreaterThan(1);
  });

  // DESIGN hot path 5
  it(`cancel against claim and settle: no deadlock in ${CANCELS} rounds`, async () => {
    const workers = [by(0), by(1)];
    const churning = Promise.all(workers.map((actor) => actor.do<number>('churn', { width: 10 })));
    const cancelling = [by(2), by(3)].map((actor) => actor.do<number>('cancelAll', { count: CANCELS / 2 }));
    const [one = 0, two = 0] = await Promise.all(cancelling);
    for (const actor of workers) await actor.do('rest', {});
    await churning;
    expect(one + two).toBeGreaterThanOrEqual(CANCELS);
    await by(0).do('drain', { limit: 100 });
    const counts = await h.store.read((tx) => tx.stats.runs());
    expect(counts.map(({ status }) => status).toSorted()).toEqual(['CANCELLED', 'SUCCESS']);
    const cancelled = await h.store.read((tx) => tx.runs.list({ status: 'CANCELLED', limit: 50 }));
    for (const { id } of cancelled) expect(await brokenPromises(h.store, id)).toEqual([]);
  }, 300_000);
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
