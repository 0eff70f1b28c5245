/** The whole way: workflows through the real worker on the embedded store, and `relay run` as a person meets it. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { measure } from '../src/app/bench.ts';

const ROUNDS = 7;
const MAIN = join(process.cwd(), 'dist', 'cli', 'main.js');
const TWO =
  'name: two\ninputs: { who: { type: string, default: Ada } }\ntasks:\n  a: { uses: transform, with: { value: "hi {{ inputs.who }}" } }\n  b: { uses: transform, with: { value: "{{ tasks.a.output }}" } }\n';

/** Rates and hop times through the worker; the start-up only when the program has been built. */
export async function workerBench(): Promise<Record<string, number>> {
  const common = { cwd: tmpdir(), env: {}, concurrency: 256 };
  const fanout = await measure({ ...common, workload: 'fanout', tasks: 10_002 });
  const chain = await measure({ ...common, workload: 'chain', tasks: 1_000 });
  const diamonds = await measure({ ...common, workload: 'diamonds', tasks: 8_000 });
  return {
    worker_fanout_10k_tasks_per_s: fanout.tasks_per_s,
    worker_chain_hop_p50_ms: chain.hop_ms.p50,
    worker_chain_hop_p99_ms: chain.hop_ms.p99,
    worker_diamonds_tasks_per_s: diamonds.tasks_per_s,
    ...(existsSync(MAIN) ? { relay_run_two_tasks_ms: timeRun() } : {}),
  };
}

/** The median of whole processes, from the call to the exit. */
function timeRun(): number {
  const cwd = mkdtempSync(join(tmpdir(), 'relay-bench-'));
  writeFileSync(join(cwd, 'two.yaml'), TWO);
  const times = Array.from({ length: ROUNDS }, () => {
    const startedAt = performance.now();
    spawnSync(process.execPath, [MAIN, 'run', 'two.yaml'], { cwd, env: { HOME: cwd } });
    return performance.now() - startedAt;
  });
  rmSync(cwd, { recursive: true, force: true });
  return times.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0;
}
