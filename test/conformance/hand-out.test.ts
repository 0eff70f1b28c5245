/** Who gets what and when: order, room, windows, claims that repeat, paused runs (SPEC S4.3, S4.4, S4.11). */
import { expect, it } from 'vitest';
import type { Lease } from '../../src/worker/work-source.ts';
import { CRASHED, Harness, LEASE_MS } from '../support/harness.ts';
import { conformance, expectSound, refusal } from './suite.ts';

conformance('handing out', (open) => {
  // SPEC S4.4
  it('the higher priority of run plus task goes first, then the older task', async () => {
    const h = await open();
    await h.start({ a: {}, b: { priority: 2 } });
    await h.start({ c: {}, d: { priority: 1 } }, {}, { priority: 1 });
    expect((await h.claim(4)).map((lease) => lease.task_id)).toEqual(['b', 'd', 'c', 'a']);
  });

  // SPEC S4.4
  it('two workers never hold one task run', async () => {
    const h = await open();
    await h.start(Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`t${n}`, {}])));
    const other = await h.newSource({ worker: 'other' });
    const claims = await Promise.all([h.claim(15), h.claim(15, other), h.claim(15)]);
    const ids = claims.flat().map((lease) => lease.task_run_id);
    expect(ids).toHaveLength(20);
    expect(new Set(ids).size).toBe(20);
  });

  // TRANSITIONS 16
  it('a claim starts the task at once by default and counts an attempt', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    expect(lease).toMatchObject({
      attempt: 1,
      lease_ms: LEASE_MS,
      timeout_ms: 3_600_000,
      checkpoint: undefined,
    });
    expect(await h.task(run, 'a')).toMatchObject({
      status: 'RUNNING',
      attempt: 1,
      started_at: h.clock.now(),
      waiting_for: null,
      lease_expires_at: h.clock.now() + LEASE_MS,
      deadline_at: h.clock.now() + 3_600_000,
    });
  });

  // TRANSITIONS 16, 17
  it('a claim without start is LEASED until the worker starts', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const [row] = await h.claimRows();
    expect(await h.task(run, 'a')).toMatchObject({ status: 'LEASED', started_at: null });
    await h.beat(row ?? { lease_id: null });
    expect(await h.task(run, 'a')).toMatchObject({ status: 'RUNNING', started_at: h.clock.now() });
    expect((await h.eventsOf(run, 'a')).map(({ type }) => type)).toEqual([
      'task.queued',
      'task.claimed',
      'task.running',
    ]);
  });

  // SPEC S4.4
  it('a repeated claim_id gives the leases of the first claim that are still alive', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {}, c: {} });
    const first = await h.claimRows({ limit: 2, claim_id: 'once' });
    expect(first).toHaveLength(2);
    const again = await h.claimRows({ limit: 2, claim_id: 'once' });
    expect(again.map((row) => row.lease_id)).toEqual(first.map((row) => row.lease_id));
    await h.complete(first[0] ?? { lease_id: null });
    const left = await h.claimRows({ limit: 2, claim_id: 'once' });
    expect(left.map((row) => row.lease_id)).toEqual([first[1]?.lease_id]);
    await expectSound(h, run);
  });

  // SPEC S4.4
  it('the same claim_id twice in one commit is one claim', async () => {
    const h = await open();
    await h.start({ a: {}, b: {}, c: {}, d: {} });
    const claims = await Promise.all([1, 2].map(() => h.claimRows({ limit: 2, claim_id: 'once' })));
    const [first = [], second = []] = claims.map((rows) => rows.map((row) => row.lease_id));
    expect(first).toHaveLength(2);
    expect(second).toEqual(first);
  });

  // SPEC S1.2
  it('max_parallel is never exceeded, and room that appears is used in the same transaction', async () => {
    const h = await open();
    const run = await h.start(Object.fromEntries(Array.from({ length: 6 }, (_, n) => [`t${n}`, {}])), {
      max_parallel: 2,
    });
    expect(await h.run(run)).toMatchObject({ n_queued: 2, n_ready: 4, n_leased: 0 });
    const [first] = await h.claimAll(2);
    expect(await h.claim(5)).toEqual([]);
    await h.complete(first);
    expect(await h.run(run)).toMatchObject({ n_queued: 1, n_leased: 1, n_ready: 3 });
    await expectSound(h, run);
    expect((await h.finish(run)).n_success).toBe(5);
  });

  // SPEC S4.3, S4.4
  it('scarce room goes to the highest priority, not to whoever became ready first', async () => {
    const h = await open();
    const run = await h.start(
      { low: {}, child: { needs: 'low', priority: -1 }, high: { priority: 5 } },
      { max_parallel: 1 },
    );
    const order = [];
    for (let n = 0; n < 3; n++) {
      const lease = await h.claimOne();
      order.push(lease.task_id);
      await h.complete(lease);
    }
    expect(order).toEqual(['high', 'low', 'child']);
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  // SPEC S1.2: delayed tasks do not count
  it('a task that waits for its retry takes no room of max_parallel', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {} }, { max_parallel: 1 });
    await h.fail(await h.claimOne('a'), CRASHED);
    const b = await h.claimOne('b');
    await h.leap(10_000);
    expect(await h.task(run, 'a')).toMatchObject({ status: 'READY', waiting_for: 'capacity' });
    await expectSound(h, run);
    await h.complete(b);
    expect((await h.claimOne('a')).attempt).toBe(2);
  });

  // SPEC S4.3
  it('a wide run has at most a window of queued tasks, so others come in between', async () => {
    const h = await open();
    const wide = await h.start(Object.fromEntries(Array.from({ length: 1_500 }, (_, n) => [`t${n}`, {}])));
    expect(await h.run(wide)).toMatchObject({ n_queued: 1_000, n_ready: 500 });
    const other = await h.start({ urgent: {} }, {}, { priority: 1 });
    expect((await h.claim(1))[0]?.run_id).toBe(other);
    const leases = await h.claim(200);
    expect(leases).toHaveLength(200);
    expect(await h.run(wide)).toMatchObject({ n_queued: 1_000, n_ready: 300, n_leased: 200 });
    await expectSound(h, wide);
  });

  // SPEC S4.11, S3.3
  it('a paused run hands nothing out, and is WAITING once its leased work is done', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {}, c: { needs: 'a' } });
    const a = await h.claimOne('a');
    await h.engine.pauseRun(run, 'me');
    expect((await h.run(run)).status).toBe('RUNNING');
    expect(await h.claim(5)).toEqual([]);
    expect(await h.task(run, 'b')).toMatchObject({ status: 'READY', waiting_for: 'paused' });
    expect(await h.complete(a)).toMatchObject({ ok: true, status: 'SUCCESS' });
    expect(await h.run(run)).toMatchObject({ status: 'WAITING', paused: 1 });
    expect(await h.task(run, 'c')).toMatchObject({ status: 'READY', waiting_for: 'paused' });
    await expectSound(h, run);
  });

  // SPEC S4.11
  it('resume undoes a pause', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: 'a' } });
    await h.engine.pauseRun(run, 'me');
    expect(await h.claim(1)).toEqual([]);
    await h.engine.resumeRun(run, 'me');
    expect((await h.run(run)).status).toBe('RUNNING');
    expect((await h.finish(run)).status).toBe('SUCCESS');
    const types = (await h.events(run))
      .filter(({ task_id }) => task_id === null)
      .map(({ type, data }) => data.to ?? type);
    expect(types).toEqual([
      'run.created',
      'RUNNING',
      'run.paused',
      'WAITING',
      'run.resumed',
      'RUNNING',
      'SUCCESS',
    ]);
  });

  // SPEC S4.11
  it('retries and waits that come due in a paused run stay with it', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.fail(await h.claimOne('a'), CRASHED);
    await h.engine.pauseRun(run, 'me');
    await h.leap(10_000);
    expect(await h.task(run, 'a')).toMatchObject({ status: 'READY', waiting_for: 'paused' });
    await h.engine.resumeRun(run, 'me');
    expect((await h.claimOne('a')).attempt).toBe(2);
  });

  // SPEC S8.1 in spirit: keeps nobody else waiting
  it('a paused run in front of the queue hides nobody behind it', async () => {
    const h = await open();
    const paused = await h.start(Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`t${n}`, {}])));
    const other = await h.start({ a: {} });
    await h.engine.pauseRun(paused, 'me');
    expect((await h.claim(1))[0]?.run_id).toBe(other);
    await expectSound(h, paused);
  });

  // SPEC S4.11
  it('pausing a run that is over is refused, pausing twice changes nothing', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.engine.pauseRun(run, 'me');
    await h.engine.pauseRun(run, 'me');
    expect(await h.events(run, 'run.paused')).toHaveLength(1);
    await h.engine.resumeRun(run, 'me');
    await h.finish(run);
    expect(await refusal(h.engine.pauseRun(run, 'me'))).toBe('RUN_TERMINAL');
  });

  // SPEC S13.2: `relay run` works on its own run
  it('a worker of one run takes nothing else, also when others and other handlers stand before it', async () => {
    const h = await open();
    await h.start({ a: { priority: 9 } });
    const own = await h.start({ x: { uses: 'shell', with: { run: 'true' }, priority: 5 }, y: {} });
    const { key } = await h.run(own);
    const source = await h.newSource({ worker: 'own', handlers: ['transform'], run_key: key });
    expect((await h.claim(1, source)).map((lease) => lease.task_id)).toEqual(['y']);
    expect(await h.claim(5, source)).toEqual([]);
  });

  // SPEC S11.2: handlers
  it('a worker gets only tasks of handlers it serves', async () => {
    const h = await open();
    await h.start({ x: { uses: 'shell', with: { run: 'true' } }, y: {} });
    const source = await h.newSource({ worker: 'shells', handlers: ['shell'] });
    expect((await h.claim(5, source)).map((lease) => lease.task_id)).toEqual(['x']);
  });

  // TRANSITIONS 22, SPEC S2.4
  it('an input that cannot be rendered fails its attempt as template and spends nothing; the others are handed out', async () => {
    const h = await open();
    const run = await h.start(
      { a: {}, bad: { needs: 'a', with: { value: '{{ tasks.a.output.x.y }}' } }, good: { needs: 'a' } },
      { on_failure: 'continue' },
    );
    await h.complete(await h.claimOne('a'), {});
    expect((await h.claim(5)).map((lease) => lease.task_id)).toEqual(['good']);
    expect(await h.task(run, 'bad')).toMatchObject({
      status: 'FAILED',
      reason: 'terminal',
      attempts_spent: 0,
    });
    await expectSound(h, run);
  });

  // DESIGN: poison
  it('an input whose data is gone fails its own attempt and not the claim', async () => {
    const h = await open();
    const run = await h.start(
      { a: {}, bad: { needs: 'a', with: { value: '{{ tasks.a.output }}' } }, good: { needs: 'a' } },
      { on_failure: 'continue' },
    );
    await h.complete(await h.claimOne('a'), 'x'.repeat(300_000));
    const { key } = await h.task(run, 'a');
    const [artifact] = await h.store.read((tx) => tx.artifacts.ofTask(key));
    await h.blobs.remove(artifact?.blob_ref ?? '');
    await h.restart();
    expect((await h.claim(5)).map((lease) => lease.task_id)).toEqual(['good']);
    expect((await h.task(run, 'bad')).status).toBe('FAILED');
  });

  // SPEC S2.1
  it('an input sees inputs, outputs, statuses, run and task', async () => {
    const h = await open();
    const value =
      '{{ tasks.a.output.n }}/{{ tasks.a.status }}/{{ inputs.x }}/{{ task.id }}/{{ task.attempt }}/{{ run.workflow_name }}';
    await h.start({ a: {}, b: { with: { value } } }, { inputs: { x: { default: 7 } } });
    await h.complete(await h.claimOne('a'), { n: '007' });
    expect((await h.claimOne('b')).config.value).toBe('007/SUCCESS/7/b/1/test');
  });

  // SPEC S4.4, reference "do not probe an empty queue"
  it('a busy worker leaves a queue alone that was empty, but not for long', async () => {
    const h = await open();
    const other = new Harness(h.opened, { clock: h.clock });
    const step = async (lease: Lease | undefined) => {
      const settlements = [{ kind: 'complete', lease_id: lease?.lease_id ?? '', output: 1 } as const];
      const { leases } = await h.source.next({ limit: 5, settlements, signal: AbortSignal.abort() });
      return leases;
    };
    await h.start({ a: {}, b: { needs: 'a' }, c: { needs: 'b' } });
    const [a] = await h.claim(5);
    // As if by another process: nobody here hears of it.
    await other.start({ x: {} });
    const afterA = await step(a);
    expect(afterA.map(({ task_id }) => task_id)).toEqual(['b']);
    h.clock.advance(1_000);
    const afterB = await step(afterA[0]);
    expect(afterB.map(({ task_id }) => task_id)).toEqual(['c', 'x']);
    // What this process puts there is seen at once, and so is everything by a worker that has nothing to do.
    await h.start({ y: {} });
    expect((await step(afterB[0])).map(({ task_id }) => task_id)).toEqual(['y']);
    await other.start({ z: {} });
    expect((await h.claim(5)).map(({ task_id }) => task_id)).toEqual(['z']);
  });
});
