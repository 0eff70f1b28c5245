/** The loops of an engine: what each does in a turn and how long it rests. They are safe to run on every node at once. */
import type { EngineContext } from './engine-context.ts';
import { followUp } from './follow-ups.ts';
import { Loop } from './loop.ts';
import { Reaper } from './reaper.ts';
import { sweepLimbo } from './sweep.ts';
import { runTimers } from './timers.ts';

const REAPER_MS = 5_000;
const REST_MAX_MS = 1_000;
const WATCH_MS = 100;
const SWEEP_MS = 60_000;

/** The loops by what they are for. */
export interface EngineLoops {
  readonly followUps: Loop;
  readonly timers: Loop;
  readonly reaper: Loop;
  readonly sweep: Loop;
  readonly watcher: Loop;
}

/** Makes the loops; none runs yet. `watch` looks for commits of other processes. */
export function createLoops(
  context: EngineContext,
  { leaseMs, watch }: { leaseMs: number; watch: () => Promise<number> },
): EngineLoops {
  const { clock, logger } = context;
  const reaper = new Reaper(context, { intervalMs: REAPER_MS, leaseMs });
  const loop = (name: string, turn: ConstructorParameters<typeof Loop>[0]['turn']): Loop =>
    new Loop({ name, logger, turn });
  return {
    followUps: loop('follow_ups', async () => {
      const counts = await followUp(context);
      const total = counts.decided + counts.finished + counts.chunks;
      return { counts, restMs: total > 0 ? 0 : REST_MAX_MS };
    }),
    timers: loop('timers', async () => {
      const { fired, next } = await runTimers(context);
      const untilNext = next === null ? REST_MAX_MS : next - clock.now();
      return { counts: { fired }, restMs: Math.min(Math.max(0, untilNext), REST_MAX_MS) };
    }),
    reaper: loop('reaper', async () => ({
      counts: { expired: await reaper.runOnce() },
      restMs: REAPER_MS,
    })),
    sweep: loop('sweep', async () => ({
      counts: { repaired: await sweepLimbo(context) },
      restMs: SWEEP_MS,
    })),
    watcher: loop('watcher', async () => ({ counts: { changes: await watch() }, restMs: WATCH_MS })),
  };
}
