/**
 * `npm run bench:peers [-- --quick] [-- --json]`: Relay beside what people use today. Contenders take turns in one run, three times,
 * each in a process of its own and with the number of tasks in flight that suits it best. Prints medians and the spread.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase } from '../../test/support/postgres.ts';
import {
  buildRelay,
  installPeers,
  peer,
  type Result,
  relay,
  type Services,
  startServices,
  type Workload,
} from './contenders.ts';
import { diamondsBy } from './processes.ts';
import { type Report, render, spread } from './report.ts';

const isQuick = process.argv.includes('--quick');
const isJson = process.argv.includes('--json');
const REPEATS = isQuick ? 1 : 3;
const TASKS: Readonly<Record<Workload, number>> = isQuick
  ? { fanout: 1_002, chain: 200, diamonds: 800 }
  : { fanout: 10_002, chain: 1_000, diamonds: 8_000 };
const WORKLOADS: readonly Workload[] = ['fanout', 'chain', 'diamonds'];
/** What contenders are tried with, a chain also one at a time; DBOS, for which each try takes long, with fewer. */
const IN_FLIGHT = isQuick ? [64] : [16, 64, 256, 1_000];
const DBOS_IN_FLIGHT = isQuick ? [64] : [16, 64, 200];
const KEPT_TASKS = isQuick ? 8_000 : 300_000;
const KEPT_BATCH = Math.min(KEPT_TASKS, 30_000);

/** One measurement of a contender. */
type Run = (workload: Workload) => Promise<Result>;

const note = (text: string): void => void process.stderr.write(`${text}\n`);

installPeers();
buildRelay();
const services = await startServices();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => {
    services.stop();
    process.exit(1);
  });
try {
  const report = await measureAll(services);
  process.stdout.write(isJson ? `${JSON.stringify(report, null, 2)}\n` : render(report));
} finally {
  services.stop();
}

async function measureAll({ postgres, redisPort }: Services): Promise<Report> {
  const onDatabase = async (use: (url: string) => Promise<Result>): Promise<Result> => {
    const { url, drop } = await createDatabase(postgres);
    return use(url).finally(drop);
  };
  const bullmq = (workload: Workload, inFlight: number): Promise<Result> =>
    peer('bullmq.mjs', workload, TASKS[workload], inFlight, redisPort);
  const dbos = (workload: Workload, inFlight: number): Promise<Result> =>
    onDatabase((url) => peer('dbos.mjs', workload, TASKS[workload], inFlight, url));
  const onSqlite = (workload: Workload, inFlight: number): Promise<Result> =>
    relay(workload, TASKS[workload], { inFlight });
  const onPostgres = (workload: Workload, inFlight: number): Promise<Result> =>
    onDatabase((store) => relay(workload, TASKS[workload], { store, inFlight }));
  const contenders: Readonly<Record<string, Run>> = {
    'Relay, SQLite': await tuned('Relay, SQLite', onSqlite),
    'Relay, Postgres': await tuned('Relay, Postgres', onPostgres),
    'BullMQ, Redis': await tuned('BullMQ', bullmq),
    'DBOS, Postgres': await tuned('DBOS', dbos, DBOS_IN_FLIGHT),
  };
  const results = await roundRobin(contenders);
  const kept = await keptAgainstFresh(postgres);
  note('two processes against one, diamonds');
  const [one, two]: [number[], number[]] = [[], []];
  for (let turn = 0; turn < REPEATS; turn++) {
    one.push(await diamondsBy(1, TASKS.diamonds / 4, postgres));
    two.push(await diamondsBy(2, TASKS.diamonds / 4, postgres));
  }
  return { tasks: TASKS, repeats: REPEATS, results, kept, processes: { one: spread(one), two: spread(two) } };
}

/** Tries each number of tasks in flight once for each workload, and keeps the best. */
async function tuned(
  name: string,
  run: (workload: Workload, inFlight: number) => Promise<Result>,
  tried: readonly number[] = IN_FLIGHT,
): Promise<Run> {
  const best = new Map<Workload, number>();
  for (const workload of WORKLOADS) {
    let rate = 0;
    for (const inFlight of workload === 'chain' ? [1, ...tried] : tried) {
      const { tasks_per_s } = await run(workload, inFlight);
      if (tasks_per_s > rate) best.set(workload, inFlight);
      rate = Math.max(rate, tasks_per_s);
    }
    note(`${name}, ${workload}: best with ${best.get(workload)} in flight (${rate} tasks/s)`);
  }
  return (workload) => run(workload, best.get(workload) ?? 1);
}

async function roundRobin(contenders: Readonly<Record<string, Run>>): Promise<Report['results']> {
  const measured = Object.keys(contenders).map((contender) => ({
    contender,
    workloads: WORKLOADS.map((workload) => ({
      workload,
      rates: [] as number[],
      hops: [] as number[],
      inFlight: 0,
    })),
  }));
  for (let turn = 1; turn <= REPEATS; turn++)
    for (const [index, workload] of WORKLOADS.entries())
      for (const { contender, workloads } of measured) {
        const result = await contenders[contender]?.(workload);
        const into = workloads[index];
        if (result === undefined || into === undefined) continue;
        note(
          `${turn}/${REPEATS} ${workload}, ${contender}: ${result.tasks_per_s} tasks/s, ${result.hop_ms.p50} ms a hop`,
        );
        into.rates.push(result.tasks_per_s);
        into.hops.push(result.hop_ms.p50);
        into.inFlight = Number(result.settings.concurrency);
      }
  return measured.map(({ contender, workloads }) => ({
    contender,
    workloads: workloads.map(({ workload, rates, hops, inFlight }) => ({
      workload,
      in_flight: inFlight,
      tasks_per_s: spread(rates),
      hop_p50_ms: spread(hops),
    })),
  }));
}

/** The same on a store that many tasks have gone through, in turn with fresh ones. */
async function keptAgainstFresh(postgres: string): Promise<Report['kept']> {
  const folder = mkdtempSync(join(tmpdir(), 'relay-kept-'));
  const database = await createDatabase(postgres);
  const stores = { 'Relay, SQLite': `sqlite:${join(folder, 'kept.db')}`, 'Relay, Postgres': database.url };
  const all: Report['kept'][number][] = [];
  try {
    for (const [contender, store] of Object.entries(stores)) {
      note(`${contender}: ${KEPT_TASKS} tasks through one store`);
      for (let done = 0; done < KEPT_TASKS; done += KEPT_BATCH)
        await relay('diamonds', KEPT_BATCH, { store });
      for (const workload of WORKLOADS) {
        const ratios: number[] = [];
        for (let turn = 0; turn < REPEATS; turn++) {
          const other = await createDatabase(postgres);
          const fresh = await relay(workload, TASKS[workload], {
            store: store.startsWith('sqlite') ? undefined : other.url,
          });
          await other.drop();
          const kept = await relay(workload, TASKS[workload], { store });
          ratios.push(
            workload === 'chain' ? fresh.hop_ms.p50 / kept.hop_ms.p50 : kept.tasks_per_s / fresh.tasks_per_s,
          );
        }
        all.push({ contender, workload, tasks_before: KEPT_TASKS, kept_over_fresh: spread(ratios) });
        note(`${contender}, ${workload}: kept is ${spread(ratios).median.toFixed(2)} × fresh`);
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await database.drop();
  }
  return all;
}
