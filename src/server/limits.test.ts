/** Named limits over HTTP and for Prometheus, with a worker that dials in (SPEC S8.1, S13.1). */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ServerBench } from '../../test/support/server-bench.ts';

let bench: ServerBench;
beforeAll(async () => {
  bench = await ServerBench.open({ limits: { gpu: { concurrency: 1, rate: '10/1h' } } });
});
afterAll(() => bench.close());

interface Claimed {
  readonly leases: readonly { readonly lease_id: string; readonly task_id: string }[];
}

it('a worker far away gets what a limit allows, and others see who waits', async () => {
  const { runs, limits, tasks } = bench.client();
  const task = { uses: 'far', limits: ['gpu'] };
  const run = await runs.start({ definition: { name: 'w', handlers: ['far'], tasks: { a: task, b: task } } });
  await bench.post('/workers/register', { boot_id: 'b', handlers: ['far'], worker_id: 'w' });
  const claim = async (claim_id: string): Promise<Claimed> =>
    (await (
      await bench.post('/workers/w/claim', { limit: 5, wait_s: 0, claim_id, settlements: [] })
    ).json()) as Claimed;
  const first = await claim('1');
  expect(first.leases.map(({ task_id }) => task_id)).toEqual(['a']);
  // The reply was lost: the same claim gives the same lease, and no second slot.
  expect((await claim('1')).leases.map(({ lease_id }) => lease_id)).toEqual([first.leases[0]?.lease_id]);
  expect((await claim('2')).leases).toEqual([]);
  expect((await limits.list()).items).toMatchObject([
    {
      name: 'gpu',
      concurrency: 1,
      in_use: 1,
      waiting: 1,
      windows: [{ unit: 'requests', max: 10, per: '1h', used: 1 }],
    },
  ]);
  const waiting = run.tasks.find(({ task_id }) => task_id === 'b')?.task_run_id ?? '';
  expect(await tasks.get(waiting)).toMatchObject({ status: 'READY', waiting_for: 'limit', limit: 'gpu' });
  const metrics = await (await bench.request('//metrics')).text();
  expect(metrics).toContain('relay_limit_in_use{limit="gpu"} 1\n');
  expect(metrics).toContain('relay_limit_waiting{limit="gpu"} 1\n');
  await bench.post(`/leases/${first.leases[0]?.lease_id}/complete`, { output: 1 });
  expect((await claim('3')).leases.map(({ task_id }) => task_id)).toEqual(['b']);
});

it('a budget is raised with a retry, and a wrong one is refused', async () => {
  const { runs } = bench.client();
  const { id } = await runs.start({
    definition: { name: 'b', budget: { tokens: 5 }, tasks: { a: { uses: 'transform', with: { value: 1 } } } },
  });
  await runs.cancel(id);
  expect((await runs.retry(id, { budget: { tokens: 900 } })).budget).toEqual({ tokens: 900, cost_usd: null });
  expect((await bench.post(`/runs/${id}/retry`, { budget: { tokens: 0 } })).status).toBe(400);
});
