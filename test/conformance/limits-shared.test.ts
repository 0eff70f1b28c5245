/** One limit, two processes, eight workers each: what the store is asked for at the same time (SPEC S8.1, I13). */
import { expect, it } from 'vitest';
import type { EngineSource } from '../../src/engine/engine-source.ts';
import type { Lease, Settlement } from '../../src/worker/work-source.ts';
import { type Harness, seededRandom } from '../support/harness.ts';
import { brokenLimits } from '../support/limit-invariants.ts';
import { conformance, expectSound } from './suite.ts';

const WORKERS = 8;
const MINUTE_MS = 60_000;

interface Worker {
  readonly source: EngineSource;
  lease: Lease | null;
  /** When its call ends. */
  until: number;
}

/** A call that was let through: what it counts as now. */
interface Call {
  readonly at: number;
  tokens: number;
}

async function workersOf(processes: readonly Harness[]): Promise<Worker[]> {
  const workers: Worker[] = [];
  for (const each of processes)
    for (let n = 0; n < WORKERS; n++) workers.push({ source: await each.newSource(), lease: null, until: 0 });
  return workers;
}

conformance('limits of two processes', (open) => {
  // SPEC S8.1: the reserved-then-corrected sum never exceeds the limit in any 60 s, and at least 80 % of it is used
  it('a token limit is kept in every minute, and used', async () => {
    const max = 10_000;
    const minutes = 4;
    const reserved = 500;
    const h = await open({ limits: { models: { tokens_per_minute: max, models: ['offline/*'] } } });
    const processes = [h, await h.another()];
    const workers = await workersOf(processes);
    const random = seededRandom(7);
    const call = { uses: 'llm', with: { model: 'offline/brief', prompt: 'hi', max_tokens: reserved - 25 } };
    const runs: string[] = [];
    for (let n = 0; n < 4; n++)
      runs.push(await h.start(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`t${i}`, call]))));
    const begun = h.clock.now();
    const calls = new Map<string, Call>();
    const step = async (worker: Worker): Promise<void> => {
      const now = h.clock.now();
      if (worker.lease !== null && worker.until > now) return;
      const settlements: Settlement[] = [];
      if (worker.lease !== null) {
        const { lease_id } = worker.lease;
        const tokens_out = Math.floor(reserved * (0.85 + 0.1 * random())) - 25;
        settlements.push({ kind: 'complete', lease_id, output: 1, usage: { tokens_in: 25, tokens_out } });
        const known = calls.get(lease_id);
        if (known) known.tokens = 25 + tokens_out;
      }
      const { leases } = await worker.source.next({ limit: 1, settlements, signal: AbortSignal.abort() });
      const [lease = null] = leases;
      worker.lease = lease;
      if (lease === null) return;
      worker.until = now + 1_000 + Math.floor(random() * 6_000);
      calls.set(lease.lease_id, { at: now, tokens: reserved });
    };
    for (let ms = 0; ms < minutes * MINUTE_MS; ms += 1_000) {
      for (const process of processes) await process.idle();
      await Promise.all(workers.map(step));
      const now = h.clock.now();
      const inWindow = [...calls.values()].filter(({ at }) => at > now - MINUTE_MS);
      expect(inWindow.reduce((sum, { tokens }) => sum + tokens, 0)).toBeLessThanOrEqual(max);
      h.clock.advance(1_000);
    }
    expect(await brokenLimits(h.store, h.clock.now())).toEqual([]);
    const left = (await h.tasks(runs.at(-1) ?? '')).filter(({ status }) => status === 'READY');
    expect(left.length, 'there was always more to do').toBeGreaterThan(0);
    const used = [...calls.values()].reduce((sum, { tokens }) => sum + tokens, 0);
    const share = used / (max * minutes);
    process.stdout.write(`token limit: ${calls.size} calls, ${Math.round(share * 100)} % used\n`);
    expect(share).toBeGreaterThanOrEqual(0.8);
    expect(h.clock.now() - begun).toBe(minutes * MINUTE_MS);
    for (const run of runs) await expectSound(h, run);
  });

  // SPEC S8.1: a limit of one never gives two
  it('a limit of one lets one in, however many ask at once', async () => {
    const h = await open({ limits: { gpu: { concurrency: 1 } } });
    const processes = [h, await h.another()];
    const workers = await workersOf(processes);
    const runs: string[] = [];
    for (let n = 0; n < 6; n++)
      runs.push(await h.start({ a: { limits: ['gpu'] }, b: { limits: ['gpu'], needs: ['a'] }, free: {} }));
    let inside = 0;
    let most = 0;
    let done = 0;
    const work = async ({ source }: Worker): Promise<void> => {
      const signal = AbortSignal.abort();
      for (let turn = 0; turn < 2_000 && done < runs.length * 3; turn++) {
        const [lease] = (await source.next({ limit: 1, settlements: [], signal })).leases;
        if (lease === undefined) {
          await new Promise((resolve) => setImmediate(resolve));
          continue;
        }
        const isLimited = lease.task_id !== 'free';
        if (isLimited) inside += 1;
        most = Math.max(most, inside);
        await new Promise((resolve) => setImmediate(resolve));
        if (isLimited) inside -= 1;
        await source.next({
          limit: 0,
          settlements: [{ kind: 'complete', lease_id: lease.lease_id, output: 1 }],
          signal,
        });
        done += 1;
      }
    };
    const turning = (async () => {
      while (done < runs.length * 3) {
        for (const process of processes) await process.engine.runOnce();
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    await Promise.all(workers.map(work));
    await turning;
    expect(most).toBe(1);
    for (const run of runs) {
      expect((await h.run(run)).status).toBe('SUCCESS');
      await expectSound(h, run);
    }
  });
});
