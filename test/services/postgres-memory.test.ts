/** What a process remembers of runs on Postgres is true, or is noticed not to be (docs/decisions/0011). */
import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import { STORES } from '../conformance/stores.ts';
import { expectSound } from '../conformance/suite.ts';
import { Harness } from '../support/harness.ts';

const place = inject('postgres');
const skipped = 'reason' in place ? `, skipped: ${place.reason}` : '';
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Fails while nobody waits for a lock. */
const SOMEBODY_WAITS =
  "do $$ begin if not exists (select from pg_locks where not granted) then raise 'nobody waits'; end if; end $$";
const CHAIN = { a: {}, b: { needs: 'a' }, c: { needs: 'b' } };

/** Statements of a process since it was last asked. */
async function counted(): Promise<{ h: Harness; taken: () => string[] }> {
  let names: string[] = [];
  const [kind] = STORES;
  if (kind === undefined) throw new TypeError('there is a store');
  const h = await Harness.on(kind, { onStatement: (name) => names.push(name) });
  closing.push(() => h.close());
  const taken = (): string[] => {
    const all = names;
    names = [];
    return all;
  };
  return { h, taken };
}

describe.skipIf(skipped !== '')(`postgres: what is remembered${skipped}`, () => {
  // DESIGN "The hot path" 1
  it('a step of a run that this process knows reads nothing', async () => {
    const { h, taken } = await counted();
    const run = await h.start(CHAIN);
    const lease = await h.claimOne('a');
    taken();
    const settlements = [{ kind: 'complete', lease_id: lease.lease_id, output: 1 } as const];
    await h.source.next({ limit: 1, settlements, signal: AbortSignal.abort() });
    const names = taken();
    expect(names).toContain('runs.expect');
    expect(names.filter((name) => /by_keys|runs\.lock|children/.test(name))).toEqual([]);
    await expectSound(h, run);
  });

  // I1
  it('what another process has done is noticed, also where only a task has changed', async () => {
    const { h } = await counted();
    const other = await h.another();
    const run = await h.start(CHAIN);
    const lease = await h.claimOne('a');
    h.clock.advance(5_000);
    const before = (await h.task(run, 'a')).lease_expires_at ?? 0;
    expect(await other.beat(lease)).toMatchObject({ order: 'continue' });
    await h.beat(lease, { message: 'still here' });
    const { lease_expires_at, message } = await h.task(run, 'a');
    expect(lease_expires_at).toBeGreaterThan(before);
    expect(message).toBe('still here');
    await other.complete(lease);
    expect(await h.complete(lease)).toMatchObject({ ok: true, status: 'SUCCESS' });
    for (const [process, task_id] of [
      [h, 'b'],
      [other, 'c'],
    ] as const) {
      await process.complete(await process.claimOne(task_id));
      await expectSound(h, run);
    }
    expect(await other.run(run)).toMatchObject({ status: 'SUCCESS', n_success: 3 });
  });

  // I1, SPEC S5.8
  it('a run that another process has cancelled is not worked on from memory', async () => {
    const { h, taken } = await counted();
    const other = await h.another();
    const run = await h.start(CHAIN);
    const lease = await h.claimOne('a');
    await other.engine.cancelRun(run, 'me');
    taken();
    expect(await h.complete(lease)).toMatchObject({ ok: false, code: 'STALE_LEASE' });
    expect(taken().filter((name) => name === 'runs.expect' || name === 'runs.lock')).toEqual([
      'runs.expect',
      'runs.lock',
    ]);
    await expectSound(h, run);
  });

  // SPEC S14.7
  it('a transaction that fails leaves nothing behind that would be taken for true', async () => {
    const { h } = await counted();
    const run = await h.start(CHAIN);
    const { key } = await h.task(run, 'a');
    const spoil = h.store.write(async (tx) => {
      const [task] = await tx.tasks.byKeys([key]);
      const [owner] = await tx.runs.byKeys([task?.run_key ?? 0]);
      if (task === undefined || owner === undefined) throw new TypeError('the task is there');
      task.message = 'never';
      owner.n_success = 99;
      await tx.tasks.save([task]);
      await tx.runs.save([owner]);
      throw new TypeError('changed my mind');
    });
    await expect(spoil).rejects.toThrow('changed my mind');
    await h.complete(await h.claimOne('a'));
    expect(await h.task(run, 'a')).toMatchObject({ status: 'SUCCESS', message: null });
    expect(await h.run(run)).toMatchObject({ n_success: 1 });
    await expectSound(h, run);
  });

  // SPEC S4.10
  it('new rows that move on before somebody asks the store are remembered as they were written', async () => {
    const { h } = await counted();
    const run = await h.start({ a: {} });
    const { key: run_key } = await h.run(run);
    const model = await h.task(run, 'a');
    const keys = await h.store.write(async (tx) => {
      await tx.runs.byKeys([run_key]);
      const rows = ['x', 'y'].map((task_id) => ({ ...model, key: 0, id: `${model.id}-${task_id}`, task_id }));
      const given = await tx.tasks.insert(rows);
      for (const [index, row] of rows.entries()) {
        row.key = given[index] ?? 0;
        row.message = `moved on ${index}`;
      }
      // Whoever asks now finds them.
      expect(await tx.tasks.byTaskIds(run_key, ['x'])).toMatchObject([{ message: 'moved on 0' }]);
      await tx.tasks.save(rows);
      return given;
    });
    const told = async (tx: Parameters<Parameters<typeof h.store.write>[0]>[0]) =>
      (await tx.tasks.byKeys(keys)).map(({ message }) => message);
    expect(await h.store.write(told)).toEqual(['moved on 0', 'moved on 1']);
    expect(await h.store.read(told)).toEqual(['moved on 0', 'moved on 1']);
  });

  // I1, SPEC S14.7
  it.each([
    { other: 'commits', mayLock: true },
    { other: 'takes it back', mayLock: false },
  ])(
    'a step that waits for another writer of its run, who $other, is proven by what it finds then',
    async (of) => {
      const { h, taken } = await counted();
      const { store } = await h.another();
      const run = await h.start(CHAIN);
      const lease = await h.claimOne('a');
      const { key } = await h.task(run, 'a');
      let release = (): void => {};
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      const held = new Promise<void>((isHeld, fail) => {
        const writing = store.write(async (tx) => {
          const [task] = await tx.tasks.byKeys([key]);
          if (task === undefined) throw new TypeError('the task is there');
          task.message = 'from elsewhere';
          await tx.tasks.save([task]);
          isHeld();
          await released;
          if (!of.mayLock) throw new TypeError('changed my mind');
        });
        writing.catch((error: Error) => (error.message === 'changed my mind' ? null : fail(error)));
      });
      await held;
      taken();
      const completing = h.complete(lease);
      await vi.waitFor(() => h.opened.execute?.(SOMEBODY_WAITS), { timeout: 5_000, interval: 10 });
      release();
      expect(await completing).toMatchObject({ ok: true, status: 'SUCCESS' });
      expect(taken().includes('runs.lock')).toBe(of.mayLock);
      expect((await h.task(run, 'a')).message).toBe(of.mayLock ? 'from elsewhere' : null);
      await expectSound(h, run);
    },
  );

  it('a run that is changed by hand and written is read again', async () => {
    const { h } = await counted();
    const run = await h.start(CHAIN);
    const { key, run_key } = await h.task(run, 'b');
    await h.opened.execute?.(`update task_runs set timeout_ms = 1234 where key = ${key}`);
    await h.opened.execute?.(`update runs set version = version where key = ${run_key}`);
    await h.complete(await h.claimOne('a'));
    const [lease] = await h.claim(1);
    expect(lease).toMatchObject({ task_id: 'b', timeout_ms: 1234 });
  });

  // SPEC S4.4
  it('with more tasks than are remembered, work goes on', async () => {
    const { h, taken } = await counted();
    const tasks = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, n) => [`t${n}`, n === 0 ? {} : { needs: 't0' }]),
    );
    const runs: string[] = [];
    for (let count = 0; count < 8; count++) runs.push(await h.start(tasks));
    taken();
    for (const lease of await h.claim(8)) await h.complete(lease);
    expect(taken()).toContain('tasks.by_keys');
    for (const lease of await h.claim(8)) expect(await h.complete(lease)).toMatchObject({ ok: true });
    await expectSound(h, runs[0] ?? '');
  });
});
