/** How attempts end: results, failures, releases, repeats, strangers (SPEC S4.5, S4.6, S5.2–S5.4, TRANSITIONS 19–24, 39). */
import { expect, it } from 'vitest';
import type { Settlement } from '../../src/worker/work-source.ts';
import { CRASHED, HOPELESS } from '../support/harness.ts';
import { conformance, expectSound } from './suite.ts';

conformance('settling', (open) => {
  // TRANSITIONS 19, SPEC S4.6
  it('a completion stores the output, unlocks the children and ends the run in one transaction each', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: 'a' } });
    expect(await h.complete(await h.claimOne('a'), { n: 1 })).toMatchObject({ ok: true, status: 'SUCCESS' });
    expect(await h.statuses(run)).toEqual({ a: 'SUCCESS', b: 'QUEUED' });
    await h.complete(await h.claimOne('b'));
    expect(await h.run(run)).toMatchObject({ status: 'SUCCESS', finished_at: h.clock.now() });
    expect(await h.output(run, 'a')).toEqual({ n: 1 });
    await expectSound(h, run);
  });

  // DESIGN hot path 1
  it('one step settles and claims what became ready by it', async () => {
    const h = await open();
    await h.start({ a: {}, b: { needs: 'a' } });
    const { lease_id } = await h.claimOne('a');
    const step = await h.source.next({
      limit: 1,
      settlements: [{ kind: 'complete', lease_id, output: 5 }],
      signal: AbortSignal.abort(),
    });
    expect(step.results).toMatchObject([{ ok: true }]);
    expect(step.leases.map((lease) => lease.task_id)).toEqual(['b']);
  });

  // SPEC S4.6, I15
  it('two parents that finish in one instant unlock their child once', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {}, c: { needs: ['a', 'b'] } });
    const [a, b] = await h.claimAll(2);
    await Promise.all([h.complete(a), h.complete(b)]);
    expect(await h.task(run, 'c')).toMatchObject({
      status: 'QUEUED',
      deps_remaining: 0,
      deps_ok: 2,
      version: 1,
    });
    await expectSound(h, run);
  });

  // SPEC S4.6, TRANSITIONS 39
  it('a repeated completion gives the first answer and changes nothing', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    const first = await h.complete(lease, { n: 1 });
    const events = (await h.events(run)).length;
    expect(await h.complete(lease, { n: 1 })).toEqual(first);
    expect(await h.events(run)).toHaveLength(events);
  });

  // SPEC S4.6
  it('a repeated fail, release and pause give their first answers', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {}, c: {} });
    const [a, b, c] = await h.claimAll(3);
    const failed = await h.fail(a);
    const released = await h.release(b, 1_000);
    const paused = await h.pause(c);
    expect(failed).toMatchObject({ ok: true, status: 'QUEUED' });
    expect(released).toMatchObject({ ok: true, status: 'QUEUED' });
    expect(paused).toMatchObject({ ok: true, status: 'WAITING_INPUT' });
    h.clock.advance(500);
    expect([await h.fail(a), await h.release(b, 1_000), await h.pause(c)]).toEqual([
      failed,
      released,
      paused,
    ]);
    expect(await h.task(run, 'a')).toMatchObject({ attempts_spent: 1 });
    await expectSound(h, run);
  });

  // SPEC S4.6
  it('another content under a settled lease is IDEMPOTENCY_CONFLICT', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    await h.complete(lease, 1);
    expect(await h.complete(lease, 2)).toMatchObject({ ok: false, code: 'IDEMPOTENCY_CONFLICT' });
    expect(await h.fail(lease)).toMatchObject({ ok: false, code: 'IDEMPOTENCY_CONFLICT' });
    expect(await h.output(run, 'a')).toBe(1);
  });

  // SPEC S4.6
  it('a completion twice in one batch is recorded once and answered twice', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: 'a' } });
    const { lease_id } = await h.claimOne('a');
    const said = { kind: 'complete', lease_id, output: 1, usage: { tokens_in: 5 } } as const;
    const [one, two] = await h.settle(said, said);
    expect(one).toMatchObject({ ok: true });
    expect(two).toEqual(one);
    expect(JSON.parse((await h.run(run)).usage ?? '')).toMatchObject({ tokens_in: 5 });
    await expectSound(h, run);
  });

  // SPEC S4.5, TRANSITIONS 39
  it('a lease that never was, or belongs to another attempt, changes nothing', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const old = await h.claimOne('a');
    await h.release(old);
    const current = await h.claimOne('a');
    const before = await h.task(run, 'a');
    const forged = current.lease_id.replace(/[0-9a-f]{4}$/, 'dead');
    for (const lease_id of [forged, 'nonsense', 'zzz.1.00000000-0000-0000-0000-000000000000', ''])
      expect(await h.complete({ lease_id })).toMatchObject({ ok: false, code: 'STALE_LEASE' });
    expect(await h.complete(old)).toMatchObject({ ok: false });
    expect(await h.task(run, 'a')).toEqual(before);
  });

  // SPEC S4.5
  it('usage of a stale settlement is added once to the cost', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    await h.pass(65_000);
    const usage = { tokens_in: 7, cost_usd: 0.5 };
    expect(await h.complete(lease, 1, usage)).toMatchObject({ ok: false, code: 'STALE_LEASE' });
    expect(await h.complete(lease, 1, usage)).toMatchObject({ ok: false, code: 'STALE_LEASE' });
    expect(JSON.parse((await h.run(run)).usage ?? '')).toMatchObject({ tokens_in: 7, cost_usd: 0.5 });
    await expectSound(h, run);
  });

  // SPEC S4.5
  it('a stale settlement twice in one batch adds its usage once', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const { lease_id } = await h.claimOne('a');
    await h.engine.cancelRun(run, 'me');
    const said: Settlement = { kind: 'complete', lease_id, output: 1, usage: { tokens_in: 7 } };
    await h.settle(said, said);
    expect(JSON.parse((await h.run(run)).usage ?? '')).toMatchObject({ tokens_in: 7 });
    expect(await h.events(run, 'task.cancel_acknowledged')).toHaveLength(1);
    await expectSound(h, run);
  });

  // SPEC S4.5
  it('a write past the expiry counts as long as the reaper has not been there', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    h.clock.advance(600_000);
    expect(await h.complete(lease)).toMatchObject({ ok: true });
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  // SPEC S4.6
  it('one bad settlement in a batch never fails the others', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {}, c: {} }, { on_failure: 'continue' });
    const [a, b, c] = await h.claimAll(3);
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const results = await h.settle(
      { kind: 'complete', lease_id: a.lease_id, output: 1 },
      { kind: 'complete', lease_id: b.lease_id, output: circle },
      { kind: 'complete', lease_id: 'nonsense', output: 1 },
      { kind: 'complete', lease_id: c.lease_id, output: 3 },
    );
    expect(results.map((result) => (result.ok ? result.status : result.code))).toEqual([
      'SUCCESS',
      'QUEUED',
      'STALE_LEASE',
      'SUCCESS',
    ]);
    expect(JSON.parse((await h.task(run, 'b')).error ?? '')).toMatchObject({
      class: 'output',
      code: 'OUTPUT_NOT_JSON',
    });
    await expectSound(h, run);
  });

  // DESIGN hot path 6
  it('a batch that the store refuses is taken apart until the offender is alone', async () => {
    let isPoisoned = false;
    let settled = 0;
    const h = await open({
      onStatement: (name) => {
        // A store that chokes on the whole batch and on the second half of it.
        if (isPoisoned && name === 'artifacts.insert' && ++settled !== 2) throw new TypeError('poison');
      },
    });
    const run = await h.start({ a: {}, b: {}, c: {} });
    const [a, b] = await h.claimAll(2);
    isPoisoned = true;
    const step = await h.source.next({
      limit: 1,
      settlements: [a, b].map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }) as const),
      signal: AbortSignal.abort(),
    });
    isPoisoned = false;
    expect(step.results.map((result) => (result.ok ? result.status : result.code))).toEqual([
      'SUCCESS',
      'INTERNAL',
    ]);
    expect(step.leases.map((lease) => lease.task_id)).toEqual(['c']);
    expect(await h.complete(b)).toMatchObject({ ok: true });
    await expectSound(h, run);
  });

  // DESIGN hot path 6
  it('a caller that fails for a reason of its own does not stop the claims of its commit', async () => {
    const h = await open();
    await h.start({ a: {} });
    const broken = h.engine.context.committer.commit(async () => {
      throw new TypeError('a bug');
    });
    const [failed, claimed] = await Promise.allSettled([broken, h.claim(1)]);
    expect(failed.status).toBe('rejected');
    expect(claimed).toMatchObject({ status: 'fulfilled', value: [{ task_id: 'a' }] });
  });

  // TRANSITIONS 20, SPEC S5.3
  it('a retryable failure is tried again after min(initial × factor^(n−1), max), kept as not_before', async () => {
    const h = await open();
    const retry = { max_attempts: 4, initial: '2s', factor: 3, max: '10s', jitter: 0 };
    const run = await h.start({ a: { retry } });
    for (const delay of [2_000, 6_000, 10_000]) {
      const result = await h.fail(await h.claimOne('a'));
      const not_before = h.clock.now() + delay;
      expect(result).toMatchObject({ status: 'QUEUED', not_before: new Date(not_before).toISOString() });
      expect(await h.task(run, 'a')).toMatchObject({
        status: 'QUEUED',
        not_before,
        waiting_for: 'time',
        in_queue: 0,
      });
      await h.leap(delay - 1);
      expect(await h.claim(1)).toEqual([]);
      await h.leap(1);
    }
    expect(await h.fail(await h.claimOne('a'))).toMatchObject({ status: 'FAILED' });
    expect(await h.task(run, 'a')).toMatchObject({ reason: 'exhausted', attempts_spent: 4, attempt: 4 });
    await expectSound(h, run);
  });

  // SPEC S5.3
  it('not_before is null on fresh tasks and is cleared by the claim', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    expect((await h.task(run, 'a')).not_before).toBeNull();
    await h.fail(await h.claimOne('a'));
    expect((await h.task(run, 'a')).not_before).not.toBeNull();
    await h.leap(2_000);
    await h.claimOne('a');
    expect((await h.task(run, 'a')).not_before).toBeNull();
  });

  // SPEC S5.3
  it('Retry-After wins when it is longer, and chance only shortens the own delay', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {} });
    const [a, b] = await h.claimAll(2);
    const busy = { class: 'http', code: 'HTTP_STATUS', status: 429, message: 'slow down' } as const;
    await h.fail(a, { ...busy, retryAfterMs: 90_000 });
    await h.fail(b, { ...busy, retryAfterMs: 1 });
    expect((await h.task(run, 'a')).not_before).toBe(h.clock.now() + 90_000);
    const delay = ((await h.task(run, 'b')).not_before ?? 0) - h.clock.now();
    expect(delay).toBeGreaterThanOrEqual(500);
    expect(delay).toBeLessThanOrEqual(1_000);
  });

  // SPEC S5.2
  it('a Retry-After beyond after_max fails at once', async () => {
    const h = await open();
    const run = await h.start({ a: { retry: { after_max: '1m' } } });
    await h.fail(await h.claimOne('a'), {
      class: 'http',
      code: 'HTTP_STATUS',
      status: 503,
      message: 'later',
      retryAfterMs: 61_000,
    });
    expect(await h.task(run, 'a')).toMatchObject({ status: 'FAILED', reason: 'terminal', attempts_spent: 1 });
  });

  // SPEC S5.2, TRANSITIONS 21
  it('a failure that another try cannot help is FAILED at once, with class, code, message and attempt', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.fail(await h.claimOne('a'), {
      class: 'http',
      code: 'HTTP_STATUS',
      status: 404,
      message: 'not there',
    });
    const task = await h.task(run, 'a');
    expect(task).toMatchObject({ status: 'FAILED', reason: 'terminal' });
    expect(JSON.parse(task.error ?? '')).toMatchObject({
      class: 'http',
      code: 'HTTP_STATUS',
      message: 'not there',
      attempt: 1,
    });
    expect((await h.attempts(task)).map(({ outcome }) => outcome)).toEqual(['fail']);
  });

  // SPEC S5.2, S1.2 output
  it('an output that is not what the task asked for fails the attempt and is tried again', async () => {
    const h = await open();
    const output = { schema: { type: 'object', required: ['n'] } };
    const run = await h.start(
      { a: { output }, b: { output, retry: { on_output_error: false } } },
      { on_failure: 'continue' },
    );
    const [a, b] = await h.claimAll(2);
    expect(await h.complete(a, { m: 1 })).toMatchObject({ ok: true, status: 'QUEUED' });
    expect(await h.complete(b, { m: 1 })).toMatchObject({ ok: true, status: 'FAILED' });
    expect(JSON.parse((await h.task(run, 'a')).error ?? '')).toMatchObject({
      class: 'output',
      code: 'OUTPUT_SCHEMA',
    });
    expect(await h.complete(a, { m: 1 })).toMatchObject({ ok: true, status: 'QUEUED' });
    await h.leap(2_000);
    expect(await h.complete(await h.claimOne('a'), { n: 1 })).toMatchObject({ status: 'SUCCESS' });
    await expectSound(h, run);
  });

  // TRANSITIONS 23, SPEC S5.4
  it('a release spends nothing and is claimable again at once', async () => {
    const h = await open();
    const run = await h.start({ a: { retry: { max_attempts: 1 } } });
    expect(await h.release(await h.claimOne('a'))).toMatchObject({ status: 'QUEUED', not_before: null });
    expect(await h.task(run, 'a')).toMatchObject({ attempts_spent: 0, losses: 0, not_before: null });
    expect((await h.claimOne('a')).attempt).toBe(2);
  });

  // SPEC S5.4
  it('releases in a row without progress back off; progress starts the count again', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const delays = [];
    for (let n = 0; n < 4; n++) {
      await h.release(await h.claimOne('a'));
      const delay = ((await h.task(run, 'a')).not_before ?? h.clock.now()) - h.clock.now();
      delays.push(delay);
      await h.leap(delay);
    }
    expect(delays).toEqual([0, 1_000, 2_000, 4_000]);
    const lease = await h.claimOne('a');
    await h.beat(lease, { progress: 0.1 });
    await h.release(lease);
    expect((await h.task(run, 'a')).not_before).toBeNull();
  });

  // SPEC S5.3
  it('a release may ask for a delay of its own', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.release(await h.claimOne('a'), 60_000);
    expect((await h.task(run, 'a')).not_before).toBe(h.clock.now() + 60_000);
    await h.leap(60_000);
    await h.claimOne('a');
    await expectSound(h, run);
  });

  // SPEC S5.4
  it('a failure on the last attempt is exhausted, earlier releases notwithstanding', async () => {
    const h = await open();
    const run = await h.start({ a: { retry: { max_attempts: 2, jitter: 0 } } });
    await h.release(await h.claimOne('a'));
    await h.fail(await h.claimOne('a'), CRASHED);
    await h.leap(1_000);
    await h.fail(await h.claimOne('a'), CRASHED);
    expect(await h.task(run, 'a')).toMatchObject({
      status: 'FAILED',
      reason: 'exhausted',
      attempt: 3,
      attempts_spent: 2,
    });
  });

  // SPEC S5.1
  it('a success clears the error of earlier attempts', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.fail(await h.claimOne('a'), CRASHED);
    await h.leap(2_000);
    await h.complete(await h.claimOne('a'));
    expect((await h.task(run, 'a')).error).toBeNull();
    expect(await h.fail({ lease_id: 'x' }, HOPELESS)).toMatchObject({ ok: false });
  });
});
