/** A map of 10,000 items that do nothing beside a plain fan-out of 10,000 tasks, in one process and in turns, and how long it stalls others. */
import type { Workflow } from '../src/definition/workflow.ts';
import { fanOut, median, step, withEngine } from './engine.ts';

const ITEMS = 10_000;
const ROUNDS = 3;

/** Rates from the start of a run to its end, the list and the gathering of the outputs included. */
export async function mapBench(): Promise<Record<string, number>> {
  const rates: Record<string, number[]> = { fanout: [], map: [], limited: [] };
  const blocks: Record<string, number[]> = { fanout: [], map: [] };
  await withEngine(async (bench) => {
    await bench.run([mapOf(ITEMS)], ITEMS + 1);
    await bench.run([fanOut(ITEMS)]);
    for (let round = 0; round < ROUNDS; round++) {
      rates.fanout?.push((await bench.run([fanOut(ITEMS)])).rate);
      rates.map?.push((await bench.run([mapOf(ITEMS)], ITEMS + 1)).rate);
      rates.limited?.push((await bench.run([mapOf(ITEMS, 256)], ITEMS + 1)).rate);
      blocks.fanout?.push(await bench.longestBlock(fanOut(ITEMS), ITEMS + 2));
      blocks.map?.push(await bench.longestBlock(mapOf(ITEMS), ITEMS + 1));
    }
  });
  const fanout = median(rates.fanout ?? []);
  const map = median(rates.map ?? []);
  return {
    map_10k_tasks_per_s: map,
    map_10k_max_parallel_256_tasks_per_s: median(rates.limited ?? []),
    fanout_10k_beside_tasks_per_s: fanout,
    map_over_fanout_ratio: map / fanout,
    map_10k_longest_block_ms: median(blocks.map ?? []),
    fanout_10k_longest_block_ms: median(blocks.fanout ?? []),
  };
}

function mapOf(items: number, max_parallel?: number): Workflow {
  const map = {
    ...step([]),
    for_each: `range(${items})`,
    ...(max_parallel === undefined ? {} : { max_parallel }),
  };
  return { name: `map-${items}-${max_parallel ?? 'all'}`, tasks: { map, last: step(['map']) } };
}
