/** Heartbeats, orders and deadlines, seen through a worker with a clock of its own. */
import { afterEach, describe, expect, it } from 'vitest';
import { makeLease } from '../../test/support/fake-source.ts';
import { settle, until } from '../../test/support/until.ts';
import { defer, startWorker, untilStopped, type WorkerBench } from '../../test/support/worker-bench.ts';
import { systemClock } from '../base/clock.ts';
import type { HandlerContext } from '../handlers/handler.ts';

let bench: WorkerBench | null = null;
afterEach(async () => {
  if (bench === null) return;
  const stopped = bench.worker.stop();
  await bench.pass(60_000);
  await stopped;
  bench = null;
});

type Context = HandlerContext<Readonly<Record<string, unknown>>>;

/** Starts a worker with one lease and waits until its handler runs. */
async function runOne(
  run: (context: Context) => Promise<unknown>,
  lease: Parameters<typeof makeLease>[0] = { lease_id: 'l1' },
): Promise<WorkerBench & { context: Context }> {
  let seen: Context | null = null;
  const started = await startWorker(
    (context) => {
      seen = context;
      return run(context);
    },
    [makeLease(lease)],
  );
  bench = started;
  await until(() => seen !== null);
  return { ...started, context: seen as unknown as Context };
}

// SPEC S6.1, S14.6
describe('heartbeats', () => {
  it('all leases are in one heartbeat, every third of the shortest lease', async () => {
    const started = await startWorker(
      async ({ signal }) => untilStopped(signal),
      [makeLease({ lease_id: 'l1' }), makeLease({ lease_id: 'l2', lease_ms: 9_000 })],
    );
    bench = started;
    await until(() => started.worker.running === 2);
    await started.pass(2_999);
    expect(started.source.beats).toEqual([]);
    await started.pass(1);
    expect(started.source.beats).toEqual([[{ lease_id: 'l1' }, { lease_id: 'l2' }]]);
    await started.pass(3_000);
    expect(started.source.beats).toHaveLength(2);
  });

  it('a heartbeat carries progress, message and checkpoint, each once', async () => {
    const { context, source, pass } = await runOne(({ signal }) => untilStopped(signal));
    context.progress(0.25, 'a quarter');
    context.progress(7);
    context.progress(Number.NaN);
    context.checkpoint({ row: 3 });
    await pass(10_000);
    await pass(10_000);
    expect(source.beats).toEqual([
      [{ lease_id: 'l1', progress: 1, message: 'a quarter', checkpoint: { row: 3 } }],
      [{ lease_id: 'l1' }],
    ]);
  });

  it('what a failed heartbeat carried is sent with the next, a second later', async () => {
    const { context, source, pass, events } = await runOne(({ signal }) => untilStopped(signal));
    context.progress(0.5);
    source.isAway = true;
    await pass(10_000);
    source.isAway = false;
    await pass(1_000);
    expect(source.beats).toEqual([[{ lease_id: 'l1', progress: 0.5 }]]);
    expect(events).toContain('worker.heartbeat_failed');
  });

  it('with the machine’s clock, heartbeats and deadlines come by themselves', async () => {
    const lease = makeLease({ lease_id: 'l1', lease_ms: 600, timeout_ms: 900 });
    const { worker, source } = await startWorker(({ signal }) => untilStopped(signal), [lease], {
      clock: systemClock,
    });
    await worker.idle();
    await worker.stop();
    expect(source.beats.length).toBeGreaterThan(0);
    expect(source.settled).toMatchObject([{ kind: 'fail', failure: { class: 'timeout' } }]);
  });

  it('a checkpoint arrives before the failure of its attempt', async () => {
    const { worker, source } = await runOne(async ({ checkpoint }) => {
      checkpoint('half-way');
      throw new TypeError('broken');
    });
    await worker.idle();
    expect(source.beats).toEqual([[{ lease_id: 'l1', checkpoint: 'half-way' }]]);
    expect(source.journal.slice(-2)).toEqual(['extend', 'settle']);
  });

  it('a checkpoint that the source refuses does not keep the failure back', async () => {
    const started = await startWorker(async ({ checkpoint }) => {
      checkpoint('too large');
      throw new TypeError('broken');
    }, []);
    bench = started;
    started.source.extend = () => Promise.reject(new TypeError('refused'));
    started.source.push(makeLease({ lease_id: 'l1' }));
    await started.worker.idle();
    expect(started.source.settled).toMatchObject([{ kind: 'fail' }]);
  });
});

// SPEC S5.8, S6.1, S6.3
describe('orders', () => {
  it('a cancelled handler is stopped and its end acknowledged with a release', async () => {
    const { worker, source, pass, context } = await runOne(({ signal }) => untilStopped(signal));
    expect(context.signal.aborted).toBe(false);
    source.orders.set('l1', 'cancel');
    await pass(10_000);
    await worker.idle();
    expect(context.signal.aborted).toBe(true);
    expect(source.settled).toEqual([{ kind: 'release', lease_id: 'l1' }]);
  });

  it('the late result of a cancelled handler is not offered', async () => {
    const gate = defer<string>();
    const { worker, source, pass } = await runOne(() => gate.promise);
    source.orders.set('l1', 'cancel');
    await pass(10_000);
    gate.resolve('too late');
    await worker.idle();
    expect(source.settled).toEqual([{ kind: 'release', lease_id: 'l1' }]);
  });

  it('a handler whose lease is lost is stopped and nothing is settled', async () => {
    const { worker, source, pass, context } = await runOne(({ signal }) => untilStopped(signal));
    source.orders.set('l1', 'lost');
    await pass(10_000);
    await until(() => worker.running === 0);
    expect(context.signal.aborted).toBe(true);
    await settle();
    expect(source.settled).toEqual([]);
  });

  it('a signal that is first looked at after the stop is already aborted', async () => {
    const gate = defer();
    const { source, pass, context } = await runOne(() => gate.promise);
    source.orders.set('l1', 'lost');
    await pass(10_000);
    expect(context.signal.aborted).toBe(true);
    gate.resolve();
  });
});

// SPEC S6.3
describe('a lease that runs out by the worker’s own clock', () => {
  it('stops the handler, and its task is released', async () => {
    const { worker, source, pass, context } = await runOne(({ signal }) => untilStopped(signal));
    expect(context.signal.aborted).toBe(false);
    source.extend = () => Promise.reject(new TypeError('away'));
    await pass(10_000);
    await pass(19_999);
    expect(context.signal.aborted).toBe(false);
    await pass(1);
    await worker.idle();
    expect(source.settled).toEqual([{ kind: 'release', lease_id: 'l1' }]);
  });

  it('a result that comes nevertheless is offered once', async () => {
    const gate = defer<string>();
    const { worker, source, pass } = await runOne(() => gate.promise);
    source.extend = () => Promise.reject(new TypeError('away'));
    await pass(30_000);
    gate.resolve('late but whole');
    await worker.idle();
    expect(source.settled).toMatchObject([{ kind: 'complete', output: 'late but whole' }]);
  });

  it('a jump of the wall clock ends nothing', async () => {
    const { source, pass, clock, context } = await runOne(({ signal }) => untilStopped(signal));
    clock.jump(86_400_000);
    await pass(0);
    expect(context.signal.aborted).toBe(false);
    expect(source.beats).toEqual([]);
  });
});

// SPEC S5.1 timeout, S6.1
describe('an attempt that takes too long', () => {
  const short = { lease_id: 'l1', timeout_ms: 2_000 };

  it('is stopped and fails with class timeout', async () => {
    const { worker, source, pass, context } = await runOne(({ signal }) => untilStopped(signal), short);
    await pass(1_999);
    expect(context.signal.aborted).toBe(false);
    await pass(1);
    await worker.idle();
    expect((context.signal.reason as Error).name).toBe('TimeoutError');
    expect(source.settled).toMatchObject([
      { kind: 'fail', failure: { class: 'timeout', code: 'TIMEOUT', attempt: 1 } },
    ]);
  });

  it('fails even when its handler returns something after the stop', async () => {
    const gate = defer<string>();
    const { worker, source, pass } = await runOne(() => gate.promise, short);
    await pass(2_000);
    gate.resolve('part of it');
    await worker.idle();
    expect(source.settled).toMatchObject([{ kind: 'fail', failure: { class: 'timeout' } }]);
  });

  it('is left behind ten seconds later when its handler ignores the stop', async () => {
    const gate = defer<string>();
    const { worker, source, pass, events } = await runOne(() => gate.promise, short);
    await pass(2_000);
    await pass(9_999);
    expect(worker.running).toBe(1);
    await pass(1);
    await worker.idle();
    expect(source.settled).toMatchObject([{ kind: 'fail', failure: { class: 'timeout' } }]);
    expect(events).toContain('worker.handler_abandoned');
    gate.resolve('much too late');
    await settle();
    expect(source.settled).toHaveLength(1);
  });
});
