/** `for_each` (SPEC S4.9): one task run per item, made in chunks, gathered in order; what fails, is cancelled, or is run again. */
import { expect, it } from 'vitest';
import type { Harness } from '../support/harness.ts';
import { canonical, HOPELESS } from '../support/harness.ts';
import { conformance, expectSound } from './suite.ts';

const THREE = { for_each: ['a', 'b', 'c'], with: { value: '{{ item }}{{ index }}' } };

/** Settles the item with this index by itself; the others stay where they are. */
async function itemLease(h: Harness, index: number) {
  const lease = (await h.claim(100)).find(({ map_index }) => map_index === index);
  if (lease === undefined) throw new Error(`item ${index} cannot be claimed`);
  return lease;
}

conformance('maps', (open) => {
  // SPEC S4.9, S2.1, TRANSITIONS 10, 13
  it('a map has one task run per item, and its output is the list of theirs in order', async () => {
    const h = await open();
    const run = await h.start(
      { list: {}, map: { for_each: 'tasks.list.output', with: { value: '{{ item.name }} {{ index }}' } } },
      { outputs: { all: '{{ tasks.map.output }}' } },
    );
    await h.complete(await h.claimOne('list'), [{ name: 'x' }, { name: 'y' }, { name: 'z' }]);
    await h.idle();
    expect(await h.statuses(run)).toMatchObject({ map: 'PENDING', 'map[0]': 'QUEUED', 'map[2]': 'QUEUED' });
    expect(await h.task(run, 'map')).toMatchObject({
      waiting_for: 'dependency',
      map_size: 3,
      deps_remaining: 3,
    });
    await expectSound(h, run);
    const leases = await h.claim(10);
    expect(leases.map(({ map_index, config }) => [map_index, config.value])).toEqual([
      [0, 'x 0'],
      [1, 'y 1'],
      [2, 'z 2'],
    ]);
    for (const lease of leases.toReversed()) await h.complete(lease, { of: lease.config.value });
    await h.idle();
    expect(await h.output(run, 'map')).toEqual([{ of: 'x 0' }, { of: 'y 1' }, { of: 'z 2' }]);
    const ended = await h.run(run);
    expect([ended.status, JSON.parse(ended.outputs ?? '')]).toEqual([
      'SUCCESS',
      { all: [{ of: 'x 0' }, { of: 'y 1' }, { of: 'z 2' }] },
    ]);
    await expectSound(h, run);
  });

  // SPEC S4.9, TRANSITIONS 9
  it('an empty list is a success with an empty list', async () => {
    const h = await open();
    const run = await h.start({
      map: { for_each: [] },
      next: { with: { value: '{{ tasks.map.output | length }}' } },
    });
    await h.idle();
    const lease = await h.claimOne('next');
    expect(lease.config.value).toBe(0);
    expect(await h.output(run, 'map')).toEqual([]);
    await h.complete(lease);
    expect((await h.run(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  // TRANSITIONS 7
  it('what is not a list, or too long a list, fails the map and says so', async () => {
    const h = await open({ itemsMax: 2 });
    const run = await h.start(
      {
        text: { for_each: "'abc'" },
        object: { for_each: '{"a": 1}' },
        none: { for_each: 'none' },
        long: { for_each: [1, 2, 3] },
      },
      { on_failure: 'continue' },
    );
    await h.idle();
    const errors = await Promise.all(
      ['text', 'object', 'none', 'long'].map(async (id) => (await h.task(run, id)).error),
    );
    expect(errors.map((error) => (JSON.parse(error ?? '') as { message: string }).message)).toEqual([
      '`for_each` gave a string, not a list',
      '`for_each` gave an object, not a list',
      '`for_each` gave nothing, not a list',
      '`for_each` gave 3 items; at most 2 are allowed',
    ]);
    expect((await h.run(run)).status).toBe('FAILED');
    await expectSound(h, run);
  });

  // SPEC S4.9, S5.5
  it('an item that fails under fail_fast fails the map at once, skips what is below and cancels its siblings', async () => {
    const h = await open();
    const run = await h.start({ map: THREE, below: { needs: 'map' }, last: { needs: 'map', when: 'done' } });
    await h.idle();
    await h.fail(await itemLease(h, 1), HOPELESS);
    expect(await h.statuses(run)).toEqual({
      map: 'FAILED items_failed',
      'map[0]': 'CANCELLED run_stopped',
      'map[1]': 'FAILED terminal',
      'map[2]': 'CANCELLED run_stopped',
      below: 'SKIPPED upstream_failed',
      last: 'QUEUED',
    });
    expect(JSON.parse((await h.task(run, 'map')).error ?? '')).toMatchObject({
      class: 'handler',
      message: 'item 1 failed: no use',
    });
    await expectSound(h, run);
    expect((await h.finish(run)).status).toBe('FAILED');
    await expectSound(h, run);
  });

  it('an item that fails under continue lets its siblings finish, and then the map fails', async () => {
    const h = await open();
    const run = await h.start({ map: THREE, below: { needs: 'map' } }, { on_failure: 'continue' });
    await h.idle();
    const leases = await h.claim(10);
    await h.fail(leases[1] as never, HOPELESS);
    await h.idle();
    expect(await h.statuses(run)).toMatchObject({ map: 'PENDING', below: 'PENDING' });
    await h.complete(leases[0] as never);
    await h.fail(leases[2] as never, HOPELESS);
    await h.idle();
    expect(await h.statuses(run)).toMatchObject({
      map: 'FAILED items_failed',
      below: 'SKIPPED upstream_failed',
    });
    expect(JSON.parse((await h.task(run, 'map')).error ?? '')).toMatchObject({
      message: '2 of 3 items failed: item 1: no use',
    });
    await expectSound(h, run);
  });

  // SPEC S4.9, S2.1
  it('with collect a failed item is none in the list, its error is in `errors`, and the run succeeds', async () => {
    const h = await open();
    const run = await h.start({
      map: { ...THREE, on_item_failure: 'collect' },
      after: { with: { value: { all: '{{ tasks.map.output }}', errors: '{{ tasks.map.errors }}' } } },
    });
    await h.idle();
    const leases = await h.claim(10);
    const { task_run_id } = leases[1] ?? {};
    for (const lease of leases)
      await (lease.map_index === 1 ? h.fail(lease, HOPELESS) : h.complete(lease, lease.config.value));
    await h.idle();
    const { config } = await h.claimOne('after');
    expect(config.value).toEqual({
      all: ['a0', null, 'c2'],
      errors: [{ index: 1, task_run_id, status: 'FAILED', error: { ...HOPELESS, attempt: 1 } }],
    });
    expect(await h.task(run, 'map')).toMatchObject({ map_failed: 1, deps_ok: 2, deps_remaining: 0 });
    expect(await h.run(run)).toMatchObject({ n_failed: 0, n_tolerated: 1 });
    await expectSound(h, run);
  });

  // SPEC S4.2, S4.9, TRANSITIONS 28
  it('`if` and the gate are decided once, before there are items', async () => {
    const h = await open();
    const run = await h.start({
      no: { for_each: [1, 2], if: false },
      map: { for_each: [1, 2], if: true, gate: { message: 'all of them?', form: { type: 'integer' } } },
    });
    await h.idle();
    expect(await h.statuses(run)).toEqual({ no: 'SKIPPED condition_false', map: 'BLOCKED' });
    await h.engine.decide((await h.task(run, 'map')).id, { kind: 'approve', by: 'op', answer: 7 });
    expect(await h.statuses(run)).toMatchObject({ map: 'PENDING' });
    await expectSound(h, run);
    await h.idle();
    const leases = await h.claim(10);
    expect(leases.map(({ map_index }) => map_index)).toEqual([0, 1]);
    for (const lease of leases) await h.complete(lease);
    await h.idle();
    expect((await h.run(run)).status).toBe('SUCCESS');
    expect(
      (await h.eventsOf(run, 'map')).filter(({ map_index }) => map_index === null).map(({ type }) => type),
    ).toEqual(['task.blocked', 'task.approved', 'task.expanded', 'task.completed']);
    await expectSound(h, run);
  });

  // SPEC S4.2, S5.5
  it('a map with `when: done` goes on while the run stops, and one that failed lets `when: done` run', async () => {
    const h = await open();
    const run = await h.start({
      bad: {},
      clean: { needs: 'bad', when: 'done', for_each: ['x', 'y'] },
      last: {
        needs: 'clean',
        when: 'done',
        with: { value: '{{ tasks.clean.status }} {{ tasks.clean.errors | length }}' },
      },
    });
    await h.fail(await h.claimOne('bad'), HOPELESS);
    await h.idle();
    const [x, y] = await h.claimAll(2);
    await h.fail(x, HOPELESS);
    await h.idle();
    expect(await h.statuses(run)).toMatchObject({ clean: 'PENDING', 'clean[1]': 'RUNNING' });
    await h.complete(y);
    await h.idle();
    const last = await h.claimOne('last');
    expect(last.config.value).toBe('FAILED 1');
    await h.complete(last);
    expect((await h.run(run)).status).toBe('FAILED');
    await expectSound(h, run);
  });

  // SPEC S4.3, S1.2
  it('the `max_parallel` of a map is never exceeded, is used up, and keeps no other task waiting', async () => {
    const h = await open({ itemsChunk: 3 });
    const run = await h.start({
      map: { for_each: [0, 1, 2, 3, 4, 5, 6], max_parallel: 2 },
      other: { for_each: [0, 1, 2], max_parallel: 1 },
      after: { needs: 'first' },
      first: {},
    });
    await h.idle();
    await expectSound(h, run);
    const seen: number[] = [];
    for (let turn = 0; turn < 20; turn++) {
      const leases = await h.claim(10);
      const own = leases.filter(({ task_id }) => task_id === 'map');
      seen.push(own.length);
      expect(leases.filter(({ task_id }) => task_id === 'other').length).toBeLessThanOrEqual(1);
      // What stands behind the items of a full map is handed out all the same.
      if (turn === 0) expect(leases.map(({ task_id }) => task_id)).toContain('first');
      if (turn === 1) expect(leases.map(({ task_id }) => task_id)).toContain('after');
      await expectSound(h, run);
      if (leases.length === 0) break;
      await h.settle(...leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }) as const));
      await h.idle();
    }
    expect(seen.filter((count) => count > 0)).toEqual([2, 2, 2, 1]);
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  it('an item that waits for its next try, or for a person, gives its slot to another one', async () => {
    const h = await open();
    const run = await h.start({
      map: { for_each: [0, 1, 2], max_parallel: 1, retry: { initial: '10s', jitter: 0 } },
    });
    await h.idle();
    await h.fail(await itemLease(h, 0));
    await expectSound(h, run);
    await h.pause(await itemLease(h, 1));
    await expectSound(h, run);
    const third = await itemLease(h, 2);
    await h.leap(10_000);
    expect(await h.statuses(run)).toMatchObject({ 'map[0]': 'READY capacity', 'map[1]': 'WAITING_INPUT' });
    const asking = (await h.tasks(run)).find(({ question_id }) => question_id !== null);
    await h.engine.decide(asking?.id ?? '', { kind: 'approve', by: 'op' });
    await expectSound(h, run);
    await h.complete(third);
    await expectSound(h, run);
    expect((await h.finish(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  it('a map and its run both hold back: the smaller of the two counts', async () => {
    const h = await open();
    const run = await h.start({ map: { for_each: [0, 1, 2, 3, 4], max_parallel: 3 } }, { max_parallel: 2 });
    await h.idle();
    for (const expected of [2, 2, 1]) {
      const leases = await h.claim(10);
      expect(leases).toHaveLength(expected);
      await expectSound(h, run);
      for (const lease of leases) await h.complete(lease);
      await expectSound(h, run);
    }
    await h.idle();
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  it('a paused run hands out no items, and goes on where it was', async () => {
    const h = await open({ itemsChunk: 2 });
    const run = await h.start({ map: { for_each: [0, 1, 2, 3], max_parallel: 2 } });
    await h.engine.pauseRun(run, 'op');
    await h.idle();
    expect(await h.claim(10)).toEqual([]);
    await expectSound(h, run);
    await h.engine.resumeRun(run, 'op');
    expect((await h.finish(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  // TRANSITIONS 8, 11
  it('items may be questions for people or waits', async () => {
    const h = await open();
    const run = await h.start({
      ask: { for_each: ['one', 'two'], uses: 'approval', with: { message: 'take {{ item }}?' } },
      sleep: { for_each: [1, 2], uses: 'wait', with: { for: '{{ item }}s' } },
    });
    await h.idle();
    const asking = (await h.tasks(run)).filter(({ question_id }) => question_id !== null);
    expect(asking.map(({ question }) => (JSON.parse(question ?? '') as { message: string }).message)).toEqual(
      ['take one?', 'take two?'],
    );
    for (const [index, { id }] of asking.entries())
      await h.engine.decide(id, { kind: index === 0 ? 'approve' : 'reject', by: 'op' });
    await h.leap(2_000);
    expect(await h.output(run, 'ask')).toMatchObject([{ approved: true }, { approved: false }]);
    expect(await h.output(run, 'sleep')).toHaveLength(2);
    expect((await h.run(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  // SPEC S2.4, S14.5
  it('data of any shape passes through unchanged, lists and outputs too large for a row included', async () => {
    const h = await open();
    const long = 'x'.repeat(2_000);
    const items = [
      null,
      0,
      '',
      '{{ inputs }}',
      [1, [2]],
      { a: { b: [] } },
      '\u0000\ud800',
      ...Array(300).fill(long),
    ];
    const run = await h.start({
      list: {},
      map: { for_each: 'tasks.list.output', with: { value: { it: '{{ item }}' } } },
    });
    await h.complete(await h.claimOne('list'), items);
    await h.idle();
    for (let leases = await h.claim(200); leases.length > 0; leases = await h.claim(200)) {
      const said = leases.map(
        ({ lease_id, config }) => ({ kind: 'complete', lease_id, output: config.value }) as const,
      );
      await h.settle(...said);
    }
    await h.idle();
    expect(await h.output(run, 'map')).toEqual(items.map((it) => ({ it })));
    const { key, output_attempt } = await h.task(run, 'map');
    const artifacts = await h.store.read((tx) => tx.artifacts.ofTask(key));
    expect(artifacts.map(({ kind, attempt, blob_ref }) => [kind, attempt, blob_ref !== null])).toEqual([
      ['items', 0, true],
      ['output', output_attempt, true],
      ['errors', output_attempt, false],
    ]);
    await expectSound(h, run);
  });

  // SPEC S2.1
  it('a list may be written, filtered, or put together from templates', async () => {
    const h = await open();
    const run = await h.start(
      {
        filtered: { for_each: '{{ inputs.n | select("odd") | map("string") }}' },
        keys: { for_each: 'inputs.d.items()' },
        written: { for_each: ['{{ inputs.n[0] }}', { n: '{{ inputs.n | length }}' }, 3] },
      },
      { defaults: { uses: 'transform', with: { value: '{{ item }}' } }, inputs: { n: {}, d: {} } },
      { inputs: { n: [1, 2, 3], d: { a: 1, b: 2 } } },
    );
    await h.idle();
    const leases = await h.claim(100);
    for (const lease of leases) await h.complete(lease, lease.config.value);
    await h.idle();
    expect(await h.output(run, 'filtered')).toEqual(['1', '3']);
    expect(await h.output(run, 'keys')).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
    expect(await h.output(run, 'written')).toEqual([1, { n: 3 }, 3]);
  });

  // SPEC S2.4
  it('an item whose input cannot be rendered fails alone', async () => {
    const h = await open();
    const run = await h.start({
      map: { for_each: [{ a: 1 }, {}], on_item_failure: 'collect', with: { value: '{{ item.a }}' } },
    });
    await h.idle();
    const leases = await h.claim(10);
    expect(leases.map(({ map_index }) => map_index)).toEqual([0]);
    await h.complete(leases[0] as never, 'one');
    await h.idle();
    expect(await h.output(run, 'map')).toEqual(['one', null]);
    await expectSound(h, run);
  });

  // SPEC S12.1
  it('an expansion says its range once a chunk, and events of items carry their index', async () => {
    const h = await open({ itemsChunk: 2 });
    const run = await h.start({ map: { for_each: [0, 1, 2, 3, 4] } });
    await h.finish(run);
    const expanded = await h.events(run, 'task.expanded');
    expect(expanded.map(({ data }) => [data.first, data.last, data.total])).toEqual([
      [0, 1, 5],
      [2, 3, 5],
      [4, 4, 5],
    ]);
    const completed = await h.events(run, 'task.completed');
    expect(completed.map(({ map_index }) => map_index)).toEqual([0, 1, 2, 3, 4, null]);
    expect(completed.at(-1)?.data.items).toEqual({ total: 5, succeeded: 5, failed: 0 });
  });

  // SPEC S4.10
  it('a map can be added to an open run', async () => {
    const h = await open();
    const { id } = await h.engine.startOpenRun({}, { caller: 'test' });
    const { tasks } = await canonical({
      name: 'x',
      tasks: { map: { for_each: ['p', 'q'], with: { value: '{{ item }}' } } },
    });
    await h.engine.enqueue(id, [{ id: 'map', task: tasks.map as never }], { caller: 'test' });
    await h.idle();
    const leases = await h.claim(10);
    expect(leases.map(({ config }) => config.value)).toEqual(['p', 'q']);
    for (const lease of leases) await h.complete(lease, lease.config.value);
    await h.idle();
    expect(await h.output(id, 'map')).toEqual(['p', 'q']);
    expect((await h.run(id)).status).toBe('SUCCESS');
    await expectSound(h, id);
  });

  // SPEC S12.6
  it('retention removes a map with its items, lists and outputs', async () => {
    const h = await open({ retentionMs: 1_000 });
    const run = await h.start({ map: { for_each: [1, 2, 3] } });
    await h.finish(run);
    const rows = await h.tasks(run);
    await h.leap(3_600_000);
    expect(await h.store.read((tx) => tx.runs.byId(run))).toBeNull();
    expect(await h.store.read((tx) => tx.tasks.byKeys(rows.map(({ key }) => key)))).toEqual([]);
    for (const { key } of rows) expect(await h.store.read((tx) => tx.artifacts.ofTask(key))).toEqual([]);
  });

  // SPEC S4.9, S4.3
  it('ten thousand items are made in chunks, and their outputs are in order', async () => {
    const h = await open();
    const run = await h.start({ map: { for_each: 'range(10000)', with: { value: '{{ item }}' } } });
    await h.idle();
    expect(await h.run(run)).toMatchObject({ n_ready: 9_000, n_queued: 1_000 });
    expect(await h.events(run, 'task.expanded')).toHaveLength(20);
    for (let leases = await h.claim(500); leases.length > 0; leases = await h.claim(500))
      await h.settle(
        ...leases.map(
          ({ lease_id, config }) => ({ kind: 'complete', lease_id, output: config.value }) as const,
        ),
      );
    await h.idle();
    expect(await h.output(run, 'map')).toEqual(Array.from({ length: 10_000 }, (_, index) => index));
    expect(await h.run(run)).toMatchObject({ status: 'SUCCESS', n_success: 10_001 });
  }, 120_000);
});
