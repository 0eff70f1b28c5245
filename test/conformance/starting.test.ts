/** Starting runs: atomic, versioned, checked, repeatable under a key. */
import { expect, it } from 'vitest';
import { canonical } from '../support/harness.ts';
import { conformance, expectSound, refusal } from './suite.ts';

conformance('starting runs', (open) => {
  // SPEC S4.1, TRANSITIONS 1, 2
  it('a start makes the run, its tasks and its edges, and its roots can be claimed at once', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {}, c: { needs: ['a', 'b'] } });
    expect(await h.statuses(run)).toEqual({ a: 'QUEUED', b: 'QUEUED', c: 'PENDING' });
    expect((await h.run(run)).status).toBe('RUNNING');
    expect((await h.claim(5)).map((lease) => lease.task_id)).toEqual(['a', 'b']);
    await expectSound(h, run);
  });

  // SPEC S12.1
  it('a run of a workflow says run.created once and no task.enqueued', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: 'a' }, c: { needs: 'a' } });
    expect(await h.events(run, 'run.created')).toHaveLength(1);
    expect(await h.events(run, 'task.enqueued')).toHaveLength(0);
  });

  // TRANSITIONS 2, 12, 14
  it('a root passes READY on its way to QUEUED in one event', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const [event, ...more] = await h.eventsOf(run, 'a');
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      type: 'task.queued',
      data: { from: 'PENDING', to: 'QUEUED', via: ['READY'], version: 1 },
    });
  });

  // SPEC S1.2: named twice counts once
  it('a dependency that is named twice counts once', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: ['a', 'a'], with: { value: '{{ tasks.a.output }}' } } });
    expect((await h.task(run, 'b')).deps_remaining).toBe(1);
    expect((await h.finish(run)).status).toBe('SUCCESS');
  });

  // SPEC S1.1
  it('a version grows when the canonical form changes, and a run keeps its own', async () => {
    const h = await open();
    const first = await h.start({ a: { with: { value: 'old' } } });
    const again = await h.start({ a: { with: { value: 'old' } } });
    const changed = await h.start({ a: { with: { value: 'new' } } });
    const versions = [];
    for (const id of [first, again, changed]) versions.push((await h.run(id)).workflow_version);
    expect(versions).toEqual([1, 1, 2]);
    await h.restart();
    expect((await h.claim(3)).map((lease) => lease.config.value)).toEqual(['old', 'old', 'new']);
  });

  // SPEC S1.1
  it('a start that was rolled back leaves nothing of its workflow behind, in the store or in memory', async () => {
    let isBroken = false;
    const h = await open({
      onStatement: (name) => {
        if (isBroken && name === 'commit') throw new TypeError('rolled back');
      },
    });
    isBroken = true;
    await expect(h.start({ a: { with: { value: 'old' } } })).rejects.toThrow('rolled back');
    isBroken = false;
    const run = await h.start({ a: { with: { value: 'new' } } });
    expect((await h.run(run)).workflow_version).toBe(1);
    expect((await h.claimOne('a')).config.value).toBe('new');
  });

  // SPEC S1.2
  it('inputs are filled with defaults and checked before a run exists', async () => {
    const h = await open();
    const inputs = { topic: { type: 'string', default: 'tides' }, count: { type: 'integer' } };
    const tasks = { a: { with: { value: '{{ inputs.topic }} {{ inputs.count }}' } } };
    const run = await h.start(tasks, { inputs }, { inputs: { count: 2 } });
    expect((await h.claimOne('a')).config.value).toBe('tides 2');
    expect(JSON.parse((await h.run(run)).inputs)).toEqual({ topic: 'tides', count: 2 });
    for (const wrong of [{}, { count: 'two' }, { count: 2, topics: 'x' }])
      expect(await refusal(h.start(tasks, { inputs }, { inputs: wrong }))).toBe('INVALID_INPUT');
  });

  // SPEC S4.7
  it('a start with a key gives the first run again, and another request under it is a conflict', async () => {
    const h = await open();
    const workflow = await canonical({ name: 'w', tasks: { a: {} } });
    const start = (labels: Record<string, string>) =>
      h.engine.startRun({ workflow, labels }, { caller: 'me', key: 'k' });
    const first = await start({});
    expect((await start({})).id).toBe(first.id);
    expect(await refusal(start({ x: 'y' }))).toBe('IDEMPOTENCY_CONFLICT');
    const other = await h.engine.startRun({ workflow }, { caller: 'somebody else', key: 'k' });
    expect(other.id).not.toBe(first.id);
  });

  // SPEC S4.7
  it('a refused start burns no key', async () => {
    const h = await open();
    const inputs = { n: { type: 'integer' } };
    const workflow = await canonical({ name: 'w', inputs, tasks: { a: {} } });
    const start = (n: unknown) => h.engine.startRun({ workflow, inputs: { n } }, { caller: 'me', key: 'k' });
    expect(await refusal(start('x'))).toBe('INVALID_INPUT');
    expect((await start(1)).status).toBe('RUNNING');
  });

  // SPEC S4.7
  it('the key of a start lives as long as its run, other keys seven days', async () => {
    const h = await open();
    const workflow = await canonical({ name: 'w', tasks: { a: { retry: { max_attempts: 1 } } } });
    const start = () => h.engine.startRun({ workflow }, { caller: 'me', key: 'k' });
    const { id } = await start();
    await h.fail(await h.claimOne());
    expect(await h.engine.retryRun(id, 'me', { key: 'r' })).toBe(1);
    expect(await h.engine.retryRun(id, 'me', { key: 'r' })).toBe(1);
    h.clock.advance(8 * 86_400_000);
    expect((await start()).id).toBe(id);
    expect(await refusal(h.engine.retryRun(id, 'me', { key: 'r' }))).toBe('RUN_ACTIVE');
  });

  // SPEC S5.7: clone
  it('a clone is a new run with other inputs that names where it came from', async () => {
    const h = await open();
    const inputs = { n: { type: 'integer', default: 1 } };
    const tasks = { a: { with: { value: '{{ inputs.n }}' } } };
    const first = await h.start(tasks, { inputs });
    await h.finish(first);
    const clone = await h.start(tasks, { inputs }, { inputs: { n: 2 }, cloned_from: first });
    expect((await h.run(clone)).cloned_from).toBe(first);
    expect((await h.claimOne()).config.value).toBe(2);
    expect((await h.run(first)).status).toBe('SUCCESS');
  });

  // SPEC S4.6: one bad request in a batch never fails the others
  it('runs that start in one commit do not mix, and a refused one leaves no trace', async () => {
    const h = await open();
    const started = await Promise.allSettled([
      h.start({ a: {} }),
      h.engine.enqueue('no such run', [], { caller: 'me' }),
      h.start({ a: {}, b: { needs: 'a' } }),
    ]);
    expect(started.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    const runs = await h.store.read((tx) => tx.runs.list({ limit: 10 }));
    expect(runs).toHaveLength(2);
    for (const run of runs) await expectSound(h, run.id);
  });
});
