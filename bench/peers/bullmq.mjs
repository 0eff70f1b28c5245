// BullMQ flows on Redis, one process: `node bullmq.mjs WORKLOAD TASKS CONCURRENCY REDIS_PORT` prints one JSON result.
// A flow is a tree whose parents wait for their children, so a chain is one nested flow, and what fans out first (1 → N → 1,
// a diamond) is a job whose processor adds the flow of the rest. Finished jobs are removed, as its guide for production says.
import { FlowProducer, Queue, Worker } from 'bullmq';
import { Meter, printResult, warmUp } from './meter.mjs';

const [workload = '', tasks = '0', inFlight = '64', port = '6379'] = process.argv.slice(2);
const concurrency = Number(inFlight);
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null };
const opts = { removeOnComplete: true, removeOnFail: true };
const queueName = 'bench';
const meter = new Meter();
const queue = new Queue(queueName, { connection, streams: { events: { maxLen: 1 } } });
const flows = new FlowProducer({ connection });

const job = (name, data, children) => ({ name, queueName, data, opts, ...(children && { children }) });

/** What a job does after the no-op: roots of shapes that fan out add the rest. */
const after = {
  first: ({ run, width }) =>
    flows.add(
      job(
        'last',
        { run, needs: ['*'] },
        Array.from({ length: width }, (_, n) => job('middle', { run, id: `t${n}`, needs: ['first'] })),
      ),
    ),
  a: ({ run }) =>
    flows.add(
      job('d', { run, needs: ['b', 'c'] }, [
        job('b', { run, needs: ['a'] }),
        job('c', { run, needs: ['a'] }),
      ]),
    ),
};

const worker = new Worker(
  queueName,
  async ({ name, data }) => {
    meter.called(data.run, data.id ?? name, data.needs ?? []);
    await after[name]?.(data);
    return 1;
  },
  { connection, concurrency, autorun: false },
);
worker.on('error', (error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
worker.on('completed', () => meter.ended());

/** Starts a workload; gives how many jobs it is. */
const start = {
  fanout: async (count, run) => {
    const width = Math.max(1, count - 2);
    await queue.add('first', { run, width }, opts);
    return width + 2;
  },
  chain: async (count, run) => {
    let node;
    for (let n = 0; n < count; n++)
      node = job('link', { run, id: `t${n}`, needs: n === 0 ? [] : [`t${n - 1}`] }, node && [node]);
    await flows.add(node);
    return count;
  },
  diamonds: async (count, run) => {
    const roots = Array.from({ length: Math.max(1, Math.round(count / 4)) }, (_, n) => ({
      name: 'a',
      data: { run: `${run}-${n}` },
      opts,
    }));
    await queue.addBulk(roots);
    return roots.length * 4;
  },
};

async function measure(count, run) {
  meter.reset();
  const startedAt = performance.now();
  const total = await start[workload](count, run);
  await meter.allEnded(total);
  return { total, seconds: (performance.now() - startedAt) / 1_000 };
}

await worker.waitUntilReady();
void worker.run();
await warmUp(Number(tasks), measure);
const { total, seconds } = await measure(Number(tasks), 'run');
printResult({
  workload,
  total,
  seconds,
  meter,
  settings: { concurrency, removeOnComplete: true, redis: 'appendonly yes, appendfsync everysec' },
});
await worker.close();
await flows.close();
await queue.close();
