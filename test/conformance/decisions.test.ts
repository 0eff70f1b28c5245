/** What becomes of a task whose parents are done: when, if, gate, approval, wait (SPEC S4.2, TRANSITIONS 3–12). */
import { expect, it } from 'vitest';
import { HOPELESS } from '../support/harness.ts';
import { conformance, expectSound } from './suite.ts';

conformance('decisions', (open) => {
  // TRANSITIONS 6
  it('a task whose `if` is false is skipped and says so', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: 'a', if: 'tasks.a.output > 1' } });
    await h.complete(await h.claimOne('a'), 1);
    await h.idle();
    expect(await h.statuses(run)).toEqual({ a: 'SUCCESS', b: 'SKIPPED condition_false' });
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  // TRANSITIONS 6, 12
  it('a task whose `if` holds runs', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: 'a', if: 'tasks.a.output > 1' } });
    await h.complete(await h.claimOne('a'), 2);
    await h.idle();
    expect((await h.statuses(run)).b).toBe('QUEUED');
    await expectSound(h, run);
  });

  // TRANSITIONS 7
  it('an error in `if` fails the task as template and is not retried', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: 'a', if: 'tasks.a.output.x.y' } });
    await h.complete(await h.claimOne('a'), {});
    await h.idle();
    const task = await h.task(run, 'b');
    expect(task).toMatchObject({ status: 'FAILED', reason: 'terminal', attempts_spent: 0 });
    expect(JSON.parse(task.error ?? '')).toMatchObject({ class: 'template' });
    expect((await h.run(run)).status).toBe('FAILED');
  });

  // TRANSITIONS 5
  it('a task whose parents were all skipped by condition is skipped', async () => {
    const h = await open();
    const run = await h.start({
      a: { if: false },
      b: { if: false },
      c: { needs: ['a', 'b'] },
      d: { needs: 'c' },
    });
    await h.idle();
    expect(await h.statuses(run)).toMatchObject({
      c: 'SKIPPED upstream_skipped',
      d: 'SKIPPED upstream_skipped',
    });
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  // SPEC S4.2
  it('the join of an either/or runs', async () => {
    const h = await open();
    const run = await h.start({
      choose: {},
      left: { needs: 'choose', if: 'tasks.choose.output == "left"' },
      right: { needs: 'choose', if: 'tasks.choose.output == "right"' },
      join: { needs: ['left', 'right'], with: { value: '{{ tasks.left.output or tasks.right.output }}' } },
    });
    await h.complete(await h.claimOne('choose'), 'right');
    await h.idle();
    await h.complete(await h.claimOne('right'), 'from the right');
    const join = await h.claimOne('join');
    expect(join.config.value).toBe('from the right');
    await h.complete(join);
    expect((await h.run(run)).status).toBe('SUCCESS');
    expect(await h.statuses(run)).toMatchObject({ left: 'SKIPPED condition_false', join: 'SUCCESS' });
  });

  // TRANSITIONS 3
  it('a failed parent skips its descendants at once, without waiting for other parents', async () => {
    const h = await open();
    const run = await h.start(
      { a: {}, b: {}, c: { needs: ['a', 'b'] }, d: { needs: 'c' } },
      { on_failure: 'continue' },
    );
    const [a] = await h.claimAll(2);
    await h.fail(a, HOPELESS);
    expect(await h.statuses(run)).toEqual({
      a: 'FAILED terminal',
      b: 'RUNNING',
      c: 'SKIPPED upstream_failed',
      d: 'SKIPPED upstream_failed',
    });
    await expectSound(h, run);
  });

  // TRANSITIONS 3
  it('a cancelled parent skips its descendants as upstream_cancelled', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: 'a' }, c: { needs: 'b' }, d: {} });
    await h.engine.cancelTask((await h.task(run, 'a')).id);
    expect(await h.statuses(run)).toEqual({
      a: 'CANCELLED cancelled',
      b: 'SKIPPED upstream_cancelled',
      c: 'SKIPPED upstream_cancelled',
      d: 'QUEUED',
    });
    await h.finish(run);
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  // SPEC S4.2
  it('`when: done` runs whatever its parents did', async () => {
    const h = await open();
    const run = await h.start(
      {
        a: {},
        b: { if: false },
        end: { needs: ['a', 'b'], when: 'done', with: { value: '{{ tasks.a.status }}' } },
      },
      { on_failure: 'continue' },
    );
    await h.idle();
    await h.fail(await h.claimOne('a'), HOPELESS);
    const end = await h.claimOne('end');
    expect(end.config.value).toBe('FAILED');
    await h.complete(end);
    expect(await h.statuses(run)).toMatchObject({ end: 'SUCCESS' });
    expect((await h.run(run)).status).toBe('FAILED');
  });

  // SPEC S4.2
  it('`if` comes before the gate: a person is not asked about what will not run', async () => {
    const h = await open();
    const run = await h.start({ a: { if: 'false', gate: { message: 'really?' } } });
    await h.idle();
    expect(await h.statuses(run)).toEqual({ a: 'SKIPPED condition_false' });
  });

  // TRANSITIONS 11, 33; SPEC S5.3
  it('a wait holds no worker and succeeds when its time has come', async () => {
    const h = await open();
    const run = await h.start({ w: { uses: 'wait', with: { for: '1h' } }, after: { needs: 'w' } });
    await h.idle();
    const waiting = await h.task(run, 'w');
    expect(waiting).toMatchObject({
      status: 'QUEUED',
      waiting_for: 'time',
      not_before: h.clock.now() + 3_600_000,
    });
    expect(await h.claim(5)).toEqual([]);
    await h.leap(3_599_999);
    expect((await h.task(run, 'w')).status).toBe('QUEUED');
    await h.leap(1);
    expect(await h.statuses(run)).toEqual({ w: 'SUCCESS', after: 'QUEUED' });
    expect(await h.output(run, 'w')).toEqual({ until: new Date(h.clock.now()).toISOString() });
  });

  // TRANSITIONS 11
  it('a wait until a moment that is past succeeds at once', async () => {
    const h = await open();
    const run = await h.start({ w: { uses: 'wait', with: { until: '2020-01-01T00:00:00Z' } } });
    await h.idle();
    expect((await h.run(run)).status).toBe('SUCCESS');
    expect((await h.eventsOf(run, 'w')).map(({ type }) => type)).toEqual(['task.completed']);
  });

  // SPEC S9.3: its anchor is stored
  it('a wait keeps its moment over a restart', async () => {
    const h = await open();
    const run = await h.start({ w: { uses: 'wait', with: { for: '1h' } } });
    await h.idle();
    const { not_before } = await h.task(run, 'w');
    h.clock.advance(1_800_000);
    await h.restart();
    await h.idle();
    expect((await h.task(run, 'w')).not_before).toBe(not_before);
    await h.leap(1_800_000);
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  // TRANSITIONS 7
  it('a wait for something that is no duration fails as template', async () => {
    const h = await open();
    const run = await h.start({ a: {}, w: { uses: 'wait', with: { for: '{{ tasks.a.output }}' } } });
    await h.complete(await h.claimOne('a'), 'soon');
    await h.idle();
    expect(await h.statuses(run)).toMatchObject({ w: 'FAILED terminal' });
  });

  // SPEC S4.2: decided once
  it('a retry does not ask a passed gate again, a rerun does', async () => {
    const h = await open();
    const run = await h.start({ a: { gate: { message: 'go?' }, retry: { max_attempts: 1 } } });
    await h.idle();
    const { id } = await h.task(run, 'a');
    await h.engine.decide(id, { kind: 'approve', by: 'me' });
    await h.fail(await h.claimOne('a'));
    await h.engine.retryRun(run, 'me');
    await h.idle();
    expect((await h.task(run, 'a')).status).toBe('QUEUED');
    await h.finish(run);
    await h.engine.rerunFrom(run, 'a', 'me');
    await h.idle();
    expect((await h.task(run, 'a')).status).toBe('BLOCKED');
  });

  // DESIGN: poison
  it('a task whose parent output is gone fails alone, and the others are decided', async () => {
    const h = await open();
    const big = 'x'.repeat(300_000);
    const run = await h.start(
      { a: {}, b: { needs: 'a', if: 'tasks.a.output == ""' }, c: { if: 'true' } },
      { on_failure: 'continue' },
    );
    await h.complete(await h.claimOne('a'), big);
    const { key } = await h.task(run, 'a');
    const [artifact] = await h.store.read((tx) => tx.artifacts.ofTask(key));
    await h.blobs.remove(artifact?.blob_ref ?? '');
    await h.restart();
    await h.idle();
    expect(await h.statuses(run)).toEqual({ a: 'SUCCESS', b: 'FAILED terminal', c: 'QUEUED' });
  });

  // SPEC S3.5
  it('every unfinished task says what it waits for', async () => {
    const h = await open();
    const run = await h.start(
      {
        moving: {},
        held: {},
        child: { needs: 'moving' },
        asked: { gate: { message: 'go?' } },
        later: { uses: 'wait', with: { for: '1m' } },
      },
      { max_parallel: 1 },
    );
    await h.idle();
    const rows = await h.tasks(run);
    expect(Object.fromEntries(rows.map((row) => [row.task_id, row.waiting_for]))).toEqual({
      moving: 'pool',
      held: 'capacity',
      child: 'dependency',
      asked: 'person',
      later: 'time',
    });
  });
});
