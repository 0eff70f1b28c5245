/** The door: starting runs, working and following events over HTTP on loopback, beside the same without it. Needs `npm run build`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, follow, ROUTES } from '../client/src/index.ts';
import { LocalRelay } from '../src/app/local-relay.ts';

const MAIN = join(process.cwd(), 'dist', 'cli', 'main.js');
const STARTS = 3_000;
const TASKS = 8_000;
const HOPS = 400;
const LANES = 8;
const STREAMS = 500;
const DIAMOND = {
  name: 'diamond',
  tasks: {
    a: { uses: 'transform', with: { value: 1 } },
    b: { uses: 'transform', with: { value: '{{ tasks.a.output }}' } },
    c: { uses: 'transform', with: { value: '{{ tasks.a.output }}' } },
    d: { uses: 'transform', with: { value: '{{ tasks.b.output + tasks.c.output }}' } },
  },
};
const RAW_SERVER = `import Fastify from 'fastify';
const app = Fastify(); app.post('/', async (request) => ({ got: request.body }));
await app.listen({ port: 0 }); process.stdout.write(String(app.server.address().port));`;

/** Rates per second and times in milliseconds. */
export async function httpBench(): Promise<Record<string, number>> {
  if (!existsSync(MAIN)) return {};
  const raw = await rawRate();
  const local = await localRate();
  const cwd = mkdtempSync(join(tmpdir(), 'relay-bench-'));
  const server = await startServer(cwd);
  try {
    const starts = await startRate(server);
    const hop = await hopTime(server);
    const work = await workRate(server, cwd);
    const followers = await openStreams(server, STREAMS);
    const watched = await workRate(server, cwd);
    for (const leave of followers) leave();
    return {
      http_raw_fastify_posts_per_s: raw,
      http_local_starts_per_s: local,
      http_starts_per_s: starts,
      http_starts_of_local_ratio: starts / local,
      http_worker_hop_p50_ms: hop,
      ...work,
      http_worker_with_500_streams_ratio:
        (watched.http_worker_tasks_per_s ?? 0) / (work.http_worker_tasks_per_s ?? 1),
    };
  } finally {
    server.child.kill('SIGKILL');
    rmSync(cwd, { recursive: true, force: true });
  }
}

interface Served {
  readonly child: ChildProcess;
  readonly url: string;
  readonly token: string;
}

/** As many calls as there are, a few at a time; how many a second. */
async function rate(count: number, call: (index: number) => Promise<unknown>): Promise<number> {
  let next = 0;
  const startedAt = performance.now();
  const lane = async (): Promise<void> => {
    while (next < count) await call(next++);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return count / ((performance.now() - startedAt) / 1_000);
}

const agent = new Agent({ keepAlive: true, maxSockets: LANES });

function post(url: string, body: string, token?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    const sent = request(url, { method: 'POST', agent, headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      answer.on('end', () => resolve(text));
    });
    sent.on('error', reject).end(body);
  });
}

async function rawRate(): Promise<number> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', RAW_SERVER], {
    cwd: process.cwd(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const port = await new Promise<string>((resolve) =>
    child.stdout.once('data', (text: Buffer) => resolve(String(text))),
  );
  const body = JSON.stringify({ definition: DIAMOND });
  try {
    await rate(500, () => post(`http://127.0.0.1:${port}/`, body));
    return await rate(STARTS, () => post(`http://127.0.0.1:${port}/`, body));
  } finally {
    child.kill('SIGKILL');
  }
}

async function localRate(): Promise<number> {
  const cwd = mkdtempSync(join(tmpdir(), 'relay-bench-'));
  const options = { data: '.relay', cwd, env: {}, log: 'silent', writeLog: () => {}, by: 'bench' } as const;
  const relay = await LocalRelay.open(options);
  try {
    await rate(200, () => relay.api.runs.start({ definition: DIAMOND }));
    return await rate(STARTS, () => relay.api.runs.start({ definition: DIAMOND }));
  } finally {
    await relay.close();
    rmSync(cwd, { recursive: true, force: true });
  }
}

async function startServer(cwd: string): Promise<Served> {
  const ready = join(cwd, 'ready.json');
  const argv = [MAIN, 'serve', '--port', '0', '--no-worker', '--ready-file', ready];
  const child = spawn(process.execPath, argv, { cwd, env: { HOME: cwd }, stdio: 'ignore' });
  while (!existsSync(ready)) await new Promise((resolve) => setTimeout(resolve, 20));
  const { url } = JSON.parse(readFileSync(ready, 'utf8')) as { url: string };
  return { child, url, token: readFileSync(join(cwd, '.relay', 'token'), 'utf8').trim() };
}

async function startRate({ url, token }: Served): Promise<number> {
  const body = JSON.stringify({ definition: DIAMOND });
  await rate(200, () => post(`${url}/api/v1/runs`, body, token));
  return rate(STARTS, () => post(`${url}/api/v1/runs`, body, token));
}

/** One worker that settles and claims one task a call: what a hop over HTTP costs. */
async function hopTime({ url, token }: Served): Promise<number> {
  const call = async (
    path: string,
    body: object,
  ): Promise<{ leases: { lease_id: string }[]; worker_id: string }> =>
    JSON.parse(await post(`${url}/api/v1${path}`, JSON.stringify(body), token));
  const { worker_id } = await call('/workers/register', { boot_id: 'b', handlers: ['transform'] });
  const times: number[] = [];
  let settlements: object[] = [];
  for (let hop = 0; hop < HOPS; hop++) {
    const startedAt = performance.now();
    const { leases } = await call(`/workers/${worker_id}/claim`, {
      limit: 1,
      claim_id: `c${hop}`,
      settlements,
    });
    times.push(performance.now() - startedAt);
    settlements = leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }));
  }
  await call(`/workers/${worker_id}/claim`, { limit: 0, settlements });
  return median(times);
}

/** People who each follow a run of their own. */
async function openStreams({ url, token }: Served, count: number): Promise<readonly (() => void)[]> {
  const client = createClient({ url, token });
  const { id } = await client.runs.start({ open: true, auto_close: false });
  client.close();
  const many = new Agent({ keepAlive: false, maxSockets: count });
  const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
  return Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<() => void>((resolve, reject) => {
          const sent = request(`${url}/api/v1/runs/${id}/events`, { agent: many, headers }, (answer) => {
            answer.resume().on('error', () => {});
            resolve(() => sent.destroy());
          });
          sent.on('error', reject).end();
        }),
    ),
  );
}

/** A worker process works everything off, while somebody follows the events. */
async function workRate({ url, token }: Served, cwd: string): Promise<Record<string, number>> {
  const client = createClient({ url, token });
  const before = await client.runs.list({ status: 'RUNNING', limit: 1_000 });
  for (
    let page = before;
    page.items.length > 0;
    page = await client.runs.list({ status: 'RUNNING', limit: 1_000 })
  )
    await rate(page.items.length, (index) => client.runs.cancel(page.items[index]?.id ?? ''));
  const tasks = Object.fromEntries(
    Array.from({ length: TASKS }, (_, n) => [`t${n}`, { uses: 'transform', with: { value: n } }]),
  );
  const delays: number[] = [];
  const following = new AbortController();
  const listening = (async () => {
    for await (const { data } of follow(client.http, ROUTES.events.page, { signal: following.signal }))
      delays.push(
        performance.timeOrigin + performance.now() - Date.parse((JSON.parse(data) as { at: string }).at),
      );
  })();
  const { id } = await client.runs.start({ definition: { name: 'wide', tasks } });
  const argv = [MAIN, 'worker', '--server', url, '--concurrency', '64', '--exit-when-idle'];
  const worker = spawn(process.execPath, argv, { cwd, env: { HOME: cwd }, stdio: 'ignore' });
  await new Promise((resolve) => worker.once('exit', resolve));
  following.abort();
  await listening;
  client.close();
  const run = await client.runs.get(id);
  const first = Date.parse(run.tasks.map((task) => task.started_at ?? '').toSorted()[0] ?? '');
  const seconds = (Date.parse(run.finished_at ?? '') - first) / 1_000;
  return { http_worker_tasks_per_s: TASKS / seconds, http_event_delay_p50_ms: median(delays) };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
