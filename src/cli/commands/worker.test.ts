import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliResult, relay } from '../../../test/support/memory-io.ts';
import { OWN_TOKEN, ServerBench } from '../../../test/support/server-bench.ts';

let bench: ServerBench;
beforeAll(async () => {
  bench = await ServerBench.open();
});
afterAll(() => bench.close());

const worker = (...argv: string[]): Promise<CliResult> =>
  relay(['worker', '--exit-when-idle', ...argv], { cwd: bench.folder });
const there = (): readonly string[] => ['--server', bench.url, '--token', OWN_TOKEN];

// SPEC S1.2 `worker`
describe('relay worker --resource', () => {
  it.each(['on a server', 'on the store'])('takes tasks that need no more than it has, %s', async (where) => {
    const flags = where === 'on a server' ? there() : [];
    const { runs } = bench.client();
    const needs = (vram_gb: number) => ({
      uses: 'transform',
      with: { value: 1 },
      worker: { resources: { vram_gb } },
    });
    const { id } = await runs.start({
      definition: { name: 'gpu', tasks: { small: needs(8), large: needs(24) } },
    });
    const statuses = async () =>
      Object.fromEntries((await runs.get(id)).tasks.map(({ task_id, status }) => [task_id, status]));
    expect((await worker(...flags)).code).toBe(0);
    expect(await statuses()).toEqual({ small: 'QUEUED', large: 'QUEUED' });
    expect((await worker('--resource', 'vram_gb=12', '--resource', 'cpus=2', ...flags)).code).toBe(0);
    expect(await statuses()).toEqual({ small: 'SUCCESS', large: 'QUEUED' });
    expect((await worker('--resource', 'vram_gb=24', ...flags)).code).toBe(0);
    expect(await statuses()).toEqual({ small: 'SUCCESS', large: 'SUCCESS' });
  });

  it('takes numbers only', async () => {
    for (const text of ['vram_gb', 'vram_gb=', 'vram_gb=much', 'vram_gb=-1', 'vram_gb=Infinity'])
      expect(await worker('--resource', text)).toMatchObject({ code: 2, out: '' });
  });
});
