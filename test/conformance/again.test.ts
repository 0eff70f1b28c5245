/** Doing it again: retry, rerun, replay of dead tasks (SPEC S5.6, S5.7, TRANSITIONS 35–37). */
import { expect, it } from 'vitest';
import { CRASHED, HOPELESS } from '../support/harness.ts';
import { conformance, expectSound, refusal } from './suite.ts';

conformance('doing it again', (open) => {
  // TRANSITIONS 35, SPEC S5.7
  it('a retry runs what did not succeed again and keeps the outputs of the rest', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: 'a' }, c: { needs: 'b' }, no: { if: false }, side: {} });
    await h.idle();
    const [a] = await h.claimAll(2);
    await h.complete(a, 'kept');
    await h.fail(await h.claimOne('b'), HOPELESS);
    expect(await h.statuses(run)).toMatchObject({
      c: 'SKIPPED upstream_failed',
      side: 'CANCELLED run_stopped',
    });
    expect(await h.engine.retryRun(run, 'me')).toBe(3);
    expect(await h.statuses(run)).toEqual({
      a: 'SUCCESS',
      b: 'QUEUED',
      c: 'PENDING',
      no: 'SKIPPED condition_false',
      side: 'QUEUED',
    });
    expect(await h.task(run, 'b')).toMatchObject({ attempts_spent: 0, error: null, finished_at: null });
    await expectSound(h, run);
    expect((await h.finish(run)).status).toBe('SUCCESS');
    expect(await h.output(run, 'a')).toBe('kept');
    expect(await h.events(run, 'run.retried')).toHaveLength(1);
    await expectSound(h, run);
  });

  // SPEC S4.2
  it('a retry does not ask a condition again that held before, a rerun does', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { if: 'tasks.a.output' } }, { on_failure: 'continue' });
    await h.complete(await h.claimOne('a'), true);
    await h.idle();
    await h.fail(await h.claimOne('b'), HOPELESS);
    expect(await h.task(run, 'b')).toMatchObject({ status: 'FAILED', gate: 'passed' });
    await h.engine.retryRun(run, 'me');
    expect(await h.task(run, 'b')).toMatchObject({ status: 'PENDING', gate: 'passed' });
    expect((await h.finish(run)).status).toBe('SUCCESS');
    await h.engine.rerunFrom(run, 'a', 'me');
    expect(await h.task(run, 'b')).toMatchObject({ status: 'PENDING', gate: null });
    await h.complete(await h.claimOne('a'), false);
    await h.idle();
    expect(await h.statuses(run)).toMatchObject({ b: 'SKIPPED condition_false' });
    await expectSound(h, run);
  });

  // SPEC S5.7
  it('a cancelled run can be retried', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: 'a' } });
    await h.claimOne('a');
    await h.engine.cancelRun(run, 'me');
    await h.engine.retryRun(run, 'me');
    expect(await h.run(run)).toMatchObject({ status: 'RUNNING', cancelled: 0, finished_at: null });
    expect((await h.finish(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  // SPEC S5.7
  it('retry, rerun and replay of an active run are refused, and so is a retry of a success', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    expect(await refusal(h.engine.retryRun(run, 'me'))).toBe('RUN_ACTIVE');
    expect(await refusal(h.engine.rerunFrom(run, 'a', 'me'))).toBe('RUN_ACTIVE');
    await h.finish(run);
    expect(await refusal(h.engine.retryRun(run, 'me'))).toBe('NOT_RETRYABLE');
    expect(await refusal(h.engine.rerunFrom(run, 'nobody', 'me'))).toBe('NOT_FOUND');
    const { id } = await h.task(run, 'a');
    expect(await refusal(h.engine.replayTask(id, { resetAttempts: true, by: 'me' }))).toBe('NOT_RETRYABLE');
  });

  // SPEC S5.7, S1.2
  it('a run that failed by its timeout gets its whole time again', async () => {
    const h = await open();
    const run = await h.start({ a: {} }, { timeout: '1m' });
    await h.leap(60_000);
    await h.engine.retryRun(run, 'me');
    await h.leap(59_999);
    expect((await h.run(run)).status).toBe('RUNNING');
    expect((await h.finish(run)).status).toBe('SUCCESS');
  });

  // TRANSITIONS 36, SPEC S5.7
  it('a rerun runs the task and everything below it again, as a new generation', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: 'a' }, c: { needs: 'b' }, d: { needs: 'a' } });
    await h.finish(run, 'old');
    expect(await h.engine.rerunFrom(run, 'b', 'me')).toBe(2);
    expect(await h.statuses(run)).toEqual({ a: 'SUCCESS', b: 'QUEUED', c: 'PENDING', d: 'SUCCESS' });
    expect((await h.task(run, 'b')).generation).toBe(1);
    await expectSound(h, run);
    expect((await h.finish(run, 'new')).status).toBe('SUCCESS');
    expect([await h.output(run, 'a'), await h.output(run, 'b'), await h.output(run, 'c')]).toEqual([
      'old',
      'new',
      'new',
    ]);
    await expectSound(h, run);
  });

  // SPEC S5.7, S4.2
  it('a rerun decides conditions again, and a task that was skipped may run', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { if: 'tasks.a.output == "yes"' } });
    await h.complete(await h.claimOne('a'), 'no');
    await h.idle();
    expect((await h.run(run)).status).toBe('SUCCESS');
    await h.engine.rerunFrom(run, 'a', 'me');
    await h.complete(await h.claimOne('a'), 'yes');
    await h.idle();
    expect((await h.statuses(run)).b).toBe('QUEUED');
  });

  // SPEC S5.7, S9.3
  it('waits and approvals can be rerun: they wait and ask again, and their new outputs count', async () => {
    const h = await open();
    const run = await h.start({
      w: { uses: 'wait', with: { for: '1m' } },
      p: { uses: 'approval', with: { message: '?' }, needs: 'w' },
      last: { with: { value: '{{ tasks.p.output.by }}' } },
    });
    for (const by of ['ann', 'bob']) {
      await h.idle();
      await h.leap(60_000);
      await h.engine.decide((await h.task(run, 'p')).id, { kind: 'approve', by });
      const lease = await h.claimOne('last');
      expect(lease.config.value).toBe(by);
      await h.complete(lease);
      expect((await h.run(run)).status).toBe('SUCCESS');
      await expectSound(h, run);
      if (by === 'ann') await h.engine.rerunFrom(run, 'w', 'me');
    }
  });

  // SPEC S5.7
  it('a rerun does not start from the checkpoint of the time before', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    await h.beat(lease, { checkpoint: 'almost done' });
    await h.complete(lease);
    await h.engine.rerunFrom(run, 'a', 'me');
    expect((await h.claimOne('a')).checkpoint).toBeUndefined();
  });

  // SPEC S5.6, TRANSITIONS 37
  it('dead tasks are listed with their reason and can be replayed with their attempts reset', async () => {
    const h = await open();
    const run = await h.start({ a: { retry: { max_attempts: 1 } }, b: { needs: 'a' } });
    await h.fail(await h.claimOne('a'), CRASHED);
    const dead = await h.store.read((tx) => tx.tasks.dead({ after: 0, limit: 10 }));
    expect(dead.map(({ task_id, reason }) => [task_id, reason])).toEqual([['a', 'exhausted']]);
    expect(await h.engine.replayTask(dead[0]?.id ?? '', { resetAttempts: true, by: 'me' })).toBe(2);
    expect(await h.task(run, 'a')).toMatchObject({ status: 'QUEUED', attempts_spent: 0, attempt: 1 });
    await expectSound(h, run);
    expect((await h.finish(run)).status).toBe('SUCCESS');
  });

  // TRANSITIONS 37
  it('a replay without a reset has one more try and no more', async () => {
    const h = await open();
    const run = await h.start({ a: { retry: { max_attempts: 1 } } });
    await h.fail(await h.claimOne('a'), CRASHED);
    await h.engine.replayTask((await h.task(run, 'a')).id, { resetAttempts: false, by: 'me' });
    expect((await h.task(run, 'a')).attempts_spent).toBe(1);
    await h.fail(await h.claimOne('a'), CRASHED);
    expect(await h.task(run, 'a')).toMatchObject({
      status: 'FAILED',
      reason: 'exhausted',
      attempts_spent: 2,
    });
    await expectSound(h, run);
  });

  // TRANSITIONS 37
  it('a replay in a run that goes on brings back the skipped descendants without another bad parent, whatever their order', async () => {
    const h = await open();
    const run = await h.start(
      {
        grandchild: { needs: ['child', 'a'] },
        both: { needs: ['a', 'b'] },
        child: { needs: 'a' },
        a: {},
        b: {},
        busy: {},
      },
      { on_failure: 'continue' },
    );
    for (const lease of await h.claim(2)) await h.fail(lease, HOPELESS);
    await h.claimOne('busy');
    expect(await h.engine.replayTask((await h.task(run, 'a')).id, { resetAttempts: true, by: 'me' })).toBe(3);
    expect(await h.statuses(run)).toEqual({
      grandchild: 'PENDING',
      both: 'SKIPPED upstream_failed',
      child: 'PENDING',
      a: 'QUEUED',
      b: 'FAILED terminal',
      busy: 'RUNNING',
    });
    await expectSound(h, run);
  });

  // I15
  it('a `when: done` task that waits for others counts a replayed parent once', async () => {
    const h = await open();
    const run = await h.start(
      { a: {}, b: {}, end: { needs: ['a', 'b'], when: 'done' } },
      { on_failure: 'continue' },
    );
    const [a, b] = await h.claimAll(2);
    await h.fail(a, HOPELESS);
    await h.engine.replayTask((await h.task(run, 'a')).id, { resetAttempts: true, by: 'me' });
    expect((await h.task(run, 'end')).deps_remaining).toBe(2);
    await h.complete(await h.claimOne('a'));
    expect((await h.task(run, 'end')).status).toBe('PENDING');
    await h.complete(b);
    expect((await h.task(run, 'end')).status).toBe('QUEUED');
    await expectSound(h, run);
  });

  // SPEC S5.6
  it('a purged dead task is off the list and stays FAILED', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.fail(await h.claimOne('a'), HOPELESS);
    await h.engine.purgeDeadTask((await h.task(run, 'a')).id, 'me');
    expect(await h.store.read((tx) => tx.tasks.dead({ after: 0, limit: 10 }))).toEqual([]);
    expect((await h.task(run, 'a')).status).toBe('FAILED');
    await expectSound(h, run);
  });

  // SPEC S4.7
  it('retry, rerun and replay with a key happen once', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.fail(await h.claimOne('a'), HOPELESS);
    const { id } = await h.task(run, 'a');
    const options = { resetAttempts: true, by: 'me' };
    expect(await h.engine.replayTask(id, options, 'k1')).toBe(1);
    expect(await h.engine.replayTask(id, options, 'k1')).toBe(1);
    await h.finish(run);
    expect(await h.engine.rerunFrom(run, 'a', 'me', 'k2')).toBe(1);
    await h.finish(run);
    expect(await h.engine.rerunFrom(run, 'a', 'me', 'k2')).toBe(1);
    expect((await h.run(run)).status).toBe('SUCCESS');
  });
});
