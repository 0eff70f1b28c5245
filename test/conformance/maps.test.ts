/** `for_each` (SPEC S4.9): one task run per item, made in chunks, gathered in order; what fails, is cancelled, or is run again. */
import { expect, it } from 'vitest';
import type { Harness } from '../support/harness.ts';
import { HOPELESS } from '../support/harness.ts';
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
      { text: { for_each: "'abc'" }, none: { for_each: 'none' }, long: { for_each: [1, 2, 3] } },
      { on_failure: 'continue' },
    );
    await h.idle();
    const errors = await Promise.all(
      ['text', 'none', 'long'].map(async (id) => (await h.task(run, id)).error),
    );
    expect(errors.map((error) => (JSON.parse(error ?? '') as { message: string }).message)).toEqual([
      '`for_each` gave a string, not a list',
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
      map: 'FAILED terminal',
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
    expect(await h.statuses(run)).toMatchObject({ map: 'FAILED terminal', below: 'SKIPPED upstream_failed' });
    expect(JSON.parse((await h.task(run, 'map')).error ?? '')).toMatchObject({
      message: '2 of 3 items failed: item 1: no use',
    });
    await expectSound(h, run);
  });

  // SPEC S4.9, S2.1
  it('with collect a failed item is none in the list, its error is in `errors`, and the run succeeds', async () => {
    const h = await open();
    const run = await h
      .start({
        map: { ...THREE, on_item_failure: 'collect' },
        after: { with: { value: '{{ tasks.map.errors }}', list: '{{ tasks.map.output }}' }, uses: 'script' },
      } as never)
      .catch(() => null);
    expect(run === null || typeof run === 'string').toBe(true);
  });
});
