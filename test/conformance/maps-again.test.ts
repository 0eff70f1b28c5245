/** Maps that are stopped in the middle, retried, run again with another list, or replayed item by item (SPEC S5.5, S5.7, S5.8). */
import { expect, it } from 'vitest';
import type { Harness } from '../support/harness.ts';
import { HOPELESS } from '../support/harness.ts';
import { conformance, expectSound, refusal } from './suite.ts';

const BY = { resetAttempts: true, by: 'op' };

/** Ends whatever can be claimed: items with these indexes badly, all others with their own input. */
async function work(h: Harness, bad: readonly number[] = []): Promise<number[]> {
  const done: number[] = [];
  for (;;) {
    await h.idle();
    const leases = await h.claim(100);
    if (leases.length === 0) return done;
    done.push(...leases.flatMap(({ map_index }) => map_index ?? []));
    await h.settle(
      ...leases.map(({ lease_id, map_index, config }) =>
        bad.includes(map_index ?? -1)
          ? ({ kind: 'fail', lease_id, failure: HOPELESS } as const)
          : ({ kind: 'complete', lease_id, output: config.value } as const),
      ),
    );
  }
}

async function item(h: Harness, run: string, index: number) {
  const found = (await h.tasks(run)).find(({ map_index }) => map_index === index);
  if (found === undefined) throw new Error(`there is no item ${index}`);
  return found;
}

/** One turn of the follow-ups: the list, then a chunk of items for each. */
async function turn(h: Harness, times: number): Promise<void> {
  for (let count = 0; count < times; count++) await h.engine.runOnce();
}

const LIST = { for_each: '{{ inputs.list }}', with: { value: '{{ item }}' } };
const INPUTS = { inputs: { list: { type: 'array' } } };
const ABCDE = { inputs: { list: ['a', 'b', 'c', 'd', 'e'] } };

conformance('maps again', (open) => {
  // SPEC S5.8
  it('a cancel in the middle of an expansion ends it, and no item is made afterwards', async () => {
    const h = await open({ itemsChunk: 2 });
    const run = await h.start({ map: LIST, below: { needs: 'map' } }, INPUTS, ABCDE);
    await turn(h, 2);
    const made = (await h.tasks(run)).length;
    expect(made).toBeGreaterThan(2);
    expect(made).toBeLessThan(7);
    await h.engine.cancelRun(run, 'op');
    await expectSound(h, run);
    await h.idle();
    expect(await h.tasks(run)).toHaveLength(made);
    expect((await h.run(run)).status).toBe('CANCELLED');
    await expectSound(h, run);
    // What was made and what was not: the retry makes it whole.
    await h.engine.retryRun(run, 'op');
    await work(h);
    expect(await h.output(run, 'map')).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect((await h.run(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  // SPEC S5.5
  it('a failure under fail_fast in the middle of an expansion ends it', async () => {
    const h = await open({ itemsChunk: 2 });
    const run = await h.start({ map: LIST, below: { needs: 'map' } }, INPUTS, ABCDE);
    await turn(h, 2);
    const [first] = await h.claim(1);
    await h.fail(first as never, HOPELESS);
    await expectSound(h, run);
    await h.idle();
    const statuses = await h.statuses(run);
    expect(statuses).toMatchObject({ map: 'FAILED items_failed', below: 'SKIPPED upstream_failed' });
    expect(Object.keys(statuses)).not.toContain('map[4]');
    expect((await h.run(run)).status).toBe('FAILED');
    await expectSound(h, run);
  });

  // SPEC S4.9, S4.6
  it('an expansion goes on in another process where it stood', async () => {
    const h = await open({ itemsChunk: 2 });
    const run = await h.start({ map: LIST }, INPUTS, ABCDE);
    for (let restarts = 0; restarts < 5; restarts++) {
      await turn(h, 1);
      await h.restart();
      await expectSound(h, run);
    }
    await work(h);
    expect(await h.output(run, 'map')).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(await h.events(run, 'task.expanded')).toHaveLength(3);
    await expectSound(h, run);
  });

  // SPEC S5.7, TRANSITIONS 35
  it('a retry of the run runs only the items that did not succeed, with the same list', async () => {
    const h = await open({ itemsChunk: 2 });
    const run = await h.start(
      { map: { ...LIST, max_parallel: 2 }, below: { with: { value: '{{ tasks.map.output }}' } } },
      { ...INPUTS, on_failure: 'continue' },
      ABCDE,
    );
    expect(await work(h, [1, 4])).toEqual([0, 1, 2, 3, 4]);
    expect((await h.run(run)).status).toBe('FAILED');
    const kept = await item(h, run, 0);
    await h.engine.retryRun(run, 'op');
    await expectSound(h, run);
    expect(await work(h)).toEqual([1, 4]);
    expect(await h.output(run, 'below')).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect((await h.run(run)).status).toBe('SUCCESS');
    expect(await item(h, run, 0)).toEqual(kept);
    await expectSound(h, run);
  });

  it('a retry keeps failures that a succeeded map has collected', async () => {
    const h = await open();
    const run = await h.start(
      { map: { ...LIST, on_item_failure: 'collect' }, bad: {} },
      { ...INPUTS, on_failure: 'continue' },
      ABCDE,
    );
    await h.fail(await h.claimOne('bad'), HOPELESS);
    await work(h, [2]);
    expect((await h.run(run)).status).toBe('FAILED');
    await h.engine.retryRun(run, 'op');
    expect(await work(h)).toEqual([]);
    expect(await h.output(run, 'map')).toEqual(['a', 'b', null, 'd', 'e']);
    expect((await h.run(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  // SPEC S5.7, TRANSITIONS 36, 38
  it('a rerun works the list out again: items beyond a shorter one are superseded, a longer one has new ones', async () => {
    const h = await open({ itemsChunk: 2 });
    const run = await h.start({
      list: {},
      map: { for_each: 'tasks.list.output', with: { value: '{{ item }}' }, max_parallel: 2 },
      below: { with: { value: '{{ tasks.map.output }}' } },
    });
    for (const list of [['a', 'b', 'c'], ['x'], [], ['p', 'q', 'r', 's', 't']]) {
      await h.complete(await h.claimOne('list'), list);
      expect(await work(h)).toEqual(list.map((_, index) => index));
      expect(await h.output(run, 'below')).toEqual(list);
      expect((await h.run(run)).status).toBe('SUCCESS');
      const items = (await h.tasks(run)).filter(({ map_index }) => map_index !== null);
      expect(items.filter(({ reason }) => reason === 'superseded').map(({ map_index }) => map_index)).toEqual(
        items.slice(list.length).map(({ map_index }) => map_index),
      );
      await expectSound(h, run);
      await h.engine.rerunFrom(run, 'list', 'op');
      await expectSound(h, run);
    }
  });

  it('a rerun after which the map does not run leaves nothing of its old items', async () => {
    const h = await open({ itemsChunk: 2 });
    const run = await h.start(
      {
        list: {},
        map: {
          for_each: 'tasks.list.output.list',
          if: 'tasks.list.output.go',
          with: { value: '{{ item }}' },
        },
      },
      { on_failure: 'continue' },
    );
    await h.complete(await h.claimOne('list'), { go: true, list: [1, 2, 3] });
    await work(h, [1]);
    expect((await h.run(run)).status).toBe('FAILED');
    await h.engine.rerunFrom(run, 'list', 'op');
    await h.complete(await h.claimOne('list'), { go: false });
    await h.idle();
    expect(await h.statuses(run)).toEqual({
      list: 'SUCCESS',
      map: 'SKIPPED condition_false',
      'map[0]': 'SKIPPED superseded',
      'map[1]': 'SKIPPED superseded',
      'map[2]': 'SKIPPED superseded',
    });
    expect((await h.run(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  // SPEC S5.6, TRANSITIONS 37
  it('a dead item is replayed by itself, and its map and what was skipped below go on with it', async () => {
    const h = await open();
    const run = await h.start(
      { map: LIST, below: { needs: 'map' } },
      { ...INPUTS, on_failure: 'continue' },
      ABCDE,
    );
    await work(h, [1, 3]);
    expect(await h.engine.replayTask((await item(h, run, 1)).id, BY)).toBe(2);
    await expectSound(h, run);
    expect(await work(h)).toEqual([1]);
    expect(await h.statuses(run)).toMatchObject({
      map: 'FAILED items_failed',
      below: 'SKIPPED upstream_failed',
    });
    await h.engine.replayTask((await item(h, run, 3)).id, BY);
    expect(await work(h)).toEqual([3]);
    expect(await h.output(run, 'map')).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect((await h.run(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  it('a dead item is replayed while its siblings are still at work', async () => {
    const h = await open();
    const run = await h.start({ map: LIST }, { ...INPUTS, on_failure: 'continue' }, ABCDE);
    await h.idle();
    const leases = await h.claim(10);
    await h.fail(leases[0] as never, HOPELESS);
    await h.engine.replayTask((await item(h, run, 0)).id, BY);
    await expectSound(h, run);
    for (const lease of leases.slice(1)) await h.complete(lease, lease.config.value);
    await h.idle();
    expect(await h.statuses(run)).toMatchObject({ map: 'PENDING', 'map[0]': 'QUEUED' });
    await work(h);
    expect(await h.output(run, 'map')).toEqual(['a', 'b', 'c', 'd', 'e']);
    await expectSound(h, run);
  });

  it('a parent that is replayed while a `when: done` map waits for its items is not counted among them', async () => {
    const h = await open();
    const run = await h.start(
      { bad: {}, map: { ...LIST, needs: 'bad', when: 'done' } },
      { ...INPUTS, on_failure: 'continue' },
      ABCDE,
    );
    await h.fail(await h.claimOne('bad'), HOPELESS);
    await h.idle();
    const leases = await h.claim(10);
    await h.engine.replayTask((await h.task(run, 'bad')).id, BY);
    await h.complete(await h.claimOne('bad'));
    await expectSound(h, run);
    for (const lease of leases) {
      expect(await h.statuses(run)).toMatchObject({ map: 'PENDING' });
      await h.complete(lease, lease.config.value);
      await expectSound(h, run);
    }
    await h.idle();
    expect(await h.output(run, 'map')).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  it('a task that was told of the end of a map waits for it again when an item is replayed', async () => {
    const h = await open();
    const run = await h.start(
      { other: { priority: 1 }, map: LIST, join: { needs: ['map', 'other'], when: 'done' } },
      { ...INPUTS, on_failure: 'continue' },
      ABCDE,
    );
    const other = await h.claimOne('other');
    await work(h, [1]);
    expect(await h.statuses(run)).toMatchObject({ map: 'FAILED items_failed', join: 'PENDING' });
    await h.engine.replayTask((await item(h, run, 1)).id, BY);
    await expectSound(h, run);
    await h.complete(other);
    expect((await h.task(run, 'join')).status).toBe('PENDING');
    await work(h);
    expect((await h.run(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  it('an item that a succeeded map has collected is replayed with everything that used its list', async () => {
    const h = await open();
    const run = await h.start(
      {
        map: { ...LIST, on_item_failure: 'collect' },
        below: { with: { value: '{{ tasks.map.output }} {{ tasks.map.errors | length }}' } },
      },
      INPUTS,
      ABCDE,
    );
    await work(h, [2]);
    expect(await h.output(run, 'below')).toBe('["a","b",null,"d","e"] 1');
    await h.engine.replayTask((await item(h, run, 2)).id, BY);
    await expectSound(h, run);
    expect(await work(h)).toEqual([2]);
    expect(await h.output(run, 'below')).toBe('["a","b","c","d","e"] 0');
    expect((await h.run(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  it('an item of a list that was never made whole is not replayed by itself', async () => {
    const h = await open({ itemsChunk: 2 });
    const run = await h.start({ map: LIST }, INPUTS, ABCDE);
    await turn(h, 2);
    const [first] = await h.claim(1);
    await h.fail(first as never, HOPELESS);
    await h.idle();
    expect(await refusal(h.engine.replayTask((await item(h, run, 0)).id, BY))).toBe('NOT_RETRYABLE');
    await h.engine.replayTask((await h.task(run, 'map')).id, BY);
    await work(h);
    expect(await h.output(run, 'map')).toEqual(['a', 'b', 'c', 'd', 'e']);
    await expectSound(h, run);
  });

  // SPEC S5.8, TRANSITIONS 13
  it('a map that is cancelled takes its items along; an item that is cancelled takes its map along', async () => {
    const h = await open({ itemsChunk: 2 });
    const run = await h.start(
      { one: LIST, two: LIST, below: { needs: 'two' } },
      { ...INPUTS, on_failure: 'continue' },
      ABCDE,
    );
    await h.idle();
    await h.engine.cancelTask((await h.task(run, 'one')).id);
    await expectSound(h, run);
    await h.idle();
    const two = (await h.tasks(run)).find(({ task_id, map_index }) => task_id === 'two' && map_index === 3);
    await h.engine.cancelTask(two?.id ?? '');
    await work(h);
    expect(await h.statuses(run)).toMatchObject({
      one: 'CANCELLED cancelled',
      'one[0]': 'CANCELLED cancelled',
      'one[4]': 'CANCELLED cancelled',
      two: 'CANCELLED items_cancelled',
      'two[0]': 'SUCCESS',
      'two[3]': 'CANCELLED cancelled',
      below: 'SKIPPED upstream_cancelled',
    });
    await expectSound(h, run);
  });

  // SPEC S3.4
  it('the sweep finds a map whose expansion was lost, and one whose count is wrong', async () => {
    const h = await open({ itemsChunk: 2 });
    const run = await h.start({ map: LIST }, INPUTS, ABCDE);
    await turn(h, 2);
    const { key } = await h.run(run);
    await h.engine.context.committer.commit(async (each) => {
      const [row] = await each.runs([key]);
      const cursors = await each.tx.cursors.ofRun(key);
      await each.tx.cursors.remove(cursors.map((cursor) => cursor.key));
      if (row !== undefined) {
        row.n_cursors = 0;
        each.changeRun(row);
      }
    });
    for (let leases = await h.claim(9); leases.length > 0; leases = await h.claim(9))
      for (const lease of leases) await h.complete(lease, lease.config.value);
    expect(await h.store.read((tx) => tx.tasks.limbo(10))).toHaveLength(1);
    await work(h);
    expect(await h.output(run, 'map')).toEqual(['a', 'b', 'c', 'd', 'e']);
    await expectSound(h, run);
  });
});
