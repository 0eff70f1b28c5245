/** The loops of an engine: what each does in a turn and how long it rests. They are safe to run on every node at once. */
import { isTerminal, RUN_STATUSES } from '../domain/states.ts';
import type { EngineContext } from './engine-context.ts';
import { followUp } from './follow-ups.ts';
import { ageGrants } from './limit-aging.ts';
import { Loop } from './loop.ts';
import { freeDeadWorkers } from './presence.ts';
import { prune } from './prune.ts';
import { Reaper } from './reaper.ts';
import { sweepLimbo } from './sweep.ts';
import { runTimers } from './timers.ts';

const REAPER_MS = 5_000;
const REST_MAX_MS = 1_000;
const WATCH_MS = 100;
const LIMITS_MS = 1_000;
const SWEEP_MS = 60_000;
const RETENTION_MS = 3_600_000;
const PRUNED_MAX = 1_000;

/** The loops by what they are for. */
export interface EngineLoops {
  readonly followUps: Loop;
  readonly timers: Loop;
  readonly reaper: Loop;
  readonly sweep: Loop;
  readonly retention: Loop;
  readonly limits: Loop;
  readonly watcher: Loop;
}

/** Makes the loops; none runs yet. `watch` looks for commits of other processes. */
export function createLoops(
  context: EngineContext,
  {
    leaseMs,
    retentionMs,
    watch,
  }: { leaseMs: number; retentionMs: number | null; watch: () => Promise<number> },
): EngineLoops {
  const { clock, logger } = context;
  const reaper = new Reaper(context, { intervalMs: REAPER_MS, leaseMs });
  const loop = (name: string, turn: ConstructorParameters<typeof Loop>[0]['turn']): Loop =>
    new Loop({ name, logger, turn });
  return {
    followUps: loop('follow_ups', async () => {
      const counts = await followUp(context);
      const total = counts.decided + counts.estimated + counts.finished + counts.chunks;
      return { counts, restMs: total > 0 ? 0 : REST_MAX_MS };
    }),
    timers: loop('timers', async () => {
      const { fired, next } = await runTimers(context);
      const untilNext = next === null ? REST_MAX_MS : next - clock.now();
      return { counts: { fired }, restMs: Math.min(Math.max(0, untilNext), REST_MAX_MS) };
    }),
    reaper: loop('reaper', async () => ({
      // A process that died on this host is not waited for (SPEC S6.2), also when it died while this one lives.
      counts: { freed: await freeDeadWorkers(context), expired: await reaper.runOnce() },
      restMs: REAPER_MS,
    })),
    sweep: loop('sweep', async () => ({
      counts: { repaired: await sweepLimbo(context) },
      restMs: SWEEP_MS,
    })),
    retention: loop('retention', async () => {
      if (retentionMs === null) return { counts: { pruned: 0 }, restMs: RETENTION_MS };
      const statuses = RUN_STATUSES.filter(isTerminal);
      const before = clock.now() - retentionMs;
      const gone = await prune(context, { statuses, before, limit: PRUNED_MAX, dryRun: false });
      // A full batch means that there is more to do at once.
      return { counts: { pruned: gone.length }, restMs: gone.length < PRUNED_MAX ? RETENTION_MS : 0 };
    }),
    limits: loop('limits', async () => {
      await context.book.refresh(context.store);
      const aged = context.book.size === 0 ? 0 : await ageGrants(context);
      return { counts: { aged }, restMs: LIMITS_MS };
    }),
    watcher: loop('watcher', async () => ({ counts: { changes: await watch() }, restMs: WATCH_MS })),
  };
}
