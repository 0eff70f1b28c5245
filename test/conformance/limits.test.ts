/** Named limits (SPEC S8.1): never exceeded, never leaking, and nobody else kept waiting. */
import { expect, it } from 'vitest';
import type { Harness } from '../support/harness.ts';
import { conformance, expectSound, refusal } from './suite.ts';

const LEASE_MS = 30_000;
const gpu = { gpu: { concurrency: 1 } } as const;
const limited = { limits: ['gpu'] } as const;

/** What a task waits for, and where. */
async function waitOf(h: Harness, run: string, task_id: string): Promise<string> {
  const { status, waiting_for, limits } = await h.task(run, task_id);
  const { place } = JSON.parse(limits ?? '{"place":null}') as { place: string | null };
  return `${status} ${waiting_for} ${place}`;
}

/** An llm task that asks for about this many tokens: nine of the prompt and its frame, the rest for the answer. */
const call = (tokens: number, more: object = {}) => ({
  uses: 'llm',
  with: { model: 'offline/brief', prompt: 'hi', max_tokens: tokens - 25, ...more },
});

const use = { calls: 1, tokens_in: 1, tokens_out: 1, tokens_cached: 0, cost_usd: 0 };
const ONE_CALL = { tokens_in: 1, tokens_out: 1, models: { 'offline/brief': use } };

conformance('limits', (open) => {
  // SPEC S8.1
  it('a limit of one lets one in at a time, by priority and then age', async () => {
    const h = await open({ limits: gpu });
    const run = await h.start({ a: limited, b: { ...limited, priority: 5 }, c: limited });
    const [first] = await h.claim(3);
    expect(first?.task_id).toBe('b');
    expect(await waitOf(h, run, 'a')).toBe('READY limit gpu');
    expect(await h.claim(3)).toEqual([]);
    await expectSound(h, run);
    if (first) await h.complete(first);
    const a = await h.claimOne('a');
    expect(await h.claim(3)).toEqual([]);
    await h.complete(a);
    await h.claimOne('c');
    await expectSound(h, run);
  });

  // SPEC S8.1, S12.1
  it('a wait for a limit is told as it happens, with its name', async () => {
    const h = await open({ limits: gpu });
    const run = await h.start({ a: limited, b: limited });
    const a = await h.claimOne();
    await h.claim(1);
    await h.complete(a);
    await h.claimOne('b');
    const [queued, held, claimed] = await h.eventsOf(run, 'b');
    expect(queued?.type).toBe('task.queued');
    expect(held).toMatchObject({
      type: 'task.ready',
      data: { from: 'QUEUED', to: 'READY', reason: 'limit gpu' },
    });
    expect(claimed).toMatchObject({
      type: 'task.claimed',
      data: { from: 'READY', via: ['QUEUED'], attempt: 1 },
    });
    await expectSound(h, run);
  });

  // SPEC S8.1: keeps nobody else waiting
  it('a crowd that waits for a limit hides nothing behind it', async () => {
    const h = await open({ limits: gpu });
    const crowd = Object.fromEntries(
      Array.from({ length: 60 }, (_, n) => [`t${n}`, { ...limited, priority: 9 }]),
    );
    const run = await h.start({ ...crowd, free: {} }, { max_parallel: 3 });
    const taken = [];
    for (let turn = 0; turn < 4; turn++) taken.push(...(await h.claim(1)));
    expect(taken.map(({ task_id }) => task_id).sort()).toEqual(['free', 't0']);
    await expectSound(h, run);
  });

  // SPEC S8.1, S4.6: more than a chunk
  it('a crowd of more than a thousand is held back in chunks, and a task behind it still goes', async () => {
    const h = await open({ limits: gpu });
    const crowd = Object.fromEntries(Array.from({ length: 1_200 }, (_, n) => [`t${n}`, limited]));
    const run = await h.start({ first: {}, ...crowd, free: { priority: -1 } });
    const [first, t0] = await h.claim(2);
    expect([first?.task_id, t0?.task_id]).toEqual(['first', 't0']);
    for (let turn = 0; turn < 3 && (await h.task(run, 'free')).status !== 'RUNNING'; turn++) {
      await h.claim(1);
      await h.idle();
    }
    expect(await h.statuses(run)).toMatchObject({ free: 'RUNNING' });
    expect(await h.claim(1)).toEqual([]);
    await h.idle();
    const [held] = await h.store.read((tx) => tx.held.counts());
    expect(held).toEqual({ place: 'gpu', n: 1_199 });
    expect(await h.run(run)).toMatchObject({ n_ready: 0, n_queued: 0, n_cursors: 0 });
    await expectSound(h, run);
    // The slot that one gives back is taken by the next in the same step.
    const settlement = { kind: 'complete', lease_id: t0?.lease_id ?? '', output: 1 } as const;
    const { leases } = await h.source.next({
      limit: 1,
      settlements: [settlement],
      signal: AbortSignal.abort(),
    });
    expect(leases.map(({ task_id }) => task_id)).toEqual(['t1']);
    await expectSound(h, run);
  });

  // SPEC S8.1
  it('waiters of several runs go on in the order of priority and age', async () => {
    const h = await open({ limits: gpu });
    const one = await h.start({ a: limited, b: limited });
    const two = await h.start({ a: { ...limited, priority: 1 }, b: limited });
    const order: string[] = [];
    for (let turn = 0; turn < 8; turn++) {
      const leases = await h.claim(4);
      expect(leases.length).toBeLessThanOrEqual(1);
      for (const lease of leases) {
        order.push(`${lease.run_id === one ? 'one' : 'two'}.${lease.task_id}`);
        await expectSound(h, one);
        await h.complete(lease);
      }
    }
    expect(order).toEqual(['two.a', 'one.a', 'one.b', 'two.b']);
    for (const run of [one, two]) {
      expect((await h.run(run)).status).toBe('SUCCESS');
      await expectSound(h, run);
    }
  });

  // SPEC S8.1, I13: the slot is the lease
  it('a holder that is killed gives its slot back when its lease ends', async () => {
    const h = await open({ limits: gpu });
    const run = await h.start({ a: limited, b: limited });
    await h.claimOne();
    await h.pass(LEASE_MS - 1_000);
    expect(await h.claim(2)).toEqual([]);
    await h.pass(6_000);
    expect((await h.claim(2)).length).toBe(1);
    await expectSound(h, run);
  });

  // SPEC S8.1, S5.8
  it('a holder that is cancelled keeps its slot until its worker has said so', async () => {
    const h = await open({ limits: gpu });
    const run = await h.start({ a: limited, b: limited }, { on_failure: 'continue' });
    const a = await h.claimOne('a');
    await h.engine.cancelTask((await h.task(run, 'a')).id);
    expect(await h.claim(2)).toEqual([]);
    expect(await waitOf(h, run, 'b')).toBe('READY limit gpu');
    expect(await h.complete(a)).toMatchObject({ ok: false, code: 'STALE_LEASE' });
    expect((await h.claim(2)).map(({ task_id }) => task_id)).toEqual(['b']);
    await expectSound(h, run);
  });

  // SPEC S8.1, S5.8
  it('a cancelled holder that is never heard of again gives its slot back within one lease', async () => {
    const h = await open({ limits: gpu });
    const cancelled = await h.start({ a: limited });
    await h.claimOne('a');
    const run = await h.start({ b: limited });
    await h.engine.cancelRun(cancelled, 'test');
    h.clock.advance(LEASE_MS - 1);
    expect(await h.claim(2)).toEqual([]);
    h.clock.advance(1);
    expect((await h.claim(2)).map(({ task_id }) => task_id)).toEqual(['b']);
    await expectSound(h, run);
  });

  // SPEC S8.1, S4.4
  it('a claim whose reply was lost is repeated without a second slot', async () => {
    const h = await open({ limits: { gpu: { concurrency: 1, rate: '10/1m' } } });
    const run = await h.start({ a: limited, b: limited });
    const [first] = await h.claimRows({ claim_id: 'c', limit: 2 });
    const [again] = await h.claimRows({ claim_id: 'c', limit: 2 });
    expect(again?.lease_id).toBe(first?.lease_id);
    await expectSound(h, run);
    const [use] = await h.store.read((tx) => tx.limits.use([['gpu', 0]], h.clock.now()));
    expect(use).toMatchObject({ slots: 1, requests: 1 });
  });

  // SPEC S8.1
  it('a rate lets so many begin in any stretch of its length', async () => {
    const h = await open({ limits: { mail: { rate: '2/10s' } } });
    const tasks = Object.fromEntries(Array.from({ length: 5 }, (_, n) => [`t${n}`, { limits: ['mail'] }]));
    const run = await h.start(tasks);
    const begun: number[] = [];
    for (let second = 0; second < 25; second++) {
      const leases = await h.claim(5);
      for (const lease of leases) {
        begun.push(second);
        await h.complete(lease);
      }
      await expectSound(h, run);
      h.clock.advance(1_000);
    }
    expect(begun).toEqual([0, 0, 10, 10, 20]);
    expect((await h.run(run)).status).toBe('SUCCESS');
    await h.pass(20_000);
    expect(await h.store.read((tx) => tx.limits.aged('mail', h.clock.now(), h.clock.now()))).toBe(0);
  });

  // SPEC S8.1
  it('tokens are reserved before a call and corrected after it', async () => {
    const h = await open({ limits: { models: { tokens_per_minute: 1_000, models: ['offline/*'] } } });
    const run = await h.start({ a: call(600), b: call(600), c: call(300) });
    await h.idle();
    const [a, none] = await h.claim(3);
    expect([a?.task_id, none]).toEqual(['a', undefined]);
    expect(await waitOf(h, run, 'b')).toBe('READY limit models');
    // Behind b: a large request is not passed by small ones for ever.
    expect(await waitOf(h, run, 'c')).toBe('READY limit models');
    await expectSound(h, run);
    if (a) await h.complete(a, 'x', { tokens_in: 10, tokens_out: 90 });
    expect((await h.claim(3)).map(({ task_id }) => task_id)).toEqual(['b', 'c']);
    await expectSound(h, run);
  });

  // SPEC S8.1
  it('a lost worker keeps its reservation until it has aged', async () => {
    const h = await open({ limits: { models: { tokens_per_minute: 1_000, models: ['offline/*'] } } });
    const run = await h.start({ a: call(900), b: call(900) }, { on_failure: 'continue' });
    await h.idle();
    expect((await h.claim(2)).length).toBe(1);
    await h.pass(40_000);
    expect(await h.claim(2)).toEqual([]);
    await h.pass(25_000);
    expect((await h.claim(2)).length).toBe(1);
    await expectSound(h, run);
  });

  // SPEC S8.1
  it('a request that is larger than the limit fails at once', async () => {
    const h = await open({ limits: { models: { tokens_per_minute: 1_000, models: ['offline/*'] } } });
    const run = await h.start({ a: call(1_100) });
    await h.idle();
    expect(await h.claim(1)).toEqual([]);
    const task = await h.task(run, 'a');
    expect(task).toMatchObject({ status: 'FAILED', reason: 'terminal', attempt: 0, attempts_spent: 0 });
    expect(JSON.parse(task.error ?? '')).toMatchObject({ class: 'limit', code: 'LIMIT_IMPOSSIBLE' });
    expect((await h.run(run)).status).toBe('FAILED');
    await expectSound(h, run);
  });

  // SPEC S8.1
  it('requests are counted per call, repairs and fallbacks reserved, and the rest given back', async () => {
    const h = await open({ limits: { models: { requests_per_minute: 4, models: ['offline/brief'] } } });
    const output = { format: 'json', repair: 1 };
    const run = await h.start({
      a: { ...call(100), output },
      b: { ...call(100), output },
      c: { ...call(100), output },
    });
    await h.idle();
    const [a, b, c] = await h.claim(3);
    expect([a?.task_id, b?.task_id, c]).toEqual(['a', 'b', undefined]);
    if (a) await h.complete(a, {}, ONE_CALL);
    expect(await h.claim(3)).toEqual([]);
    if (b) await h.complete(b, {}, ONE_CALL);
    expect((await h.claim(3)).length).toBe(1);
    await expectSound(h, run);
  });

  // SPEC S8.1
  it('a task with two limits begins when both have room, and waits where it has none', async () => {
    const h = await open({ limits: { ...gpu, disk: { concurrency: 1 } } });
    const both = { limits: ['gpu', 'disk'] };
    const run = await h.start({ a: { limits: ['gpu'] }, b: { limits: ['disk'] }, c: both });
    const [a, b] = await h.claimAll(2);
    await h.claim(1);
    expect(await waitOf(h, run, 'c')).toBe('READY limit gpu');
    await h.complete(a);
    expect(await h.claim(1)).toEqual([]);
    expect(await waitOf(h, run, 'c')).toBe('READY limit disk');
    await expectSound(h, run);
    await h.complete(b);
    await h.claimOne('c');
    await expectSound(h, run);
  });

  // SPEC S8.1: a limit is raised
  it('waiters go on when a process configures a larger limit', async () => {
    const h = await open({ limits: gpu });
    const run = await h.start({ a: limited, b: limited, c: limited });
    expect((await h.claim(3)).length).toBe(1);
    await h.store.write((tx) =>
      tx.limits.save([{ name: 'gpu', definition: '{"concurrency":2}', updated_at: h.clock.now() }]),
    );
    expect((await h.claim(3)).length).toBe(1);
    await expectSound(h, run);
  });

  // SPEC S8.1
  it('a limit without a bound holds nobody back, and one that nobody has configured is refused', async () => {
    const h = await open({ limits: { gpu: {} } });
    await h.start({ a: limited, b: limited });
    expect((await h.claim(3)).length).toBe(2);
    expect(await refusal(h.start({ a: { limits: ['gpus'] } }))).toBe('UNKNOWN_LIMIT');
  });

  // SPEC S8.1, S4.11
  it('waiting tasks of a paused run hold nobody up, and go on after it', async () => {
    const h = await open({ limits: gpu });
    const first = await h.start({ a: limited });
    const a = await h.claimOne();
    const paused = await h.start({ b: limited });
    const other = await h.start({ c: limited });
    await h.claim(3);
    await h.engine.pauseRun(paused, 'test');
    await h.complete(a);
    const [c] = await h.claim(3);
    expect(c?.run_id).toBe(other);
    expect(await waitOf(h, paused, 'b')).toBe('READY paused null');
    await h.engine.resumeRun(paused, 'test');
    expect(await h.claim(3)).toEqual([]);
    if (c) await h.complete(c);
    await h.claimOne('b');
    for (const run of [first, paused, other]) await expectSound(h, run);
  });

  // SPEC S8.1, S5.8
  it('a waiting task that is cancelled leaves its place', async () => {
    const h = await open({ limits: gpu });
    const run = await h.start({ a: limited, b: limited, c: limited }, { on_failure: 'continue' });
    const a = await h.claimOne();
    await h.claim(2);
    await h.engine.cancelTask((await h.task(run, 'b')).id);
    await h.complete(a);
    await h.claimOne('c');
    await expectSound(h, run);
  });

  // SPEC S8.1, S5.7
  it('a retried run asks again for what it needs', async () => {
    const h = await open({ limits: { models: { tokens_per_minute: 1_000, models: ['offline/*'] } } });
    const run = await h.start({ a: { ...call(600), retry: { max_attempts: 1 } } });
    await h.idle();
    await h.fail(await h.claimOne('a'));
    await h.engine.retryRun(run, 'test');
    await h.idle();
    expect(await h.claim(1)).toEqual([]);
    await h.pass(61_000);
    await h.claimOne('a');
    await expectSound(h, run);
  });

  // SPEC S8.1, S4.9
  it('items of a map wait for limits like other tasks, and each is estimated by itself', async () => {
    const h = await open({
      limits: { ...gpu, models: { tokens_per_minute: 1_000, models: ['offline/*'] } },
    });
    const map = { for_each: '[1, 2, 3]', max_parallel: 2, limits: ['gpu'], with: { value: '{{ item }}' } };
    const asked = {
      for_each: '["hi", "word " * 300]',
      ...call(400),
      with: { model: 'offline/brief', prompt: '{{ item }}', max_tokens: 375 },
    };
    const run = await h.start({ map, asked });
    await h.idle();
    const first = await h.claim(5);
    expect(first.map(({ task_id, map_index }) => `${task_id} ${map_index}`).sort()).toEqual([
      'asked 0',
      'map 0',
    ]);
    await expectSound(h, run);
    const long = (await h.tasks(run)).find(
      ({ task_id, map_index }) => task_id === 'asked' && map_index === 1,
    );
    expect(long).toMatchObject({ status: 'READY', waiting_for: 'limit' });
    for (let turn = 0; turn < 10 && (await h.run(run)).status === 'RUNNING'; turn++) {
      const leases = turn === 0 ? first : await h.claim(5);
      await h.settle(
        ...leases.map(
          ({ lease_id }) => ({ kind: 'complete', lease_id, output: 1, usage: ONE_CALL }) as const,
        ),
      );
      await h.idle();
      await expectSound(h, run);
    }
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  // SPEC S3.4
  it('a waiting task whose place was lost is found by the sweep and goes on', async () => {
    const lines: string[] = [];
    const h = await open({ limits: gpu, log: (line) => lines.push(line) });
    const run = await h.start({ a: limited, b: limited });
    const a = await h.claimOne();
    await h.claim(1);
    const { key, run_key, queue_key } = await h.task(run, 'b');
    await h.store.write((tx) =>
      tx.held.remove([{ place: 'gpu', queue_key, rank: 0, task_key: key, run_key }]),
    );
    await h.complete(a);
    expect(await h.claim(1)).toEqual([]);
    await h.idle();
    expect(lines.filter((line) => line.includes('limbo.found')).length).toBe(1);
    await h.claimOne('b');
    await expectSound(h, run);
  });

  // SPEC S8.1: a crash anywhere
  it('a process that dies leaves what is granted and held to the next', async () => {
    const h = await open({ limits: gpu });
    const run = await h.start({ a: limited, b: limited });
    const a = await h.claimOne();
    await h.claim(1);
    await h.restart();
    expect(await h.claim(2)).toEqual([]);
    await h.complete(a);
    await h.claimOne('b');
    await expectSound(h, run);
  });
});
