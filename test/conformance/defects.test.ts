/** The defects that DESIGN knows from systems like this, each by its name; ours must not have them. */
import { expect, it } from 'vitest';
import { CRASHED, HOPELESS, LEASE_MS } from '../support/harness.ts';
import { conformance, expectSound, refusal } from './suite.ts';

conformance('known defects', (open) => {
  it('released or paused tasks with one attempt left that can never be claimed again', async () => {
    const h = await open();
    const run = await h.start({ a: { retry: { max_attempts: 1 } } });
    await h.release(await h.claimOne('a'));
    await h.pause(await h.claimOne('a'));
    await h.engine.decide((await h.task(run, 'a')).id, { kind: 'approve', by: 'me' });
    expect(await h.complete(await h.claimOne('a'))).toMatchObject({ ok: true, status: 'SUCCESS' });
  });

  it('children of a failed task waiting for ever', async () => {
    const h = await open();
    for (const on_failure of ['fail_fast', 'continue']) {
      const run = await h.start({ a: {}, b: { needs: 'a' }, c: { needs: 'b' } }, { on_failure });
      await h.fail(await h.claimOne('a'), HOPELESS);
      expect(await h.statuses(run)).toMatchObject({
        b: 'SKIPPED upstream_failed',
        c: 'SKIPPED upstream_failed',
      });
      expect((await h.run(run)).status).toBe('FAILED');
    }
  });

  it('a done-marker set before the work, so a redelivery counts as success with no output', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.claimOne('a');
    await h.restart();
    await h.pass(65_000);
    expect((await h.task(run, 'a')).status).toBe('QUEUED');
    await h.complete(await h.claimOne('a'), 'the output');
    expect(await h.output(run, 'a')).toBe('the output');
    await expectSound(h, run);
  });

  it("heartbeats that apply a default lease instead of the worker's own", async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const [row] = await h.claimRows({ lease_ms: 10 * LEASE_MS, start: true });
    await h.beat(row ?? { lease_id: null });
    expect((await h.task(run, 'a')).lease_expires_at).toBe(h.clock.now() + 10 * LEASE_MS);
  });

  it('a lost lease that does not stop the handler', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    await h.pass(45_000);
    expect(await h.beat(lease)).toMatchObject({ order: 'lost', expires_in_ms: 0 });
    expect(await h.complete(lease)).toMatchObject({ ok: false, code: 'STALE_LEASE' });
    await expectSound(h, run);
  });

  it('listeners that see events of a rolled-back transaction', async () => {
    let isBroken = false;
    const h = await open({
      onStatement: (name) => {
        if (isBroken && name === 'commit') throw new TypeError('rolled back');
      },
    });
    const run = await h.start({ a: {} });
    const mark = h.engine.changed.mark();
    isBroken = true;
    await expect(h.engine.cancelRun(run, 'me')).rejects.toThrow('rolled back');
    isBroken = false;
    expect(h.engine.changed.mark()).toBe(mark);
    expect(await h.events(run, 'run.cancelled')).toEqual([]);
    expect((await h.run(run)).cancelled).toBe(0);
    await expectSound(h, run);
  });

  it('an event cursor over a sequence that skips rows committed out of order', async () => {
    const h = await open();
    const seen: string[] = [];
    let after: string | undefined;
    const follow = async () => {
      const rows = await h.store.read((tx) =>
        tx.events.page({ limit: 3, ...(after !== undefined && { after }) }),
      );
      seen.push(...rows.map(({ cursor }) => cursor));
      after = rows.at(-1)?.cursor ?? after;
    };
    const starts = Array.from({ length: 10 }, () => h.start({ a: {}, b: { needs: 'a' } }));
    for (const start of starts) await Promise.all([start, follow()]);
    for (const lease of await h.claim(10)) await Promise.all([h.complete(lease), follow()]);
    for (let n = 0; n < 50; n++) await follow();
    const all = await h.store.read((tx) => tx.events.page({ limit: 1_000 }));
    expect(seen).toEqual(all.map(({ cursor }) => cursor));
  });

  it('a worker dying mid-hand-off that strands its job', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    // The reply with the lease never reaches the worker.
    await h.claimRows({ claim_id: 'lost' });
    await h.pass(40_000);
    expect(await h.task(run, 'a')).toMatchObject({ status: 'QUEUED', losses: 0, attempts_spent: 0 });
    expect((await h.finish(run)).status).toBe('SUCCESS');
  });

  it('a zombie worker completing a job that was given to another', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const zombie = await h.claimOne('a');
    await h.pass(45_000);
    const heir = await h.claimOne('a');
    expect(await h.complete(zombie, 'from the grave')).toMatchObject({ ok: false, code: 'STALE_LEASE' });
    expect(await h.complete(heir, 'alive')).toMatchObject({ ok: true });
    expect(await h.output(run, 'a')).toBe('alive');
    await expectSound(h, run);
  });

  it('a clone that loses its checkpoint', async () => {
    const h = await open();
    await h.start({ a: {} });
    const lease = await h.claimOne('a');
    await h.beat(lease, { checkpoint: { step: 9 } });
    await h.release(lease);
    expect((await h.claimOne('a')).checkpoint).toEqual({ step: 9 });
    await h.restart();
    await h.pass(65_000);
    expect((await h.claimOne('a')).checkpoint).toEqual({ step: 9 });
  });

  it('a late sibling success dropped, so that a later retry hangs', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {}, c: { needs: ['a', 'b'] } }, { on_failure: 'continue' });
    const [a, b] = await h.claimAll(2);
    await h.fail(a, HOPELESS);
    expect((await h.task(run, 'c')).status).toBe('SKIPPED');
    await h.complete(b);
    await h.engine.retryRun(run, 'me');
    await h.complete(await h.claimOne('a'));
    expect((await h.task(run, 'c')).status).toBe('QUEUED');
    expect((await h.finish(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  it('a duplicate dependency that makes a counter never reach zero', async () => {
    const h = await open();
    const run = await h.startYaml(`
name: twice
tasks:
  a: { uses: transform, with: { value: 1 } }
  b: { uses: transform, needs: [a, a], with: { value: "{{ tasks.a.output }} {{ tasks.a.output }}" } }
`);
    expect((await h.finish(run)).status).toBe('SUCCESS');
  });

  it('number-like strings turned into numbers', async () => {
    const h = await open();
    const run = await h.start({
      a: { with: { value: '007' } },
      b: { with: { value: '{{ tasks.a.output }}' } },
    });
    const a = await h.claimOne('a');
    expect(a.config.value).toBe('007');
    await h.complete(a, a.config.value);
    expect((await h.claimOne('b')).config.value).toBe('007');
    expect(await h.output(run, 'a')).toBe('007');
  });

  it('forbidden-word filters that reject "profile"', async () => {
    const h = await open();
    const text = 'profile, constructor, __proto__, eval, import os, process.env, drop table';
    const run = await h.start({
      a: { with: { value: text } },
      b: { with: { value: '{{ tasks.a.output }}' } },
    });
    const a = await h.claimOne('a');
    expect(a.config.value).toBe(text);
    await h.complete(a, { profile: text, constructor: 1 });
    expect((await h.claimOne('b')).config.value).toEqual({ profile: text, constructor: 1 });
    expect((await h.run(run)).status).toBe('RUNNING');
  });

  it('concurrency slots that leak after a crash', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {}, c: {} }, { max_parallel: 2 });
    await h.claimAll(2);
    await h.restart();
    await h.pass(70_000);
    const run2 = await h.run(run);
    expect(run2.n_leased).toBe(0);
    await expectSound(h, run);
    for (let n = 0; n < 3; n++) {
      await h.pass(5_000);
      for (const lease of await h.claim(5)) await h.complete(lease);
    }
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  it('step cost that grows with the number of steps', async () => {
    let statements = 0;
    const h = await open({ onStatement: () => (statements += 1) });
    const chain = Object.fromEntries(
      Array.from({ length: 300 }, (_, n) => [`t${n}`, n === 0 ? {} : { needs: `t${n - 1}` }]),
    );
    await h.start(chain);
    const costs: number[] = [];
    let leases = await h.claim(1);
    while (leases.length > 0) {
      const before = statements;
      const settlements = leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }) as const);
      leases = (await h.source.next({ limit: 1, settlements, signal: AbortSignal.abort() })).leases;
      costs.push(statements - before);
    }
    expect(costs).toHaveLength(300);
    expect(costs[290]).toBe(costs[10]);
  });

  it('`database is locked`', async () => {
    const h = await open();
    const other = await open();
    const runs = await Promise.all([h.start({ a: {} }), other.start({ a: {} })]);
    expect(runs).toHaveLength(2);
    expect(await refusal(h.store.write(async () => 'fine'))).toBe('nothing was refused');
    // With real processes: test/scenarios/two-processes.test.ts.
  });

  it('a retry that spends what a release, a pause or a lost worker has used', async () => {
    const h = await open();
    const run = await h.start({ a: { retry: { max_attempts: 2, jitter: 0 } } });
    await h.release(await h.claimOne('a'));
    await h.claimOne('a');
    await h.pass(45_000);
    await h.fail(await h.claimOne('a'), CRASHED);
    expect(await h.task(run, 'a')).toMatchObject({
      status: 'QUEUED',
      attempts_spent: 1,
      losses: 1,
      attempt: 3,
    });
    await expectSound(h, run);
  });
});
