/** The engine on the embedded store, synchronous FULL, without a worker in between: results go straight into the next claim. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from '../src/base/clock.ts';
import { createLogger } from '../src/base/logger.ts';
import type { Workflow } from '../src/definition/workflow.ts';
import { Engine } from '../src/engine/engine.ts';
import type { EngineSource } from '../src/engine/engine-source.ts';
import { BUILT_IN_HANDLERS } from '../src/handlers/registry.ts';
import { FileBlobStore } from '../src/stores/blobs/file-blob-store.ts';
import { openDriver } from '../src/stores/sqlite/driver.ts';
import { SqliteStore } from '../src/stores/sqlite/sqlite-store.ts';
import type { Settlement } from '../src/worker/work-source.ts';

const BATCH = 256;
const ROUNDS = 5;
const FINISHED_ROWS = 1_000_000;

/** Rates, hop times, and how they hold up: late in a run, with a million finished rows, beside a wide run. */
export async function engineBench(): Promise<Record<string, number>> {
  const results: Record<string, number> = { ...commitFloor() };
  await withEngine(async (bench) => {
    const fanout: number[] = [];
    const chain: number[][] = [];
    const diamonds: number[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const wide = await bench.run([fanOut(10_000)]);
      const deep = await bench.run([chainOf(1_000)]);
      const small = await bench.run(Array.from({ length: 2_000 }, diamond));
      // The first round warms everything up.
      if (round === 0) continue;
      fanout.push(wide.rate);
      chain.push(deep.ticksMs);
      diamonds.push(small.rate);
    }
    const hops = chain.at(-1) ?? [];
    results.fanout_10k_tasks_per_s = median(fanout);
    results.chain_hop_p50_ms = median(chain.map(median));
    results.diamonds_tasks_per_s = median(diamonds);
    results.hop_late_over_early_ratio = median(hops.slice(-200)) / median(hops.slice(5, 205));
    results.stall_beside_10k_ms = await bench.stall();
    results.rss_mb = process.memoryUsage().rss / 1024 / 1024;
    const fresh = median((await bench.run([chainOf(300)])).ticksMs);
    bench.age(FINISHED_ROWS);
    results.hop_aged_over_fresh_ratio = median((await bench.run([chainOf(300)])).ticksMs) / fresh;
  });
  return results;
}

/** What one row and one synchronous commit cost on this machine; everything else is measured against it. */
function commitFloor(): { commit_floor_ms: number } {
  const folder = mkdtempSync(join(tmpdir(), 'relay-bench-'));
  const driver = openDriver(join(folder, 'floor.db'));
  driver.exec('pragma journal_mode = wal');
  driver.exec('pragma synchronous = full');
  driver.exec('create table t (a integer primary key, b text)');
  const insert = driver.prepare('insert into t (b) values (?)');
  const times = Array.from({ length: 500 }, () => {
    const start = performance.now();
    insert.run('x');
    return performance.now() - start;
  });
  driver.close();
  rmSync(folder, { recursive: true, force: true });
  return { commit_floor_ms: median(times) };
}

/** An engine on a new store, for as long as it is used. */
export async function withEngine(use: (bench: EngineBench) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'relay-bench-'));
  const path = join(folder, 'relay.db');
  const store = new SqliteStore({ path });
  await store.migrate();
  const engine = new Engine({
    store,
    blobs: new FileBlobStore(join(folder, 'blobs')),
    handlers: BUILT_IN_HANDLERS,
    clock: systemClock,
    random: Math.random,
    logger: createLogger({ level: 'warn', clock: systemClock, write: (line) => process.stderr.write(line) }),
    secret: () => undefined,
    env: () => undefined,
  });
  await engine.start();
  const { source } = await engine.source({ handlers: ['transform'] });
  try {
    await use(new EngineBench(engine, source, path));
  } finally {
    await engine.stop();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Drives runs as fast as the engine hands them out. */
export class EngineBench {
  readonly #engine: Engine;
  readonly #source: EngineSource;
  readonly #path: string;
  readonly #never = new AbortController().signal;

  constructor(engine: Engine, source: EngineSource, path: string) {
    this.#engine = engine;
    this.#source = source;
    this.#path = path;
  }

  /** Starts runs and works them off; the rate counts from the start of the first to the end of the last. */
  async run(
    workflows: readonly Workflow[],
    total = workflows.reduce((sum, workflow) => sum + Object.keys(workflow.tasks).length, 0),
  ): Promise<{ rate: number; ticksMs: number[] }> {
    const start = performance.now();
    await Promise.all(workflows.map((workflow) => this.#engine.startRun({ workflow }, { caller: 'bench' })));
    const ticksMs: number[] = [];
    let settlements: Settlement[] = [];
    for (let done = 0; done < total; ) {
      const before = performance.now();
      const { results, leases } = await this.#source.next({ limit: BATCH, settlements, signal: this.#never });
      ticksMs.push(performance.now() - before);
      done += results.length;
      settlements = leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }));
    }
    return { rate: (total / (performance.now() - start)) * 1_000, ticksMs };
  }

  /** The longest a small run has to wait for its next hop while 10,000 children of another become ready. */
  async stall(): Promise<number> {
    const wide = await this.#engine.startRun({ workflow: fanOut(10_000) }, { caller: 'bench' });
    const [root] = (await this.#source.next({ limit: 1, settlements: [], signal: this.#never })).leases;
    await this.#engine.startRun({ workflow: chainOf(100) }, { caller: 'bench' });
    const done: Settlement[] =
      root === undefined ? [] : [{ kind: 'complete', lease_id: root.lease_id, output: 1 }];
    const unlocking = this.#source.next({ limit: 0, settlements: done, signal: this.#never });
    let longest = 0;
    let settlements: Settlement[] = [];
    for (let hop = 0; hop < 100; hop++) {
      const before = performance.now();
      const { leases } = await this.#source.next({ limit: 1, settlements, signal: this.#never });
      longest = Math.max(longest, performance.now() - before);
      settlements = leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }));
    }
    await unlocking;
    await this.#engine.cancelRun(wide.id, 'bench');
    return longest;
  }

  /** The longest that the event loop stands still while a run goes from its start to its end, worked off by a worker. */
  async longestBlock(workflow: Workflow, total: number): Promise<number> {
    const delays = monitorEventLoopDelay({ resolution: 1 });
    delays.enable();
    await this.run([workflow], total);
    delays.disable();
    return delays.max / 1e6;
  }

  /** Puts finished rows beside the live ones, as years of use would. */
  age(rows: number): void {
    const driver = openDriver(this.#path);
    driver.exec('pragma busy_timeout = 10000');
    driver.exec(`
      insert into task_runs (id, run_key, task_id, status, is_plain, is_finally, is_tolerated, priority, queue_key, deps_remaining, deps_ok)
      with recursive n (i) as (select 1 union all select i + 1 from n where i < ${rows})
      select 'finished-' || i, 0, 'task', 'SUCCESS', 1, 0, 0, 0, 1, 0, 1 from n`);
    driver.close();
  }
}

/** A task that needs others. */
export const step = (needs: readonly string[]): Workflow['tasks'][string] => ({
  uses: 'transform',
  with: { value: 1 },
  needs,
});

/** One task, many that need it, one that needs them all. */
export function fanOut(width: number): Workflow {
  const middle = Array.from({ length: width }, (_, index) => `t${index}`);
  const tasks = Object.fromEntries(middle.map((id) => [id, step(['first'])]));
  return { name: 'fan-out', tasks: { first: step([]), ...tasks, last: step(middle) } };
}

function chainOf(length: number): Workflow {
  const ids = Array.from({ length }, (_, index) => `t${index}`);
  return {
    name: `chain-${length}`,
    tasks: Object.fromEntries(ids.map((id, index) => [id, step(ids.slice(Math.max(0, index - 1), index))])),
  };
}

function diamond(): Workflow {
  return { name: 'diamond', tasks: { a: step([]), b: step(['a']), c: step(['a']), d: step(['b', 'c']) } };
}

/** The middle value. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
