/** Runs without a workflow, and notes on runs (SPEC S4.10, S12.4). */
import { expect, it } from 'vitest';
import type { Task } from '../../src/definition/workflow.ts';
import { type Harness, HOPELESS } from '../support/harness.ts';
import { conformance, expectSound, refusal } from './suite.ts';

const CALLER = { caller: 'me' };

const task = (needs: readonly string[] = [], rest: Partial<Task> = {}): Task => ({
  needs,
  uses: 'transform',
  with: { value: 1 },
  ...rest,
});

const add = (h: Harness, run: string, id: string, needs: readonly string[] = [], rest: Partial<Task> = {}) =>
  h.engine.enqueue(run, [{ id, task: task(needs, rest) }], CALLER);

conformance('open runs', (open) => {
  // SPEC S4.10, S3.3
  it('an open run starts as PENDING and takes tasks one by one', async () => {
    const h = await open();
    const { id } = await h.engine.startOpenRun({}, CALLER);
    expect((await h.run(id)).status).toBe('PENDING');
    await add(h, id, 'a');
    await add(h, id, 'b', ['a']);
    expect(await h.statuses(id)).toEqual({ a: 'QUEUED', b: 'PENDING' });
    expect((await h.run(id)).status).toBe('RUNNING');
    expect((await h.finish(id)).status).toBe('SUCCESS');
    await expectSound(h, id);
  });

  // SPEC S4.10
  it('enqueuing into a run that is over is RUN_TERMINAL', async () => {
    const h = await open();
    const { id } = await h.engine.startOpenRun({}, CALLER);
    await add(h, id, 'a');
    await h.finish(id);
    expect(await refusal(add(h, id, 'b'))).toBe('RUN_TERMINAL');
  });

  // SPEC S4.10
  it('auto_close: false keeps an idle run WAITING until it is closed', async () => {
    const h = await open();
    const { id } = await h.engine.startOpenRun({ auto_close: false }, CALLER);
    await add(h, id, 'a');
    expect((await h.finish(id)).status).toBe('WAITING');
    await add(h, id, 'b', ['a']);
    expect((await h.finish(id)).status).toBe('WAITING');
    await h.engine.closeRun(id, 'me');
    expect((await h.run(id)).status).toBe('SUCCESS');
    await expectSound(h, id);
  });

  // SPEC S4.10
  it('closing a run with work under way lets it finish, closing an empty one cancels it', async () => {
    const h = await open();
    const busy = (await h.engine.startOpenRun({ auto_close: false }, CALLER)).id;
    const empty = (await h.engine.startOpenRun({ auto_close: false }, CALLER)).id;
    await add(h, busy, 'a');
    for (const id of [busy, empty]) await h.engine.closeRun(id, 'me');
    expect((await h.run(busy)).status).toBe('RUNNING');
    expect((await h.finish(busy)).status).toBe('SUCCESS');
    expect((await h.run(empty)).status).toBe('CANCELLED');
  });

  // SPEC S4.10, TRANSITIONS 2, 3
  it('a task that needs finished tasks moves on at once; one that needs a failed task is skipped', async () => {
    const h = await open();
    const { id } = await h.engine.startOpenRun({ auto_close: false }, CALLER);
    await add(h, id, 'good');
    await add(h, id, 'bad');
    const [good, bad] = await h.claimAll(2);
    await h.complete(good, 5);
    await h.fail(bad, HOPELESS);
    await add(h, id, 'x', ['good'], { with: { value: '{{ tasks.good.output }}' } });
    await add(h, id, 'y', ['good', 'bad']);
    await add(h, id, 'z', ['bad'], { when: 'done' });
    expect(await h.statuses(id)).toMatchObject({ x: 'QUEUED', y: 'SKIPPED upstream_failed', z: 'QUEUED' });
    expect((await h.claimOne('x')).config.value).toBe(5);
    await expectSound(h, id);
  });

  // SPEC S4.10
  it('several tasks in one call may need each other; an unknown need or a known id refuses them all', async () => {
    const h = await open();
    const { id } = await h.engine.startOpenRun({ auto_close: false }, CALLER);
    await h.engine.enqueue(
      id,
      [
        { id: 'a', task: task() },
        { id: 'b', task: task(['a']) },
      ],
      CALLER,
    );
    const wrong = [
      [
        { id: 'c', task: task() },
        { id: 'd', task: task(['nobody']) },
      ],
      [
        { id: 'c', task: task() },
        { id: 'a', task: task() },
      ],
    ];
    for (const tasks of wrong) expect(await refusal(h.engine.enqueue(id, tasks, CALLER))).toBe('USAGE');
    expect(Object.keys(await h.statuses(id))).toEqual(['a', 'b']);
    await expectSound(h, id);
  });

  // SPEC S1.2
  it('a need that is named twice in an enqueued task counts once', async () => {
    const h = await open();
    const { id } = await h.engine.startOpenRun({}, CALLER);
    await add(h, id, 'a');
    await add(h, id, 'b', ['a', 'a']);
    expect((await h.finish(id)).status).toBe('SUCCESS');
  });

  // SPEC S4.7
  it('enqueuing with a key adds the task once', async () => {
    const h = await open();
    const { id } = await h.engine.startOpenRun({}, CALLER);
    const keyed = { caller: 'me', key: 'k' };
    const [first] = await h.engine.enqueue(id, [{ id: 'a', task: task() }], keyed);
    const [again] = await h.engine.enqueue(id, [{ id: 'a', task: task() }], keyed);
    expect(again?.id).toBe(first?.id);
    expect(await refusal(h.engine.enqueue(id, [{ id: 'b', task: task() }], keyed))).toBe(
      'IDEMPOTENCY_CONFLICT',
    );
  });

  // SPEC S4.2
  it('an enqueued task has conditions, gates and waits like any other', async () => {
    const h = await open();
    const { id } = await h.engine.startOpenRun({ auto_close: false }, CALLER);
    await add(h, id, 'no', [], { if: false });
    await add(h, id, 'ask', [], { gate: { message: '?' } });
    await add(h, id, 'wait', [], { uses: 'wait', with: { for: '1m' } });
    await h.idle();
    expect(await h.statuses(id)).toEqual({ no: 'SKIPPED condition_false', ask: 'BLOCKED', wait: 'QUEUED' });
    await h.restart();
    await h.leap(60_000);
    expect((await h.statuses(id)).wait).toBe('SUCCESS');
    await expectSound(h, id);
  });

  // SPEC S5.8
  it('a cancelled open run takes nothing more', async () => {
    const h = await open();
    const { id } = await h.engine.startOpenRun({ auto_close: false }, CALLER);
    await add(h, id, 'a');
    await h.engine.cancelRun(id, 'me');
    expect((await h.run(id)).status).toBe('CANCELLED');
    expect(await refusal(add(h, id, 'b'))).toBe('RUN_TERMINAL');
  });

  // SPEC S4.10
  it('a completion may enqueue more tasks in its own transaction, so that the run does not end between', async () => {
    const h = await open();
    const { id } = await h.engine.startOpenRun({}, CALLER);
    await add(h, id, 'a');
    const { lease_id } = await h.claimOne('a');
    const enqueue = {
      b: { uses: 'transform', with: { value: '{{ tasks.a.output }}' } },
      c: { uses: 'shell', with: { run: 'true' }, needs: ['b', 'a'] },
    };
    const said = { kind: 'complete', lease_id, output: 7, enqueue } as const;
    const [first] = await h.settle(said);
    expect(first).toMatchObject({ ok: true, status: 'SUCCESS' });
    expect(await h.settle(said)).toEqual([first]);
    expect(await h.statuses(id)).toEqual({ a: 'SUCCESS', b: 'QUEUED', c: 'PENDING' });
    expect(await h.task(id, 'c')).toMatchObject({ deps_remaining: 1, deps_ok: 1 });
    await expectSound(h, id);
    const b = await h.claimOne('b');
    expect(b.config.value).toBe(7);
    await h.complete(b);
    expect((await h.claimOne('c')).handler).toBe('shell');
    await expectSound(h, id);
  });

  // SPEC S4.10, S4.6
  it('a completion that enqueues what cannot be added fails its attempt and harms nobody else', async () => {
    const h = await open();
    const { id } = await h.engine.startOpenRun({}, CALLER);
    for (const name of ['a', 'b', 'c']) await add(h, id, name);
    const [a, b, c] = await h.claimAll(3);
    const task = { uses: 'transform', with: { value: 1 } };
    const results = await h.settle(
      { kind: 'complete', lease_id: a.lease_id, output: 1, enqueue: { x: { ...task, needs: ['nobody'] } } },
      { kind: 'complete', lease_id: b.lease_id, output: 1, enqueue: { c: task } },
      { kind: 'complete', lease_id: c.lease_id, output: 1, enqueue: { y: task } },
    );
    expect(results).toMatchObject([{ status: 'QUEUED' }, { status: 'QUEUED' }, { status: 'SUCCESS' }]);
    expect(JSON.parse((await h.task(id, 'b')).error ?? '')).toMatchObject({ class: 'output' });
    expect(Object.keys(await h.statuses(id))).toEqual(['a', 'b', 'c', 'y']);
    await expectSound(h, id);
  });

  // SPEC S12.4
  it('a completion may append notes in its own transaction; one that is refused appends none', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {} });
    const [a, b] = await h.claimAll(2);
    const wrong = { data: 1, parent_id: 'nobody' };
    await h.settle(
      { kind: 'complete', lease_id: a.lease_id, output: 1, context: [{ data: { n: 1 }, label: 'draft' }] },
      { kind: 'complete', lease_id: b.lease_id, output: 1, context: [wrong] },
    );
    const { key } = await h.run(run);
    const { id: task_run_id } = await h.task(run, 'a');
    expect(await h.store.read((tx) => tx.contexts.ofRun(key))).toMatchObject([
      { task_run_id, data: '{"n":1}', label: 'draft' },
    ]);
    expect(await h.statuses(run)).toEqual({ a: 'SUCCESS', b: 'QUEUED' });
    expect(await h.events(run, 'context_snapshot.appended')).toHaveLength(1);
    await expectSound(h, run);
  });

  // SPEC S12.4
  it('context snapshots are kept in order with their parents, on the run or on a task', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const { id: task_run_id } = await h.task(run, 'a');
    const first = await h.engine.appendContext(run, { data: { n: 1 }, by: 'me' });
    const second = await h.engine.appendContext(run, {
      data: 'two',
      parent_id: first,
      task_run_id,
      label: 'draft',
      by: 'me',
    });
    const { key } = await h.run(run);
    expect(await h.store.read((tx) => tx.contexts.ofRun(key))).toMatchObject([
      { id: first, parent_id: null, task_run_id: null, data: '{"n":1}' },
      { id: second, parent_id: first, task_run_id, data: '"two"', label: 'draft' },
    ]);
    expect(await h.events(run, 'context_snapshot.appended')).toHaveLength(2);
    await expectSound(h, run);
  });

  // SPEC S12.4
  it('a snapshot cannot hang on a parent or a task of another run', async () => {
    const h = await open();
    const one = await h.start({ a: {} });
    const other = await h.start({ a: {} });
    const parent_id = await h.engine.appendContext(other, { data: 1, by: 'me' });
    const task_run_id = (await h.task(other, 'a')).id;
    expect(await refusal(h.engine.appendContext(one, { data: 1, parent_id, by: 'me' }))).toBe('NOT_FOUND');
    expect(await refusal(h.engine.appendContext(one, { data: 1, task_run_id, by: 'me' }))).toBe('NOT_FOUND');
  });
});
