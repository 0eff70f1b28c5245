// DBOS on Postgres, one process: `node dbos.mjs WORKLOAD TASKS IN_FLIGHT DATABASE_URL` prints one JSON result.
// A task is a step: DBOS checkpoints it and knows nothing cheaper. Steps of one workflow run in the process that started it.
import { DBOS } from '@dbos-inc/dbos-sdk';
import { Meter, printResult, warmUp } from './meter.mjs';

const POOL_MAX = 64;
const [workload = '', tasks = '0', inFlight = '64', systemDatabaseUrl = ''] = process.argv.slice(2);
const concurrency = Number(inFlight);
const systemDatabasePoolSize = Math.max(10, Math.min(concurrency, POOL_MAX));
const meter = new Meter();

const step = (run, id, needs) =>
  DBOS.runStep(
    async () => {
      meter.called(run, id, needs);
      return 1;
    },
    { name: id },
  ).then(() => meter.ended());

/** Runs calls in their order, so many at once: workflows must start their steps in the same order every time. */
async function atOnce(limit, calls) {
  let next = 0;
  const lane = async () => {
    while (next < calls.length) await calls[next++]();
  };
  await Promise.all(Array.from({ length: Math.min(limit, calls.length) }, lane));
}

const fanout = DBOS.registerWorkflow(
  async (run, width) => {
    await step(run, 'first', []);
    await atOnce(
      concurrency,
      Array.from({ length: width }, (_, n) => () => step(run, `t${n}`, ['first'])),
    );
    await step(run, 'last', ['*']);
  },
  { name: 'fanout' },
);
const chain = DBOS.registerWorkflow(
  async (run, length) => {
    for (let n = 0; n < length; n++) await step(run, `t${n}`, n === 0 ? [] : [`t${n - 1}`]);
  },
  { name: 'chain' },
);
const diamond = DBOS.registerWorkflow(
  async (run) => {
    await step(run, 'a', []);
    await Promise.all([step(run, 'b', ['a']), step(run, 'c', ['a'])]);
    await step(run, 'd', ['b', 'c']);
  },
  { name: 'diamond' },
);

/** Runs a workload to its end; gives how many steps it was. */
const runs = {
  fanout: async (count, run) => {
    const width = Math.max(1, count - 2);
    await fanout(run, width);
    return width + 2;
  },
  chain: async (count, run) => {
    await chain(run, count);
    return count;
  },
  diamonds: async (count, run) => {
    const calls = Array.from({ length: Math.max(1, Math.round(count / 4)) }, (_, n) => () => {
      return diamond(`${run}-${n}`);
    });
    await atOnce(concurrency, calls);
    return calls.length * 4;
  },
};

async function measure(count, run) {
  meter.reset();
  const startedAt = performance.now();
  const total = await runs[workload](count, run);
  return { total, seconds: (performance.now() - startedAt) / 1_000 };
}

DBOS.setConfig({
  name: 'relay-bench',
  applicationVersion: '1',
  systemDatabaseUrl,
  systemDatabasePoolSize,
  logLevel: 'error',
  tracingEnabled: false,
  enableOTLP: false,
});
await DBOS.launch();
await warmUp(Number(tasks), measure);
const { total, seconds } = await measure(Number(tasks), 'run');
printResult({ workload, total, seconds, meter, settings: { concurrency, systemDatabasePoolSize } });
await DBOS.shutdown();
process.exit(0);
