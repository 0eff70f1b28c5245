/** Messages for a broker: written with the change itself, claimed by attempt, never lost (SPEC S10.1, S10.6, I9). */
import { expect, it } from 'vitest';
import type { OutboxListRow } from '../../src/stores/rows.ts';
import { CRASHED, type Harness } from '../support/harness.ts';
import { conformance, expectSound } from './suite.ts';

const messages = (h: Harness): Promise<OutboxListRow[]> =>
  h.store.read((tx) => tx.outbox.list({ after: 0, limit: 10_000 }));

/** Messages by task, as `task attempt due`. */
async function told(h: Harness): Promise<string[]> {
  return (await messages(h)).map(
    ({ task_id, attempt, due }) => `${task_id} ${attempt} ${due === 1 ? 'due' : 'later'}`,
  );
}

/** Claims what a message says. */
async function hear(h: Harness, task_run_id: string, attempt: number) {
  const { leases } = await h.source.next({
    limit: 1,
    settlements: [],
    signal: AbortSignal.abort(),
    messages: [{ task_run_id, run_id: '', attempt }],
  });
  return leases;
}

/** Takes all that is due and records it as sent. */
async function publish(h: Harness): Promise<string[]> {
  const now = h.clock.now();
  return h.store.write(async (tx) => {
    await tx.outbox.wake(now, 1_000);
    const taken = await tx.outbox.take({
      now,
      owner: 'me',
      until: now + 1_000,
      limit: 1_000,
      window: 10_000,
    });
    const sent = taken.map(({ task_key }) => task_key);
    const none = { deferred: [], dead: [], released: [], renewed: { keys: [], until: 0 } };
    await tx.outbox.settle({ owner: 'me', now, sent, ...none });
    return taken.map(({ task_run_id, attempt }) => `${task_run_id} ${attempt}`);
  });
}

conformance('the outbox', (open) => {
  // SPEC S10.1
  it('every entry into the queue leaves a message in its transaction', async () => {
    const h = await open({ hasBroker: true });
    const run = await h.start({ a: {}, b: { needs: ['a'] } });
    expect(await told(h)).toEqual(['a 1 due']);
    const lease = await h.claimOne('a');
    expect(await told(h)).toEqual([]);
    await h.complete(lease);
    expect(await told(h)).toEqual(['b 1 due']);
    const b = await h.claimOne('b');
    await h.release(b);
    expect(await told(h)).toEqual(['b 2 due']);
    await h.pause(await h.claimOne('b'));
    expect(await told(h)).toEqual([]);
    await h.engine.decide((await h.task(run, 'b')).id, { kind: 'approve', by: 'me', answer: 1 });
    expect(await told(h)).toEqual(['b 3 due']);
    await h.engine.cancelRun(run, 'me');
    expect(await told(h)).toEqual([]);
    await h.engine.retryRun(run, 'me');
    expect(await told(h)).toEqual(['b 3 due']);
    await expectSound(h, run);
  });

  // SPEC S10.1
  it('without a broker nothing about it is written or asked', async () => {
    const statements: string[] = [];
    const h = await open({ onStatement: (name) => statements.push(name) });
    const run = await h.start({ a: {}, b: { needs: ['a'] } });
    await h.finish(run);
    expect(statements.filter((name) => /outbox|dead_letters/.test(name))).toEqual([]);
    expect(await messages(h)).toEqual([]);
  });

  // SPEC S10.1
  it('a change that is rolled back leaves no message', async () => {
    let isArmed = false;
    const h = await open({
      hasBroker: true,
      onStatement: (name) => {
        if (isArmed && name === 'commit') throw new TypeError('killed');
      },
    });
    isArmed = true;
    await expect(h.start({ a: {} })).rejects.toThrow('killed');
    isArmed = false;
    expect(await messages(h)).toEqual([]);
    await h.start({ a: {} });
    expect(await told(h)).toEqual(['a 1 due']);
  });

  // SPEC S10.1, S5.3
  it('a retry is told of when it is scheduled, and sent when it can be claimed', async () => {
    const h = await open({ hasBroker: true });
    const run = await h.start({ a: { retry: { initial: '10s', jitter: 0 } } });
    await h.fail(await h.claimOne('a'), CRASHED);
    expect(await told(h)).toEqual(['a 2 later']);
    const [message] = await messages(h);
    const task = await h.task(run, 'a');
    expect(message?.available_at).toBe(task.not_before);
    expect(await publish(h)).toEqual([]);
    h.clock.advance(10_000);
    // Its time has come and its timer has not fired: nobody could claim it.
    expect(await publish(h)).toEqual([]);
    expect(await told(h)).toEqual(['a 2 due']);
    await h.idle();
    expect(await publish(h)).toEqual([`${task.id} 2`]);
    expect(await told(h)).toEqual([]);
    expect(await hear(h, task.id, 2)).toHaveLength(1);
    await expectSound(h, run);
  });

  // SPEC S10.1
  it('a message starts its own attempt or nothing', async () => {
    const h = await open({ hasBroker: true });
    const run = await h.start({ a: {} });
    const { id } = await h.task(run, 'a');
    expect(await hear(h, id, 2)).toEqual([]);
    expect(await hear(h, 'no-such-task', 1)).toEqual([]);
    const [lease] = await hear(h, id, 1);
    expect(lease?.attempt).toBe(1);
    expect(await hear(h, id, 1)).toEqual([]);
    expect(await hear(h, id, 2)).toEqual([]);
    await h.release(lease ?? { lease_id: '' });
    expect(await hear(h, id, 1)).toEqual([]);
    expect((await hear(h, id, 2))[0]?.attempt).toBe(2);
    await expectSound(h, run);
  });

  // SPEC S10.1, S4.11
  it('a message of a paused run starts nothing; resuming tells of the task again', async () => {
    const h = await open({ hasBroker: true });
    const run = await h.start({ a: {} });
    const { id } = await h.task(run, 'a');
    expect(await publish(h)).toEqual([`${id} 1`]);
    await h.engine.pauseRun(run, 'me');
    expect(await hear(h, id, 1)).toEqual([]);
    expect(await h.statuses(run)).toEqual({ a: 'READY paused' });
    await h.engine.resumeRun(run, 'me');
    expect(await told(h)).toEqual(['a 1 due']);
    expect(await publish(h)).toEqual([`${id} 1`]);
    expect(await hear(h, id, 1)).toHaveLength(1);
  });

  // SPEC S10.6
  it('many messages are claimed in one transaction', async () => {
    let commits = 0;
    const h = await open({
      hasBroker: true,
      onStatement: (name) => {
        if (name === 'commit') commits += 1;
      },
    });
    const run = await h.start(Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`t${n}`, {}])));
    const tasks = await h.tasks(run);
    commits = 0;
    const { leases } = await h.source.next({
      limit: 50,
      settlements: [],
      signal: AbortSignal.abort(),
      messages: tasks.map(({ id }) => ({ task_run_id: id, run_id: run, attempt: 1 })),
    });
    expect(leases).toHaveLength(50);
    expect(commits).toBe(1);
  });

  // SPEC S10.2
  it('a message in hand is nobody else’s until its time is over', async () => {
    const h = await open({ hasBroker: true });
    await h.start({ a: {}, b: {} });
    const take = (owner: string) =>
      h.store.write((tx) =>
        tx.outbox.take({ now: h.clock.now(), owner, until: h.clock.now() + 1_000, limit: 1, window: 100 }),
      );
    const [first] = await take('one');
    const [second] = await take('two');
    expect(new Set([first?.task_run_id, second?.task_run_id]).size).toBe(2);
    expect(await take('three')).toEqual([]);
    h.clock.advance(1_000);
    expect(await take('three')).toEqual([first]);
  });

  // SPEC S10.2
  it('what a daemon says about a message that was replaced meanwhile changes nothing', async () => {
    const h = await open({ hasBroker: true });
    const run = await h.start({ a: {} });
    const now = h.clock.now();
    const taken = await h.store.write((tx) =>
      tx.outbox.take({ now, owner: 'slow', until: now + 1_000, limit: 1, window: 100 }),
    );
    await h.release(await h.claimOne('a'));
    const none = { deferred: [], dead: [], released: [], renewed: { keys: [], until: 0 } };
    const sent = taken.map(({ task_key }) => task_key);
    expect(await h.store.write((tx) => tx.outbox.settle({ owner: 'slow', now, sent, ...none }))).toEqual([]);
    expect(await told(h)).toEqual(['a 2 due']);
    await expectSound(h, run);
  });

  // SPEC S10.6
  it('higher priority is handed over first, then age', async () => {
    const h = await open({ hasBroker: true });
    await h.start({ low: {}, high: { priority: 5 }, next: {} });
    const now = h.clock.now();
    const take = () =>
      h.store.write((tx) => tx.outbox.take({ now, owner: 'me', until: now + 1_000, limit: 1, window: 100 }));
    const taken = [...(await take()), ...(await take()), ...(await take())];
    const names = new Map((await messages(h)).map(({ key, task_id }) => [key, task_id]));
    expect(taken.map(({ task_key }) => names.get(task_key))).toEqual(['high', 'low', 'next']);
  });

  // SPEC S10.6
  it('a mark is over when its task is claimed, by whomever, or told of again', async () => {
    const h = await open({ hasBroker: true });
    await h.start({ a: {}, b: {}, c: {} });
    const outstanding = (): Promise<number> =>
      h.store.write(async (tx) => {
        await tx.outbox.take({ now: 0, owner: 'nobody', until: 0, limit: 0, window: 0 });
        return (await tx.outbox.stats(0)).outstanding;
      });
    await publish(h);
    expect(await outstanding()).toBe(3);
    const [a, b] = await h.claimAll(2);
    expect(await outstanding()).toBe(1);
    await h.release(a);
    await h.complete(b);
    expect(await outstanding()).toBe(1);
    await publish(h);
    expect(await outstanding()).toBe(2);
  });

  // SPEC S10.6
  it('tasks of a process without the broker are told of, and stale messages dropped', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {} });
    expect(await told(h)).toEqual([]);
    const tidy = () => h.store.write((tx) => tx.outbox.tidy(h.clock.now(), 100));
    expect(await h.store.read((tx) => tx.outbox.isUntidy(h.clock.now()))).toBe(true);
    await tidy();
    expect((await told(h)).sort()).toEqual(['a 1 due', 'b 1 due']);
    expect(await h.store.read((tx) => tx.outbox.isUntidy(h.clock.now()))).toBe(false);
    await h.release(await h.claimOne('a'));
    expect(await h.store.read((tx) => tx.outbox.isUntidy(h.clock.now()))).toBe(true);
    await tidy();
    expect((await told(h)).sort()).toEqual(['a 2 due', 'b 1 due']);
    await expectSound(h, run);
  });

  // SPEC S10.3
  it('a message of a later version is left alone', async () => {
    const h = await open({ hasBroker: true });
    const run = await h.start({ a: {} });
    await h.opened.execute?.('update outbox set schema_version = 2');
    expect(await publish(h)).toEqual([]);
    expect(await h.store.read((tx) => tx.outbox.stats(h.clock.now()))).toMatchObject({
      depth: 1,
      unknown: 1,
    });
    await h.finish(run);
  });

  // SPEC S12.6
  it('messages go with the runs that are pruned', async () => {
    const h = await open({ hasBroker: true });
    const run = await h.start({ a: {} });
    const { task_key, now } = await h.store.write(async (tx) => {
      const at = h.clock.now();
      const [taken] = await tx.outbox.take({
        now: at,
        owner: 'me',
        until: at + 1_000,
        limit: 1,
        window: 100,
      });
      return { task_key: taken?.task_key ?? 0, now: at };
    });
    const dead = [{ task_key, retries: 5, last_error: 'no' }];
    await h.store.write((tx) =>
      tx.outbox.settle({
        owner: 'me',
        now,
        sent: [],
        deferred: [],
        dead,
        released: [],
        renewed: { keys: [], until: 0 },
      }),
    );
    expect(await h.store.read((tx) => tx.outbox.deadLetters({ after: 0, limit: 9 }))).toHaveLength(1);
    await h.finish(run);
    h.clock.advance(1_000);
    await h.engine.prune({ statuses: ['SUCCESS'], before: h.clock.now(), limit: 10, dryRun: false });
    expect(await h.store.read((tx) => tx.outbox.stats(h.clock.now()))).toMatchObject({ dead: 0, depth: 0 });
  });
});
