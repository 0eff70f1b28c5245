/**
 * The way through the outbox and Redis beside the direct way, on one durable Postgres: round by round in turn, so that both see the
 * same machine. Whoever puts another system beside them calls `measure` with a store and a broker, as `fanOutRate` does.
 */
import { tmpdir } from 'node:os';
import { measure } from '../src/app/bench.ts';
import { LocalRelay } from '../src/app/local-relay.ts';
import type { Workflow } from '../src/definition/workflow.ts';
import { RELAY_DEFAULTS } from '../src/domain/relay-settings.ts';
import { defineHandler, type Handler } from '../src/handlers/handler.ts';
import { transform } from '../src/handlers/transform.ts';
import { startRedis } from '../test/support/brokers.ts';
import { createDatabase, startPostgres } from '../test/support/postgres.ts';

/** Where the servers are. */
interface BenchServices {
  readonly store: string;
  readonly broker: string;
}

const TASKS = 10_000;
const ROUNDS = 5;
const STARTS = 200;
/** What `measure` has at work at once; the window is twice that. */
const CONCURRENCY = 256;

/** Rates of a fan-out, their ratio, and how long a task of an idle system waits for its handler. */
export async function brokerBench(): Promise<Record<string, number>> {
  const results = await withServices(async (services) => {
    const direct: number[] = [];
    const told: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      direct.push(await fanOutRate({ store: services.store }));
      told.push(await fanOutRate(services));
    }
    return {
      direct_fanout_10k_tasks_per_s: median(direct),
      broker_fanout_10k_tasks_per_s: median(told),
      broker_over_direct_ratio: median(told.map((rate, round) => rate / (direct[round] ?? rate))),
      broker_window_messages: 2 * CONCURRENCY,
      direct_idle_to_running_p50_ms: await idleToRunning({ store: services.store }),
      broker_idle_to_running_p50_ms: await idleToRunning(services),
    };
  });
  return results ?? {};
}

/** Tasks a second of one run of 10,000 tasks side by side. */
async function fanOutRate({ store, broker }: Partial<BenchServices>): Promise<number> {
  const options = {
    workload: 'fanout',
    tasks: TASKS,
    concurrency: CONCURRENCY,
    cwd: tmpdir(),
    env: {},
  } as const;
  return (await measure({ ...options, store, broker })).tasks_per_s;
}

/** A durable Postgres and a Redis that writes its log every second, for as long as `use` takes. */
async function withServices<T>(use: (services: BenchServices) => Promise<T>): Promise<T | null> {
  const [postgres, redis] = [await startPostgres(''), await startRedis({ isDurable: true })];
  try {
    if ('reason' in postgres || 'reason' in redis) {
      for (const place of [postgres, redis])
        if ('reason' in place) process.stderr.write(`broker: skipped, ${place.reason}\n`);
      return null;
    }
    const { url } = await createDatabase(postgres.url);
    return await use({ store: url, broker: redis.url });
  } finally {
    if (!('reason' in redis)) await redis.remove();
    if (!('reason' in postgres)) postgres.remove();
  }
}

/** From the call that starts a run to the handler of its only task, one after the other. */
async function idleToRunning({ store, broker }: Partial<BenchServices>): Promise<number> {
  let called: () => void = () => {};
  const run: Handler['run'] = async (context) => {
    called();
    return transform.run(context as Parameters<typeof transform.run>[0]);
  };
  const relay = await LocalRelay.open({
    data: tmpdir(),
    store,
    broker,
    cwd: tmpdir(),
    env: {},
    by: 'bench',
    log: 'warn',
    writeLog: () => {},
    handlers: [defineHandler({ ...transform, run } as Handler)],
  });
  await relay.startEngine();
  const outbox = relay.broker === null ? null : await relay.startOutboxRelay(RELAY_DEFAULTS);
  const worker = await relay.startWorker({ concurrency: 16 });
  const times: number[] = [];
  for (let start = 0; start < STARTS; start++) {
    const startedAt = performance.now();
    const running = new Promise<void>((resolve) => {
      called = resolve;
    });
    const { id } = await relay.engine.startRun({ workflow: ONE }, { caller: 'bench' });
    await running;
    times.push(performance.now() - startedAt);
    while ((await relay.api.runs.get(id)).status !== 'SUCCESS')
      await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await worker.stop();
  await outbox?.stop();
  await relay.close();
  return median(times);
}

const ONE: Workflow = { name: 'one', tasks: { one: { uses: 'transform', with: { value: 1 }, needs: [] } } };

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
