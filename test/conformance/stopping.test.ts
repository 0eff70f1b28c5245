/** How runs stop: fail_fast, continue, cancel, timeout; and what is large goes in chunks (SPEC S5.5, S5.8, S4.6, TRANSITIONS 34). */
import { expect, it } from 'vitest';
import { CRASHED, type Harness, HOPELESS } from '../support/harness.ts';
import { conformance, expectSound, refusal } from './suite.ts';

const many = (count: number, task: (n: number) => object): Record<string, object> =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`t${n}`, task(n)]));

conformance('stopping', (open) => {
  // SPEC S5.5
  it('fail_fast skips descendants, cancels the rest and revokes leases in the transaction of the failure', async () => {
    const h = await open();
    const run = await h.start({
      a: {},
      below: { needs: 'a' },
      busy: {},
      idle: {},
      asked: { gate: { message: '?' } },
    });
    await h.idle();
    const [a, busy] = await h.claimAll(2);
    await h.fail(a, HOPELESS);
    expect(await h.statuses(run)).toEqual({
      a: 'FAILED terminal',
      below: 'SKIPPED upstream_failed',
      busy: 'CANCELLED run_stopped',
      idle: 'CANCELLED run_stopped',
      asked: 'CANCELLED run_stopped',
    });
    expect((await h.run(run)).status).toBe('FAILED');
    expect(await h.beat(busy)).toMatchObject({ order: 'cancel' });
    await expectSound(h, run);
  });

  // SPEC S5.5
  it('fail_fast leaves `when: done` tasks, and the run is FAILED when they are through', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {}, end: { needs: ['a', 'b'], when: 'done' } });
    const [a] = await h.claimAll(2);
    await h.fail(a, HOPELESS);
    expect(await h.statuses(run)).toEqual({
      a: 'FAILED terminal',
      b: 'CANCELLED run_stopped',
      end: 'QUEUED',
    });
    expect((await h.run(run)).status).toBe('RUNNING');
    await h.complete(await h.claimOne('end'));
    expect((await h.run(run)).status).toBe('FAILED');
    await expectSound(h, run);
  });

  // SPEC S5.5
  it('continue skips only descendants; the rest finishes', async () => {
    const h = await open();
    const run = await h.start(
      { a: {}, below: { needs: 'a' }, b: {}, c: { needs: 'b' } },
      { on_failure: 'continue' },
    );
    const [a] = await h.claimAll(2);
    await h.fail(a, HOPELESS);
    await h.complete((await h.tasks(run)).find((task) => task.task_id === 'b') ?? { lease_id: null });
    expect((await h.finish(run)).status).toBe('FAILED');
    expect(await h.statuses(run)).toMatchObject({
      below: 'SKIPPED upstream_failed',
      b: 'SUCCESS',
      c: 'SUCCESS',
    });
  });

  // SPEC S5.5
  it('a success beside a failure in one batch is kept', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {}, c: { needs: 'b' } });
    const [a, b] = await h.claimAll(2);
    const results = await h.settle(
      { kind: 'fail', lease_id: a.lease_id, failure: HOPELESS },
      { kind: 'complete', lease_id: b.lease_id, output: 'kept' },
    );
    expect(results).toMatchObject([{ status: 'FAILED' }, { status: 'SUCCESS' }]);
    expect(await h.statuses(run)).toEqual({ a: 'FAILED terminal', b: 'SUCCESS', c: 'CANCELLED run_stopped' });
    expect(await h.output(run, 'b')).toBe('kept');
    await expectSound(h, run);
  });

  // SPEC S5.8, TRANSITIONS 34
  it('cancel ends everything unfinished at once, in every state', async () => {
    const h = await open();
    const run = await h.start(
      {
        done: {},
        busy: {},
        delayed: {},
        queued: {},
        held: {},
        child: { needs: 'busy' },
        asked: { gate: { message: '?' } },
        asking: {},
        later: { uses: 'wait', with: { for: '1h' } },
        end: { needs: 'busy', when: 'done' },
      },
      { max_parallel: 4 },
    );
    await h.idle();
    for (const task_id of ['done', 'busy', 'delayed', 'queued']) {
      const lease = await h.claimOne(task_id);
      if (task_id === 'done') await h.complete(lease);
      if (task_id === 'delayed') await h.fail(lease, CRASHED);
      if (task_id === 'queued') await h.release(lease);
    }
    await h.pause((await h.claim(9)).find(({ task_id }) => task_id === 'asking') ?? { lease_id: '' });
    await h.engine.cancelRun(run, 'me');
    const { done, ...rest } = await h.statuses(run);
    expect(done).toBe('SUCCESS');
    expect(new Set(Object.values(rest))).toEqual(new Set(['CANCELLED cancelled']));
    expect((await h.run(run)).status).toBe('CANCELLED');
    await expectSound(h, run);
  });

  // SPEC S5.8, TRANSITIONS 39
  it('a late result after a cancel is refused, and its acknowledgement is one event', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    await h.engine.cancelRun(run, 'me');
    expect(await h.beat(lease)).toMatchObject({ order: 'cancel' });
    for (let n = 0; n < 3; n++)
      expect(await h.complete(lease)).toMatchObject({ ok: false, code: 'STALE_LEASE' });
    expect(await h.release(lease)).toMatchObject({ ok: false, code: 'STALE_LEASE' });
    expect(await h.events(run, 'task.cancel_acknowledged')).toHaveLength(1);
    expect((await h.task(run, 'a')).status).toBe('CANCELLED');
    await expectSound(h, run);
  });

  // SPEC S5.8
  it('completion and cancel are ordered: whoever is first wins', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    expect(await h.complete(lease)).toMatchObject({ ok: true });
    expect(await refusal(h.engine.cancelRun(run, 'me'))).toBe('RUN_TERMINAL');
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  // SPEC S5.8
  it('cancelling twice changes nothing', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.engine.cancelRun(run, 'me');
    const events = (await h.events(run)).length;
    await h.engine.cancelRun(run, 'me');
    expect(await h.events(run)).toHaveLength(events);
  });

  // SPEC S1.2
  it('a run that takes too long is FAILED with the reason timeout, and its `when: done` tasks still run', async () => {
    const h = await open();
    const run = await h.start({ a: {}, end: { needs: 'a', when: 'done' } }, { timeout: '1m' });
    const lease = await h.claimOne('a');
    await h.leap(59_999);
    expect((await h.task(run, 'a')).status).toBe('RUNNING');
    await h.leap(1);
    expect(await h.statuses(run)).toEqual({ a: 'CANCELLED timeout', end: 'QUEUED' });
    expect(await h.complete(lease)).toMatchObject({ ok: false });
    await h.complete(await h.claimOne('end'));
    expect(await h.run(run)).toMatchObject({ status: 'FAILED', stop_reason: 'timeout' });
    await expectSound(h, run);
  });

  // SPEC S1.2
  it('time spent waiting for people or paused does not count against the timeout', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: 'a', gate: { message: '?' } } }, { timeout: '1m' });
    await h.leap(20_000);
    await h.complete(await h.claimOne('a'));
    await h.idle();
    expect((await h.run(run)).status).toBe('WAITING');
    await h.leap(86_400_000);
    await h.engine.decide((await h.task(run, 'b')).id, { kind: 'approve', by: 'me' });
    await h.leap(20_000);
    await h.engine.pauseRun(run, 'me');
    await h.leap(86_400_000);
    await h.engine.resumeRun(run, 'me');
    await h.leap(19_999);
    expect((await h.run(run)).status).toBe('RUNNING');
    await h.leap(1);
    expect(await h.run(run)).toMatchObject({ status: 'FAILED', stop_reason: 'timeout' });
    await expectSound(h, run);
  });
});

conformance('large fans', (open) => {
  // SPEC S4.6
  it('more than 500 children are unlocked in chunks behind a durable cursor', async () => {
    const h = await open();
    const run = await h.start({ root: {}, ...many(1_200, () => ({ needs: 'root' })) });
    await h.complete(await h.claimOne('root'));
    expect(await h.run(run)).toMatchObject({ n_cursors: 1, n_pending: 700, status: 'RUNNING' });
    await expectSound(h, run);
    await h.engine.runOnce();
    expect(await h.run(run)).toMatchObject({ n_cursors: 1, n_pending: 200 });
    await h.idle();
    // The rest would only wait as READY: it stays behind the cursor until most of the window has been handed out.
    expect(await h.run(run)).toMatchObject({ n_cursors: 1, n_pending: 200, n_queued: 1_000, n_ready: 0 });
    await expectSound(h, run);
    await h.claim(500);
    await h.idle();
    expect(await h.run(run)).toMatchObject({ n_cursors: 0, n_pending: 0, n_queued: 700, n_ready: 0 });
    await expectSound(h, run);
  });

  // SPEC S4.3, S4.4
  it('where priorities differ, the highest goes first however far behind it stands', async () => {
    const h = await open();
    const run = await h.start({
      root: {},
      ...many(1_300, (n) => ({ needs: 'root', ...(n === 1_299 ? { priority: 5 } : {}) })),
    });
    await h.complete(await h.claimOne('root'));
    await h.idle();
    expect(await h.run(run)).toMatchObject({ n_cursors: 0, n_pending: 0, n_queued: 1_000, n_ready: 300 });
    await h.claim(1);
    const [next] = await h.claim(1);
    expect(next?.task_id).toBe('t1299');
    await expectSound(h, run);
  });

  // SPEC S4.6
  it('children that wait for another parent are told of the first one without a pause', async () => {
    const h = await open();
    const run = await h.start({ root: {}, other: {}, ...many(1_200, () => ({ needs: ['root', 'other'] })) });
    const [root] = await h.claimAll(2);
    await h.complete(root);
    const cursors = await h.store.read((tx) => tx.cursors.first(2));
    expect(cursors).toMatchObject([{ kind: 'unlock', data: null }]);
    await h.idle();
    expect(await h.run(run)).toMatchObject({ n_cursors: 0, n_pending: 1_200 });
    await expectSound(h, run);
  });

  // SPEC S4.3, I4
  it('a claim that finds the queue empty hands out children in the transaction that unlocks them', async () => {
    const h = await open();
    const run = await h.start({ root: {}, ...many(1_200, () => ({ needs: 'root' })) });
    await h.complete(await h.claimOne('root'));
    const first = await h.claim(500);
    expect(await h.run(run)).toMatchObject({ n_cursors: 1, n_pending: 700, n_queued: 0, n_leased: 500 });
    const settlements = first
      .slice(0, 2)
      .map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }) as const);
    const signal = AbortSignal.abort();
    expect((await h.source.next({ limit: 300, settlements, signal })).leases).toHaveLength(300);
    const { n_queued, n_ready, n_pending } = await h.run(run);
    expect({ n_queued, n_ready, n_pending }).toEqual({ n_queued: 0, n_ready: 0, n_pending: 400 });
    const claimed = await h.events(run, 'task.claimed');
    expect(claimed.at(-1)?.data).toMatchObject({ from: 'PENDING', via: ['READY', 'QUEUED'], to: 'RUNNING' });
    await expectSound(h, run);
  });

  // SPEC S5.5
  it('a failure while children wait behind a cursor leaves none of them waiting', async () => {
    const h = await open();
    const run = await h.start({ root: {}, ...many(1_200, () => ({ needs: 'root' })) });
    await h.complete(await h.claimOne('root'));
    await h.idle();
    await h.fail(await h.claimOne('t0'), HOPELESS);
    await expectSound(h, run);
    await h.idle();
    expect(await h.run(run)).toMatchObject({
      status: 'FAILED',
      n_cursors: 0,
      n_failed: 1,
      n_cancelled: 1_199,
    });
  });

  // SPEC S4.6, I15
  it('a crash between two chunks loses no child and unlocks none twice', async () => {
    const h = await open();
    const run = await h.start({ root: {}, other: {}, ...many(1_200, () => ({ needs: ['root', 'other'] })) });
    const [root, other] = await h.claimAll(2);
    await h.complete(root);
    await h.engine.runOnce();
    await h.restart();
    await h.complete(other);
    await expectSound(h, run);
    await h.restart();
    await h.idle();
    await expectSound(h, run);
    expect(await h.finish(run)).toMatchObject({ status: 'SUCCESS', n_success: 1_202 });
  });

  // SPEC S5.8
  it('cancel of more than 500 tasks sets the truth at once and sweeps the rest in chunks', async () => {
    const h = await open();
    const run = await h.start(many(1_300, (n) => (n % 2 === 0 ? {} : { needs: `t${n - 1}` })));
    const leases = await h.claim(700);
    const last = leases.at(-1) ?? { lease_id: '' };
    await h.engine.cancelRun(run, 'me');
    expect(await h.run(run)).toMatchObject({ cancelled: 1, n_cursors: 1, status: 'RUNNING' });
    expect(await h.claim(5)).toEqual([]);
    expect(await h.beat(last)).toMatchObject({ order: 'cancel' });
    expect(await h.complete(last)).toMatchObject({ ok: false, code: 'STALE_LEASE' });
    await expectSound(h, run);
    await h.restart();
    await h.idle();
    expect(await h.run(run)).toMatchObject({ status: 'CANCELLED', n_cancelled: 1_300, n_cursors: 0 });
    await expectSound(h, run);
  });

  // SPEC S4.7
  it('an operator who repeats an action under its key does not undo what came after', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.engine.pauseRun(run, 'me', 'k');
    await h.engine.resumeRun(run, 'me', 'k');
    await h.engine.pauseRun(run, 'me', 'k');
    expect((await h.run(run)).paused).toBe(0);
    await h.engine.pauseRun(run, 'me', 'another');
    expect((await h.run(run)).paused).toBe(1);
    await h.engine.resumeRun(run, 'me', 'k');
    expect((await h.run(run)).paused).toBe(1);
    await h.engine.cancelRun(run, 'me', 'k');
    await h.engine.retryRun(run, 'me');
    await h.engine.cancelRun(run, 'me', 'k');
    expect((await h.run(run)).status).not.toBe('CANCELLED');
    const other = await h.start({ a: {} });
    expect(await refusal(h.engine.cancelRun(other, 'me', 'k'))).toBe('IDEMPOTENCY_CONFLICT');
    const task = (await h.task(other, 'a')).id;
    for (let times = 0; times < 2; times++) await h.engine.cancelTask(task, { caller: 'me', key: 't' });
    expect(await h.events(other, 'task.cancelled')).toHaveLength(1);
  });

  // SPEC S5.5
  it('a failure above more than 500 children skips them all, and cancels what is not below it', async () => {
    const h = await open();
    const run = await h.start({ root: {}, ...many(1_100, () => ({ needs: 'root' })), beside: {} });
    const [root] = await h.claimAll(2);
    // The sweep of the stop finds other rows than the unlock, so that one cannot do the other's work.
    for (const task_id of ['t0', 't1']) await h.engine.cancelTask((await h.task(run, task_id)).id);
    await h.fail(root, HOPELESS);
    await expectSound(h, run);
    await h.idle();
    const { root: failed, beside, t0, t1, ...below } = await h.statuses(run);
    expect([failed, beside]).toEqual(['FAILED terminal', 'CANCELLED run_stopped']);
    expect([t0, t1]).toEqual(['CANCELLED cancelled', 'CANCELLED cancelled']);
    expect(new Set(Object.values(below))).toEqual(new Set(['SKIPPED upstream_failed']));
    expect((await h.run(run)).status).toBe('FAILED');
  });

  // SPEC S4.10, I15
  it('a task enqueued below a parent that still tells its children is unlocked once', async () => {
    const h = await open();
    const run = await h.start({ root: {}, slow: {}, ...many(1_200, () => ({ needs: 'root' })) });
    const [root] = await h.claimAll(2);
    await h.complete(root);
    const task = { needs: ['root', 'slow'], uses: 'transform', with: { value: 1 } };
    await h.engine.enqueue(run, [{ id: 'late', task }], { caller: 'me' });
    await expectSound(h, run);
    await h.claim(600);
    await h.idle();
    expect(await h.task(run, 'late')).toMatchObject({ status: 'PENDING', deps_remaining: 1 });
    await expectSound(h, run);
  });

  // I15
  it('a replay while a failure is still being told is refused', async () => {
    const h = await open();
    const run = await h.start(
      { root: {}, ...many(1_200, () => ({ needs: 'root' })), beside: {} },
      { on_failure: 'continue' },
    );
    const [root] = await h.claimAll(2);
    await h.fail(root, HOPELESS);
    const replay = async (harness: Harness) =>
      harness.engine.replayTask((await harness.task(run, 'root')).id, { resetAttempts: true, by: 'me' });
    expect(await refusal(replay(h))).toBe('RUN_ACTIVE');
    await h.idle();
    expect(await replay(h)).toBe(1_201);
    await expectSound(h, run);
  });
});
