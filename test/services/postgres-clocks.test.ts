/** Clocks that are set and processes that stand still, in real processes on one Postgres (SPEC S6.2, S6.3; I8, I12). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import type { HeartbeatAnswer, Lease, SettlementResult } from '../../src/worker/work-source.ts';
import { Actor } from '../support/actors.ts';
import { Harness } from '../support/harness.ts';
import { brokenPromises } from '../support/invariants.ts';
import { createDatabase } from '../support/postgres.ts';

const LEASE_MS = 1_000;
const HOUR_MS = 3_600_000;
const place = inject('postgres');
const skipped = 'reason' in place ? `, skipped: ${place.reason}` : '';

describe.skipIf(skipped !== '')(`postgres: clocks${skipped}`, () => {
  const closing: (() => unknown)[] = [];
  let h: Harness;
  let actors: Actor[] = [];

  beforeAll(async () => {
    const { url, drop } = await createDatabase('url' in place ? place.url : '');
    const folder = mkdtempSync(join(tmpdir(), 'relay-clocks-'));
    const store = new PostgresStore({ url });
    await store.migrate();
    h = new Harness({ store, folder, reopen: async () => store, close: async () => {} });
    actors = await Actor.start(url, 2, { leaseMs: LEASE_MS });
    closing.push(
      drop,
      () => rmSync(folder, { recursive: true, force: true }),
      () => store.close(),
    );
    closing.push(() => Promise.all(actors.map((actor) => actor.stop())));
  });
  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
  });

  const by = (index: number): Actor => actors[index] as Actor;
  const start = (tasks: object): Promise<string> =>
    by(0).do('start', { definition: { name: 'clocks', tasks } });
  const claim = async (index: number): Promise<Lease> => {
    const [lease] = await by(index).do<Lease[]>('claim', { limit: 1 });
    if (lease === undefined) throw new TypeError('there is something to claim');
    return lease;
  };
  /** The other process takes over what has expired. */
  const reclaim = async (): Promise<Lease> => {
    for (;;) {
      await by(1).do('reap', {});
      const [lease] = await by(1).do<Lease[]>('claim', { limit: 1 });
      if (lease !== undefined) return lease;
    }
  };
  const complete = async ({ lease_id }: Lease, index: number): Promise<SettlementResult | undefined> => {
    const settlements = [{ kind: 'complete', lease_id, output: 1 } as const];
    return (await by(index).do<SettlementResult[]>('settle', { settlements }))[0];
  };

  /** Both processes send heartbeats in time and turn their reapers, for several leases. */
  const live = async (leases: readonly Lease[], times: number): Promise<void> => {
    const until = performance.now() + LEASE_MS * times;
    while (performance.now() < until) {
      for (const [index, { lease_id }] of leases.entries()) {
        const { order } = await by(index).do<HeartbeatAnswer>('beat', { lease_id });
        expect(order).toBe('continue');
      }
      await Promise.all(actors.map((actor) => actor.do('reap', {})));
      await new Promise((resolve) => setTimeout(resolve, LEASE_MS / 10));
    }
  };

  // SPEC S6.2: a clock jump
  it.each([HOUR_MS, -HOUR_MS])(
    'a clock that jumps by %d ms in one process ends no lease of anybody',
    async (ms) => {
      const run = await start({ a: {}, b: {} });
      const leases = [await claim(0), await claim(1)];
      await live(leases, 1.5);
      await by(1).do('jump', { ms });
      await live(leases, 2.5);
      // And back again.
      await by(1).do('jump', { ms: -ms });
      await live(leases, 2);
      for (const [index, lease] of leases.entries())
        expect(await complete(lease, index)).toMatchObject({ ok: true });
      expect((await h.run(run)).status).toBe('SUCCESS');
      for (const task of await h.tasks(run))
        expect(task).toMatchObject({ attempt: 1, attempts_spent: 0, losses: 0 });
      expect(await brokenPromises(h.store, run)).toEqual([]);
    },
  );

  // SPEC S4.5, S6.2: SIGSTOP for two leases
  it('a worker that stands still for two leases loses its task once, and what it says afterwards changes nothing', async () => {
    const run = await start({ a: { retry: { initial: '1ms' } }, b: { needs: 'a' } });
    const lease = await claim(0);
    by(0).process.kill('SIGSTOP');
    const late = complete(lease, 0);
    await new Promise((resolve) => setTimeout(resolve, LEASE_MS * 2));
    const again = await reclaim();
    expect(again).toMatchObject({ task_id: 'a', attempt: 2 });
    expect(await complete(again, 1)).toMatchObject({ ok: true });
    by(0).process.kill('SIGCONT');
    expect(await late).toMatchObject({ ok: false, code: 'STALE_LEASE' });
    expect(await h.task(run, 'a')).toMatchObject({ status: 'SUCCESS', attempts_spent: 0, losses: 1 });
    expect(await h.events(run, 'task.completed')).toHaveLength(1);
    expect((await h.task(run, 'b')).status).toBe('QUEUED');
    expect(await brokenPromises(h.store, run)).toEqual([]);
    await by(1).do('cancel', { run });
  });

  // SPEC S6.2, I12
  it('a reaper that stood still for two leases ends no lease of a worker that was alive', async () => {
    const run = await start({ a: {} });
    const lease = await claim(1);
    await by(0).do('reap', {});
    by(0).process.kill('SIGSTOP');
    const reaped = by(0).do('reap', {});
    for (let beats = 0; beats < 8; beats++) {
      expect(await by(1).do<HeartbeatAnswer>('beat', lease)).toMatchObject({ order: 'continue' });
      await new Promise((resolve) => setTimeout(resolve, LEASE_MS / 4));
    }
    by(0).process.kill('SIGCONT');
    await reaped;
    await by(0).do('reap', {});
    expect(await complete(lease, 1)).toMatchObject({ ok: true });
    expect(await h.task(run, 'a')).toMatchObject({ status: 'SUCCESS', attempt: 1, losses: 0 });
  });
});
