/** The loop: claiming, settling, waiting, a source that is away, and leaving. */
import { afterEach, describe, expect, it } from 'vitest';
import { makeLease } from '../../test/support/fake-source.ts';
import { settle, until } from '../../test/support/until.ts';
import {
  defer,
  makeWorker,
  startWorker,
  untilStopped,
  type WorkerBench,
} from '../../test/support/worker-bench.ts';
import type { Lease } from './work-source.ts';

const leases = (count: number): Lease[] =>
  Array.from({ length: count }, (_, index) => makeLease({ lease_id: `l${index + 1}` }));

/** Numbers that look random and are the same every time. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

let bench: WorkerBench | null = null;
const start = async (...args: Parameters<typeof startWorker>): Promise<WorkerBench> => {
  bench = await startWorker(...args);
  return bench;
};
afterEach(async () => {
  if (bench === null) return;
  const { worker, source, clock } = bench;
  source.isAway = false;
  const stopped = worker.stop();
  clock.advance(60_000);
  await worker.runDue();
  await stopped;
  bench = null;
});

describe('claiming and settling', () => {
  it('a worker runs every lease and hands every output over once', async () => {
    const { worker, source } = await start(async ({ task }) => `done ${task.task_run_id}`, leases(10));
    await worker.idle();
    expect(source.settled.map(({ lease_id }) => lease_id).toSorted()).toEqual(
      leases(10)
        .map(({ lease_id }) => lease_id)
        .toSorted(),
    );
    expect(source.settled[0]).toEqual({
      kind: 'complete',
      lease_id: 'l1',
      output: 'done task-run-l1',
    });
  });

  // DESIGN "The hot path" 1: settle and claim are one call.
  it('what finishes in one turn is settled in one call, which also claims the next', async () => {
    const { worker, source } = await start(async () => null, leases(8), { concurrency: 4 });
    await worker.idle();
    expect(source.batches.map((batch) => batch.length)).toEqual([4, 4]);
    expect(source.limits.slice(0, 3)).toEqual([4, 4, 4]);
  });

  it('no more handlers run at once than the worker has room for', async () => {
    let now = 0;
    let most = 0;
    const { worker } = await start(
      async () => {
        now += 1;
        most = Math.max(most, now);
        await settle();
        now -= 1;
      },
      leases(20),
      { concurrency: 3 },
    );
    await worker.idle();
    expect(most).toBe(3);
  });

  it('a call that waits for work ends when a handler finishes', async () => {
    const gate = defer<string>();
    const { worker, source } = await start(async () => gate.promise, leases(1));
    await until(() => source.calls === 2);
    gate.resolve('late');
    await worker.idle();
    expect(source.settled).toMatchObject([{ kind: 'complete', output: 'late' }]);
  });

  it('work that arrives while the worker waits is taken at once', async () => {
    const { worker, source } = await start(async () => 1, []);
    await until(() => source.calls === 1);
    source.push(...leases(2));
    await worker.idle();
    expect(source.settled).toHaveLength(2);
  });

  it('a lease that is handed over twice runs once', async () => {
    let runs = 0;
    const gate = defer();
    const twice = [...leases(1), ...leases(1)];
    const { worker, source } = await start(async () => {
      runs += 1;
      await gate.promise;
    }, twice);
    await until(() => source.calls >= 2);
    gate.resolve();
    await worker.idle();
    expect({ runs, settled: source.settled.length }).toEqual({ runs: 1, settled: 1 });
  });

  it('a task whose handler this worker does not have is left for others', async () => {
    const { worker, source } = await start(async () => 1, [makeLease({ lease_id: 'l1', handler: 'train' })]);
    await worker.idle();
    expect(source.settled).toMatchObject([{ kind: 'release', lease_id: 'l1', delay_ms: 5_000 }]);
  });

  it('a source that answers without waiting is not asked in circles', async () => {
    const { source, pass } = await start(async () => 1, []);
    await until(() => source.calls === 1);
    source.next = async () => {
      source.calls += 1;
      return { results: [], leases: [] };
    };
    source.push();
    await settle();
    const calls = source.calls;
    await settle();
    expect(source.calls).toBe(calls);
    await pass(1_000);
    await settle();
    expect(source.calls).toBeGreaterThan(calls);
  });
});

describe('refusals', () => {
  it('a stale settlement is dropped', async () => {
    const { worker, source } = await start(async () => 1, []);
    source.refusals.set('l1', 'STALE_LEASE');
    source.push(...leases(1));
    await worker.idle();
    expect(source.settled).toHaveLength(1);
  });

  it('a result that the source cannot record becomes a failure of the attempt', async () => {
    const { worker, source } = await start(async () => 1, []);
    source.refusals.set('l1', 'PAYLOAD_TOO_LARGE');
    source.push(...leases(1));
    await worker.idle();
    expect(source.settled).toMatchObject([
      { kind: 'complete' },
      { kind: 'fail', lease_id: 'l1', failure: { class: 'output', code: 'PAYLOAD_TOO_LARGE' } },
    ]);
  });
});

// SPEC S11.2, S14.7
describe('a source that is away', () => {
  it('results are kept in order and handed over when the source is back', async () => {
    const gates = [defer<number>(), defer<number>(), defer<number>()];
    let next = 0;
    const { worker, source, pass } = await start(async () => gates[next++]?.promise, leases(3), {
      concurrency: 3,
    });
    await until(() => worker.running === 3);
    source.isAway = true;
    gates[0]?.resolve(1);
    await until(() => source.calls === 2);
    gates[2]?.resolve(3);
    await settle();
    await pass(100);
    await until(() => source.calls === 3);
    gates[1]?.resolve(2);
    await settle();
    source.isAway = false;
    await pass(200);
    await worker.idle();
    expect(source.settled.map(({ lease_id }) => lease_id)).toEqual(['l1', 'l3', 'l2']);
  });

  it('the worker asks again with growing patience, at most every 5 seconds', async () => {
    const { source, pass, events } = await start(async () => 1, []);
    await until(() => source.calls === 1);
    source.isAway = true;
    source.push();
    const delays = [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000];
    await until(() => source.calls === 2);
    for (const [index, delay] of delays.entries()) {
      await pass(delay - 1);
      await settle();
      expect(source.calls).toBe(index + 2);
      await pass(1);
      await until(() => source.calls === index + 3);
    }
    expect(events).toContain('worker.source_away');
  });

  it.each([1, 2, 3])('no result is lost or changed on a bad day (seed %i)', async (seed) => {
    const random = seededRandom(seed);
    const run = async ({ task }: { task: { task_run_id: string } }): Promise<string> => {
      if (random() < 0.5) await settle();
      return task.task_run_id;
    };
    const { worker, source, pass } = await start(run, []);
    await until(() => source.calls === 1);
    const next = source.next.bind(source);
    source.next = async (request) => {
      if (random() < 0.3) throw new TypeError('never arrived');
      if (random() < 0.8 || request.settlements.length === 0) return next(request);
      await next({ ...request, limit: 0 });
      throw new TypeError('the answer was lost');
    };
    source.push(...leases(200));
    const settled = new Map<string, unknown>();
    while (settled.size < 200) {
      await pass(5_000);
      await settle();
      for (const one of source.settled) settled.set(one.lease_id, one.kind === 'complete' && one.output);
    }
    source.next = next;
    expect([...settled]).toEqual([...settled.keys()].map((id) => [id, `task-run-${id}`]));
    expect(worker.running).toBe(0);
  });

  it('leases of results that wait are kept alive', async () => {
    const { worker, source, pass } = await start(async () => 1, []);
    await until(() => source.calls === 1);
    const next = source.next.bind(source);
    source.next = () => Promise.reject(new TypeError('away'));
    source.push(...leases(1));
    await settle();
    await pass(10_000);
    expect(source.beats.at(-1)).toEqual([{ lease_id: 'l1' }]);
    source.next = next;
    await pass(5_000);
    await worker.idle();
    expect(source.settled).toHaveLength(1);
  });
});

// SPEC S6.3, S11.2, I11
describe('draining', () => {
  it('a draining worker takes nothing new and lets handlers finish', async () => {
    const gate = defer<string>();
    const { worker, source } = await start(async () => gate.promise, leases(3), { concurrency: 1 });
    await until(() => worker.running === 1);
    const drained = worker.drain();
    gate.resolve('in time');
    await drained;
    expect(source.settled).toMatchObject([{ kind: 'complete', output: 'in time' }]);
  });

  it('after the grace handlers are stopped and their tasks released', async () => {
    const { worker, source, pass } = await start(async ({ signal }) => untilStopped(signal), leases(2));
    await until(() => worker.running === 2);
    const stopped = worker.stop();
    await pass(1_000);
    await stopped;
    expect(source.settled).toEqual([
      { kind: 'release', lease_id: 'l1' },
      { kind: 'release', lease_id: 'l2' },
    ]);
  });

  it('a handler that finishes although it was told to stop keeps its result', async () => {
    const gate = defer<string>();
    const { worker, source, pass } = await start(async () => gate.promise, leases(1));
    await until(() => worker.running === 1);
    const stopped = worker.stop();
    await pass(1_000);
    gate.resolve('made it');
    await stopped;
    expect(source.settled).toMatchObject([{ kind: 'complete', output: 'made it' }]);
  });

  it('a worker that waits for work stops at once, and stopping twice is harmless', async () => {
    const { worker, source } = await start(async () => 1, []);
    await until(() => source.calls === 1);
    await Promise.all([worker.stop(), worker.stop()]);
    await worker.stop();
    expect(source.calls).toBe(1);
  });

  it('a worker that was never started stops', async () => {
    const { worker, source } = makeWorker(async () => 1, leases(1));
    await worker.stop();
    expect(source.calls).toBe(0);
  });

  it('a worker leaves in the end even when nobody takes its results', async () => {
    const { worker, source, pass, events } = await start(async () => 1, []);
    await until(() => source.calls === 1);
    source.next = () => new Promise(() => {});
    source.push(...leases(1));
    await settle();
    const stopped = worker.stop();
    await pass(1_000);
    await pass(15_000);
    await stopped;
    expect(events).toContain('worker.gave_up');
  });
});

describe('progress', () => {
  it('travels within the asked time where somebody looks on, and with the next heartbeat elsewhere', async () => {
    for (const [progressWithinMs, beatsAfterHalfASecond] of [
      [500, 1],
      [undefined, 0],
    ] as const) {
      const { worker, source, pass } = await startWorker(
        async ({ progress, signal }) => {
          progress(0.5, 'half');
          await untilStopped(signal);
        },
        [makeLease({ lease_id: 'one' })],
        progressWithinMs === undefined ? {} : { progressWithinMs },
      );
      await until(() => worker.running === 1);
      await settle();
      await pass(500);
      expect(source.beats).toHaveLength(beatsAfterHalfASecond);
      if (beatsAfterHalfASecond > 0)
        expect(source.beats[0]?.[0]).toMatchObject({ progress: 0.5, message: 'half' });
      await pass(9_500);
      expect(source.beats.length).toBeGreaterThan(0);
    }
  });
});
