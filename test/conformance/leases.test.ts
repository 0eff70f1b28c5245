/** Leases, heartbeats, the reaper, dead processes (SPEC S6, TRANSITIONS 17, 18, 25–27). */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { processIdentity } from '../../src/engine/presence.ts';
import { Harness, LEASE_MS } from '../support/harness.ts';
import { conformance, expectSound } from './suite.ts';

conformance('leases', (open) => {
  // SPEC S6.1
  it('a heartbeat extends by the length of the lease itself, not by a default', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const [row] = await h.claimRows({ lease_ms: 7_000, start: true });
    h.clock.advance(3_000);
    expect(await h.beat(row ?? { lease_id: null })).toMatchObject({
      order: 'continue',
      expires_in_ms: 7_000,
    });
    expect((await h.task(run, 'a')).lease_expires_at).toBe(h.clock.now() + 7_000);
  });

  // SPEC S6.1
  it('a heartbeat never extends past the timeout of the attempt and its grace', async () => {
    const h = await open();
    const run = await h.start({ a: { timeout: '40s' } });
    const lease = await h.claimOne('a');
    const end = h.clock.now() + 40_000 + 30_000;
    h.clock.advance(50_000);
    expect(await h.beat(lease)).toMatchObject({ order: 'continue', expires_in_ms: 20_000 });
    expect((await h.task(run, 'a')).lease_expires_at).toBe(end);
    h.clock.advance(30_000);
    expect(await h.beat(lease)).toMatchObject({ expires_in_ms: 0 });
  });

  // SPEC S6.1, TRANSITIONS 26
  it('a hung handler behind a healthy heartbeat ends', async () => {
    const h = await open();
    const run = await h.start({ a: { timeout: '1m' } });
    const lease = await h.claimOne('a');
    for (let n = 0; n < 20; n++) {
      await h.pass(5_000);
      if ((await h.task(run, 'a')).status === 'RUNNING') await h.beat(lease);
    }
    expect(await h.task(run, 'a')).toMatchObject({ status: 'QUEUED', losses: 1 });
    expect((await h.events(run, 'task.lease_expired'))[0]?.data).toMatchObject({ reason: 'deadline' });
  });

  // SPEC S6.1
  it('a heartbeat answers for every lease: continue, cancel, lost', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {}, c: {} });
    const [a, b, c] = await h.claimAll(3);
    await h.engine.cancelTask((await h.task(run, 'b')).id);
    await h.release(c);
    const answers = await h.source.extend([
      ...[a, b, c].map(({ lease_id }) => ({ lease_id })),
      { lease_id: 'nonsense' },
    ]);
    expect(answers.map(({ order }) => order)).toEqual(['continue', 'cancel', 'lost', 'lost']);
  });

  // SPEC S6.1, S11.6
  it('progress, message and checkpoint are kept, and the next attempt gets the checkpoint', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    await h.beat(lease, { progress: 0.42, message: 'half way', checkpoint: { page: 3 } });
    expect(await h.task(run, 'a')).toMatchObject({ progress: 0.42, message: 'half way' });
    await h.fail(lease);
    await h.leap(2_000);
    const next = await h.claimOne('a');
    expect(next.checkpoint).toEqual({ page: 3 });
    expect(await h.task(run, 'a')).toMatchObject({ progress: null, message: null });
    expect(await h.events(run, 'task.checkpointed')).toHaveLength(1);
    await expectSound(h, run);
  });

  // SPEC S12.1: sampled
  it('heartbeats are events only when another tenth is done', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    for (let n = 1; n <= 30; n++) await h.beat(lease, { progress: n / 100 });
    for (let n = 0; n < 10; n++) await h.beat(lease);
    expect(await h.events(run, 'task.heartbeat')).toHaveLength(3);
    await expectSound(h, run);
  });

  // TRANSITIONS 26
  it('a lease that ends without a word is a loss: queued again with backoff, no attempt spent', async () => {
    const h = await open();
    const run = await h.start({ a: { retry: { jitter: 0 } } });
    await h.claimOne('a');
    await h.pass(35_000);
    const task = await h.task(run, 'a');
    expect(task).toMatchObject({ status: 'QUEUED', losses: 1, attempts_spent: 0 });
    expect(JSON.parse(task.error ?? '')).toMatchObject({ class: 'worker_lost' });
    expect((await h.attempts(task)).map(({ outcome }) => outcome)).toEqual(['expired']);
    await h.pass(5_000);
    expect((await h.claimOne('a')).attempt).toBe(2);
    await expectSound(h, run);
  });

  // TRANSITIONS 27
  it('a task whose losses are used up is FAILED as worker_lost', async () => {
    const h = await open();
    const run = await h.start({ a: { retry: { max_losses: 2, jitter: 0 } } });
    for (let n = 0; n < 2; n++) {
      await h.claimOne('a');
      await h.pass(45_000);
    }
    const task = await h.task(run, 'a');
    expect(task).toMatchObject({ status: 'FAILED', reason: 'exhausted', losses: 2, attempts_spent: 0 });
    expect((await h.run(run)).status).toBe('FAILED');
    await expectSound(h, run);
  });

  // TRANSITIONS 25
  it('a lease that was never started costs nothing, five times in a row', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    for (let n = 1; n <= 5; n++) {
      await h.claimRows();
      await h.pass(35_000);
      expect(await h.task(run, 'a')).toMatchObject({
        status: 'QUEUED',
        in_queue: 1,
        losses: 0,
        unstarted: n,
      });
    }
    await h.claimRows();
    await h.pass(35_000);
    expect(await h.task(run, 'a')).toMatchObject({ status: 'QUEUED', losses: 1 });
    await expectSound(h, run);
  });

  // TRANSITIONS 25: in a row
  it('a start in between begins the count of unstarted leases again', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.claimRows();
    await h.pass(35_000);
    const [row] = await h.claimRows();
    await h.beat(row ?? { lease_id: null });
    expect((await h.task(run, 'a')).unstarted).toBe(0);
  });

  // SPEC S6.2
  it('after a start the reaper gives heartbeats one lease length to arrive', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    h.clock.advance(120_000);
    await h.restart();
    await h.pass(25_000);
    expect((await h.task(run, 'a')).status).toBe('RUNNING');
    expect(await h.beat(lease)).toMatchObject({ order: 'continue' });
    await h.pass(20_000);
    expect((await h.task(run, 'a')).status).toBe('RUNNING');
    await h.pass(15_000);
    expect((await h.task(run, 'a')).status).toBe('QUEUED');
  });

  // SPEC S6.2
  it('a clock that was set, or a machine that slept, expires nobody at once', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.pass(40_000);
    const lease = await h.claimOne('a');
    h.clock.jump(3_600_000);
    await h.idle();
    expect((await h.task(run, 'a')).status).toBe('RUNNING');
    await h.beat(lease);
    await h.leap(3_600_000);
    expect((await h.task(run, 'a')).status).toBe('RUNNING');
    await h.pass(20_000);
    expect((await h.task(run, 'a')).status).toBe('RUNNING');
    await h.pass(15_000);
    expect((await h.task(run, 'a')).status).toBe('QUEUED');
  });

  // SPEC S6.2
  it('two reapers at once are harmless', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const other = new Harness(h.opened, { clock: h.clock });
    for (let n = 0; n < 6; n++) {
      h.clock.advance(5_000);
      await Promise.all([h.idle(), other.idle()]);
    }
    await h.claimOne('a');
    for (let n = 0; n < 7; n++) {
      h.clock.advance(5_000);
      await Promise.all([h.engine.runOnce(), other.engine.runOnce()]);
    }
    expect(await h.task(run, 'a')).toMatchObject({ status: 'QUEUED', losses: 1 });
    await expectSound(h, run);
  });

  // SPEC S6.2
  it('leases of a process proven dead on this host are freed at once, those of others are not', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {}, c: {} });
    const dead = spawnSync('true').pid;
    const here = processIdentity();
    const workers = {
      gone: { ...here, pid: dead },
      alive: here,
      far: { ...here, host: 'elsewhere/x', pid: dead },
    };
    for (const [id, identity] of Object.entries(workers)) {
      const row = {
        id,
        boot_id: id,
        ...identity,
        status: 'ACTIVE',
        info: '{}',
        started_at: 0,
        seen_at: 0,
      } as const;
      await h.store.write((tx) => tx.workers.save(row));
      await h.claimRows({ worker: id, start: true });
    }
    await h.engine.start();
    await h.engine.stop();
    expect(await h.statuses(run)).toEqual({ a: 'QUEUED silence', b: 'RUNNING', c: 'RUNNING' });
    expect((await h.task(run, 'a')).losses).toBe(1);
    await expectSound(h, run);
  });

  // SPEC S6.1: bounded
  it('a lease is never longer than the attempt and its grace', async () => {
    const h = await open();
    const run = await h.start({ a: { timeout: '1s' } });
    await h.claimRows({ lease_ms: 10 * LEASE_MS });
    expect((await h.task(run, 'a')).lease_expires_at).toBe(h.clock.now() + 31_000);
  });
});
