/** A worker behind HTTP: answers that get lost, leases that were given away, files, labels, and a server that restarts. */
import { createHash } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { bytesOf, Http, ROUTES } from '../../client/src/index.ts';
import { type BenchOptions, OWN_TOKEN, ServerBench } from '../../test/support/server-bench.ts';
import { systemClock } from '../base/clock.ts';
import type { ErrorCode } from '../base/error-codes.ts';
import { RelayError } from '../base/errors.ts';
import { createLogger } from '../base/logger.ts';
import { defineHandler, type Handler, TerminalError } from '../handlers/handler.ts';
import { HttpSource, type WorkerCard } from './http-source.ts';
import { Worker } from './worker.ts';

const logger = createLogger({ level: 'silent', clock: systemClock, write: () => {} });
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function openBench(options: BenchOptions = {}): Promise<ServerBench> {
  const bench = await ServerBench.open(options);
  closing.push(() => bench.close());
  return bench;
}

const double = defineHandler({
  name: 'double',
  summary: 'twice the number',
  config: z.object({ n: z.number() }),
  run: async ({ config }) => config.n * 2,
} as Handler<{ n: number }>);

async function startWorker(
  bench: ServerBench,
  options: {
    fetch?: typeof fetch;
    handlers?: readonly Handler[];
    card?: Partial<WorkerCard>;
    concurrency?: number;
  } = {},
): Promise<{ worker: Worker; source: HttpSource }> {
  const handlers = options.handlers ?? [double as Handler];
  const toError = ({ code, message }: { code: string; message: string }) =>
    new RelayError(code as ErrorCode, message);
  const http = new Http({
    url: bench.url,
    token: OWN_TOKEN,
    toError,
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
  });
  const source = new HttpSource({
    http,
    card: { handlers: handlers.map(({ name }) => name), ...options.card },
    logger,
    onDrain: () => void worker.drain(),
    waitS: 5,
  });
  const worker = new Worker({
    source,
    handlers: new Map(handlers.map((handler) => [handler.name, handler])),
    concurrency: options.concurrency ?? 8,
    clock: systemClock,
    logger,
    env: {},
    workdir: bench.folder,
    shutdownGraceMs: 1_000,
  });
  await worker.start();
  closing.push(() => worker.stop(0));
  return { worker, source };
}

function doubles(count: number, worker?: object) {
  const tasks = Object.fromEntries(
    Array.from({ length: count }, (_, n) => [
      `t${n}`,
      { uses: 'double', with: { n }, ...(worker === undefined ? {} : { worker }) },
    ]),
  );
  return { name: 'doubles', handlers: ['double'], tasks };
}

// SPEC S11.1, S11.2
describe('a worker behind HTTP', () => {
  it('runs tasks of a handler that the server does not have', async () => {
    const bench = await openBench();
    await startWorker(bench);
    const { id } = await bench.client().runs.start({ definition: doubles(50) });
    const run = await bench.client().runs.get(id, { wait_ms: 20_000 });
    expect(run.status).toBe('SUCCESS');
    expect(run.tasks.map((task) => task.output)).toEqual(Array.from({ length: 50 }, (_, n) => n * 2));
  });

  // SPEC S4.9, S13.1
  it('gets the items of a map through the same leases, with their index', async () => {
    const bench = await openBench();
    const place = defineHandler({
      name: 'place',
      summary: 'says which item it is',
      config: z.object({ of: z.string() }),
      run: async ({ config, task }) => `${task.map_index} of ${config.of}`,
    } as Handler<{ of: string }>);
    await startWorker(bench, { handlers: [place as Handler] });
    const client = bench.client();
    const map = { for_each: ['a', 'b', 'c'], uses: 'place', with: { of: '{{ item }}' } };
    const definition = { name: 'places', handlers: ['place'], tasks: { map } };
    const { id } = await client.runs.start({ definition });
    const run = await client.runs.get(id, { wait_ms: 20_000 });
    expect(run.tasks[0]).toMatchObject({
      output: ['0 of a', '1 of b', '2 of c'],
      items: { total: 3, done: 3, failed: 0 },
    });
    const first = await client.runs.tasks(id, { task_id: 'map', limit: 2 });
    const rest = await client.runs.tasks(id, { task_id: 'map', cursor: first.next_cursor ?? '' });
    expect([...first.items, ...rest.items].map(({ map_index }) => map_index)).toEqual([null, 0, 1, 2]);
    expect(rest.next_cursor).toBeNull();
    const [item] = (await client.runs.tasks(id, { task_id: 'map', map_index: 1 })).items;
    expect(item).toMatchObject({ map_index: 1, output: '1 of b', items: null });
    expect((await client.runs.tasks(id, { task_id: 'map', map_index: 3 })).items).toEqual([]);
  });

  it('finishes its tasks with nothing recorded twice when every second answer is lost', async () => {
    const bench = await openBench();
    let calls = 0;
    const lossy: typeof fetch = async (...args) => {
      const response = await fetch(...args);
      calls += 1;
      if (calls % 2 === 1) return response;
      await response.arrayBuffer();
      throw new TypeError('the answer was lost');
    };
    await startWorker(bench, { fetch: lossy, concurrency: 4 });
    const client = bench.client();
    const { id } = await client.runs.start({ definition: doubles(20) });
    const run = await client.runs.get(id, { wait_ms: 25_000 });
    expect(run.status).toBe('SUCCESS');
    expect(run.tasks.every((task) => task.attempt === 1)).toBe(true);
    const { items } = await client.events.page({ run_id: id, limit: 1_000, types: ['task.completed'] });
    expect(items).toHaveLength(20);
  });

  it('hands over results that it finished while the server was away', async () => {
    const bench = await openBench();
    let finish: () => void = () => {};
    let begun: () => void = () => {};
    const hasBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const mayFinish = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const slow = defineHandler({
      name: 'double',
      summary: 'twice the number',
      config: z.object({ n: z.number() }),
      run: async () => {
        begun();
        await mayFinish;
        return 'kept';
      },
    } as Handler<{ n: number }>);
    await startWorker(bench, { handlers: [slow as Handler] });
    const { id } = await bench.client().runs.start({ definition: doubles(1) });
    await hasBegun;
    const { port } = bench;
    await bench.stop();
    finish();
    await bench.start(port);
    const run = await bench.client().runs.get(id, { wait_ms: 20_000 });
    expect(run.tasks[0]).toMatchObject({ status: 'SUCCESS', output: 'kept', attempt: 1 });
  });

  it('sends files and large outputs ahead', async () => {
    const bench = await openBench();
    const large = 'x'.repeat(600_000);
    const writer = defineHandler({
      name: 'double',
      summary: 'twice the number',
      config: z.object({ n: z.number() }),
      run: async (context) => {
        context.artifact({ name: 'a.txt', content_type: 'text/plain', bytes: Buffer.from('hello') });
        context.log('working\n');
        return large;
      },
    } as Handler<{ n: number }>);
    await startWorker(bench, { handlers: [writer as Handler] });
    const client = bench.client();
    const { id } = await client.runs.start({ definition: doubles(1) });
    const [task] = (await client.runs.get(id, { wait_ms: 20_000 })).tasks;
    expect(task).toMatchObject({ status: 'SUCCESS', output: null });
    const output = await client.tasks.artifact(task?.output_ref ?? '');
    expect(JSON.parse(Buffer.from(await bytesOf(output)).toString())).toBe(large);
    const { items } = await client.tasks.artifacts(task?.task_run_id ?? '');
    const file = items.find((artifact) => artifact.name === 'a.txt');
    const text = await bytesOf(await client.tasks.artifact(file?.id ?? ''));
    expect(Buffer.from(text).toString()).toBe('hello');
    expect((await client.tasks.logs(task?.task_run_id ?? '')).items[0]?.text).toBe('working\n');
  });

  it('fails an attempt whose files the server does not take, and holds nobody else up', async () => {
    const bench = await openBench();
    const picky: typeof fetch = async (url, init) => {
      const error = { code: 'PAYLOAD_TOO_LARGE', message: 'too large', hint: '' };
      if (init?.method === 'PUT') return new Response(JSON.stringify({ error }), { status: 413 });
      return fetch(url, init);
    };
    const writer = defineHandler({
      name: 'double',
      summary: 'leaves a file',
      config: z.object({ n: z.number() }),
      run: async ({ config, artifact }) => {
        if (config.n === 0) artifact({ name: 'a', content_type: 'text/plain', bytes: Buffer.from('x') });
        return config.n;
      },
    } as Handler<{ n: number }>);
    await startWorker(bench, { handlers: [writer as Handler], fetch: picky });
    const definition = { ...doubles(4), on_failure: 'continue', defaults: { retry: { max_attempts: 1 } } };
    const { id } = await bench.client().runs.start({ definition });
    const { tasks } = await bench.client().runs.get(id, { wait_ms: 20_000 });
    expect(tasks.map(({ status }) => status)).toEqual(['FAILED', 'SUCCESS', 'SUCCESS', 'SUCCESS']);
    expect(tasks[0]?.error).toMatchObject({ class: 'output', code: 'PAYLOAD_TOO_LARGE' });
  });

  it('keeps its leases when one of them has a checkpoint that is too large', async () => {
    const bench = await openBench();
    const worker = new HttpSource({
      http: new Http({
        url: bench.url,
        token: OWN_TOKEN,
        toError: ({ code, message }) => new RelayError(code as ErrorCode, message),
      }),
      card: { handlers: ['held'] },
      logger,
      onDrain: () => {},
    });
    const held = { name: 'held', handlers: ['held'], tasks: { a: { uses: 'held' }, b: { uses: 'held' } } };
    await bench.client().runs.start({ definition: held });
    await worker.register();
    const { leases } = await worker.next({ limit: 2, settlements: [], signal: AbortSignal.timeout(5_000) });
    const [large, small] = leases.map(({ lease_id }) => lease_id);
    const answers = await worker.extend([
      { lease_id: large ?? '', checkpoint: 'x'.repeat(9 * 1024 * 1024), progress: 0.5 },
      { lease_id: small ?? '', checkpoint: 'kept' },
    ]);
    expect(answers.map(({ order }) => order)).toEqual(['continue', 'continue']);
    await worker.close();
  });

  it('sends logs that came together while the server was away, however many', async () => {
    const bench = await openBench();
    const { source } = await startWorker(bench, { handlers: [double as Handler] });
    const held = { name: 'talk', handlers: ['talk'], tasks: { a: { uses: 'talk' } } };
    const { id } = await bench.client().runs.start({ definition: held });
    await bench.post('/workers/register', { worker_id: 'w', boot_id: 'b', handlers: ['talk'] });
    const claimed = (await (await bench.post('/workers/w/claim', { limit: 1, wait_s: 5 })).json()) as {
      leases: { lease_id: string }[];
    };
    const lease_id = claimed.leases[0]?.lease_id ?? '';
    const text = '\u0001'.repeat(16 * 1024);
    await source.log(Array.from({ length: 300 }, () => ({ lease_id, stream: 'stdout' as const, text })));
    expect((await bench.client().runs.logs(id, { limit: 1_000 })).items).toHaveLength(300);
  });

  it('sends files of a failed attempt, and masks in them what the server says is secret', async () => {
    const bench = await openBench({ env: { TIDE_KEY: 'low-water-mark' } });
    const failing = defineHandler({
      name: 'double',
      summary: 'fails',
      config: z.object({ n: z.number(), key: z.string() }),
      run: async ({ config, artifact, redact }) => {
        artifact({
          name: 'raw',
          content_type: 'text/plain',
          bytes: Buffer.from(redact(`it was ${config.key}`)),
        });
        throw new TerminalError('no');
      },
    } as Handler<{ n: number; key: string }>);
    await startWorker(bench, { handlers: [failing as Handler] });
    const client = bench.client();
    const tasks = { t: { uses: 'double', with: { n: 1, key: '{{ secrets.TIDE_KEY }}' } } };
    const definition = { name: 'd', handlers: ['double'], secrets: ['TIDE_KEY'], tasks };
    const { id } = await client.runs.start({ definition });
    const [task] = (await client.runs.get(id, { wait_ms: 20_000 })).tasks;
    expect(task).toMatchObject({ status: 'FAILED', error: { code: 'HANDLER_TERMINAL' } });
    const [file] = (await client.tasks.artifacts(task?.task_run_id ?? '')).items;
    expect(file?.name).toBe('raw');
    const pieces: Uint8Array[] = [];
    for await (const piece of await (await client.tasks.artifact(file?.id ?? '')).read()) pieces.push(piece);
    expect(Buffer.concat(pieces).toString()).toBe('it was ***');
  });

  it('gets only what fits its pool and labels', async () => {
    const bench = await openBench();
    const client = bench.client();
    const { id } = await client.runs.start({
      definition: doubles(1, { pool: 'gpu', labels: { region: 'eu' } }),
    });
    const claim = async (card: object) => {
      const registered = await bench.post('/workers/register', {
        boot_id: 'b',
        handlers: ['double'],
        ...card,
      });
      const { worker_id } = (await registered.json()) as { worker_id: string };
      const answer = await bench.post(`/workers/${worker_id}/claim`, { limit: 1 });
      return ((await answer.json()) as { leases: unknown[] }).leases.length;
    };
    expect(await claim({})).toBe(0);
    expect(await claim({ pool: 'gpu', labels: { region: 'us' } })).toBe(0);
    expect(await claim({ pool: 'cpu', labels: { region: 'eu' } })).toBe(0);
    expect(await claim({ pool: 'gpu', labels: { region: 'eu', more: 'x' } })).toBe(1);
    expect((await client.runs.get(id)).tasks[0]?.status).toBe('RUNNING');
  });

  it('leaves when it is asked to, and is gone from the list', async () => {
    const bench = await openBench();
    const { source, worker } = await startWorker(bench);
    const client = bench.client();
    const id = await untilRegistered(source);
    await client.workers.drain(id);
    await worker.drain();
    await source.close();
    expect((await client.workers.list()).items).toEqual([]);
  });
});

async function untilRegistered(source: HttpSource): Promise<string> {
  while (source.workerId === null) await new Promise((resolve) => setImmediate(resolve));
  return source.workerId;
}

interface Claimed {
  readonly results: readonly { readonly ok: boolean; readonly code?: string }[];
  readonly leases: readonly { readonly lease_id: string; readonly attempt: number }[];
}

// SPEC S4.4, S4.5, S4.6, S6.1
describe('the lease protocol', () => {
  async function prepared() {
    const bench = await openBench();
    const client = bench.client();
    const { id } = await client.runs.start({ definition: doubles(1) });
    const register = (boot_id: string, worker_id = 'w') =>
      bench.post('/workers/register', { boot_id, worker_id, handlers: ['double'] });
    await register('one');
    const claim = async (body: object, worker = 'w'): Promise<Claimed> =>
      (await (await bench.post(`/workers/${worker}/claim`, { limit: 1, ...body })).json()) as Claimed;
    return { bench, client, id, register, claim };
  }

  it('gives the same leases for the same claim_id', async () => {
    const { claim } = await prepared();
    const first = await claim({ claim_id: 'c1' });
    const again = await claim({ claim_id: 'c1' });
    expect(first.leases).toHaveLength(1);
    expect(again.leases.map((lease) => lease.lease_id)).toEqual(first.leases.map((lease) => lease.lease_id));
    expect((await claim({ claim_id: 'c2' })).leases).toEqual([]);
  });

  it('changes nothing for a zombie whose task was given away, but counts what it used, once', async () => {
    const { bench, client, id, register, claim } = await prepared();
    const [old] = (await claim({})).leases;
    const freed = (await (await register('two')).json()) as { freed: number };
    expect(freed.freed).toBe(1);
    const [fresh] = (await claim({ wait_s: 20 })).leases;
    expect(fresh?.attempt).toBe(2);
    const stale = { output: 'zombie', usage: { tokens_in: 5 } };
    for (let times = 0; times < 2; times++) {
      const response = await bench.post(`/leases/${old?.lease_id}/complete`, stale);
      expect(response.status).toBe(409);
      expect(await response.json()).toMatchObject({ error: { code: 'STALE_LEASE' } });
    }
    for (const verb of ['start', 'checkpoint', 'logs', 'release', 'fail', 'pause']) {
      const bodies: Record<string, object> = {
        checkpoint: { checkpoint: 1 },
        logs: { chunks: [{ stream: 'log', text: 'boo' }] },
        fail: { failure: { class: 'handler', code: 'X', message: 'no' } },
        pause: { status: 'BLOCKED', question: { key: 'k', message: 'm' } },
      };
      expect((await bench.post(`/leases/${old?.lease_id}/${verb}`, bodies[verb] ?? {})).status).toBe(409);
    }
    const done = await bench.post(`/leases/${fresh?.lease_id}/complete`, {
      output: 4,
      usage: { tokens_in: 1 },
    });
    expect(await done.json()).toMatchObject({ ok: true, status: 'SUCCESS' });
    const run = await client.runs.get(id, { wait_ms: 5_000 });
    expect(run.tasks[0]).toMatchObject({ output: 4, usage: { tokens_in: 6 } });
    expect((await client.tasks.logs(run.tasks[0]?.task_run_id ?? '')).items).toEqual([]);
  });

  it('answers a repeated settlement as the first, and another content with a conflict', async () => {
    const { bench, claim } = await prepared();
    const [lease] = (await claim({})).leases;
    const complete = (output: unknown) => bench.post(`/leases/${lease?.lease_id}/complete`, { output });
    const first = await (await complete(7)).json();
    expect(await (await complete(7)).json()).toEqual(first);
    const other = await complete(8);
    expect(await other.json()).toMatchObject({ error: { code: 'IDEMPOTENCY_CONFLICT' } });
    const settlements = [{ kind: 'complete', lease_id: lease?.lease_id, output: 7 }];
    expect((await claim({ settlements, wait_s: 30 })).results).toMatchObject([{ ok: true }]);
  });

  it('tells a heartbeat to cancel, and takes progress and checkpoints', async () => {
    const { bench, client, id, claim } = await prepared();
    const [lease] = (await claim({ start: false })).leases;
    const beat = async (more: object = {}) => {
      const body = { leases: [{ lease_id: lease?.lease_id, ...more }] };
      return (await (await bench.post('/workers/w/heartbeat', body)).json()) as {
        leases: { order: string }[];
      };
    };
    expect((await client.runs.get(id)).tasks[0]?.status).toBe('LEASED');
    expect((await bench.post(`/leases/${lease?.lease_id}/start`, {})).status).toBe(200);
    expect((await client.runs.get(id)).tasks[0]?.status).toBe('RUNNING');
    expect((await beat({ progress: 0.5, message: 'half' })).leases[0]?.order).toBe('continue');
    expect((await client.runs.get(id)).tasks[0]).toMatchObject({ progress: 0.5, message: 'half' });
    await client.runs.cancel(id);
    expect((await beat()).leases[0]?.order).toBe('cancel');
  });

  // TRANSITIONS 32
  it('asks a question that ends with its time', async () => {
    const bench = await openBench();
    const asking = defineHandler({
      name: 'asking',
      summary: 'asks',
      config: z.object({}),
      run: async ({ ask }) => ask({ key: 'q', message: 'anybody?', timeout: '10ms' }),
    }) as Handler;
    await startWorker(bench, { handlers: [asking] });
    const { id } = await bench.client().runs.start({
      definition: { name: 'asks', handlers: ['asking'], tasks: { a: { uses: 'asking' } } },
    });
    const { tasks } = await bench.client().runs.get(id, { wait_ms: 20_000 });
    expect(tasks[0]).toMatchObject({ status: 'FAILED', error: { class: 'rejected' } });
    const refused = await bench.post('/leases/x/pause', {
      status: 'BLOCKED',
      question: { key: 'q', message: '?', timeout: 'soon' },
    });
    expect(refused.status).toBe(400);
  });

  it('takes a blob only under its own hash, and only for a live lease', async () => {
    const { bench, claim } = await prepared();
    const [lease] = (await claim({})).leases;
    const put = (lease_id: string | undefined, key: string, body: string) =>
      bench.request(`/leases/${lease_id}/blobs/${key}`, {
        method: 'PUT',
        body,
        headers: { 'content-type': 'application/octet-stream' },
      });
    const hash = createHash('sha256').update('hello').digest('hex');
    expect((await put(lease?.lease_id, hash, 'hello')).status).toBe(200);
    expect((await put(lease?.lease_id, hash, 'other')).status).toBe(400);
    expect((await put('1.1.00000000-0000-0000-0000-000000000000', hash, 'hello')).status).toBe(409);
    const read = await bench.request(`/leases/${lease?.lease_id}/blobs/${hash}`);
    expect(await read.text()).toBe('hello');
  });

  it('does not hand secrets of tasks back in logs and errors', async () => {
    const bench = await openBench({ env: { DEEP_SECRET: 'hunter2-hunter2' } });
    const client = bench.client();
    const definition = {
      name: 'secretive',
      handlers: ['double'],
      secrets: ['DEEP_SECRET'],
      tasks: {
        a: { uses: 'double', with: { key: '{{ secrets.DEEP_SECRET }}' }, retry: { max_attempts: 1 } },
      },
    };
    const { id } = await client.runs.start({ definition });
    await bench.post('/workers/register', { boot_id: 'b', worker_id: 'w', handlers: ['double'] });
    const claimed = (await (await bench.post('/workers/w/claim', { limit: 1 })).json()) as {
      leases: { lease_id: string; config: { key: string } }[];
    };
    const [lease] = claimed.leases;
    expect(lease?.config.key).toBe('hunter2-hunter2');
    const chunks = [{ stream: 'log', text: 'key is hunter2-hunter2' }];
    await bench.post(`/leases/${lease?.lease_id}/logs`, { chunks });
    const failure = { class: 'handler', code: 'X', message: 'bad hunter2-hunter2' };
    await bench.post(`/leases/${lease?.lease_id}/fail`, { failure });
    const run = await client.runs.get(id, { wait_ms: 5_000 });
    const logs = await client.tasks.logs(run.tasks[0]?.task_run_id ?? '');
    expect(JSON.stringify([run, logs, await client.events.page({ run_id: id })])).not.toContain('hunter2');
  });

  it('knows workers again after the server was restarted', async () => {
    const { bench, claim } = await prepared();
    const [lease] = (await claim({ claim_id: 'c1' })).leases;
    await bench.restart();
    expect((await claim({ claim_id: 'c1' })).leases[0]?.lease_id).toBe(lease?.lease_id);
    expect(
      await (await bench.post(`/leases/${lease?.lease_id}/complete`, { output: 1 })).json(),
    ).toMatchObject({
      status: 'SUCCESS',
    });
    expect((await bench.post('/workers/stranger/claim', { limit: 1 })).status).toBe(404);
    expect(
      (await bench.post('/workers/register', { boot_id: 'b', worker_id: 'local-x', handlers: ['a'] })).status,
    ).toBe(400);
    expect((await bench.request('/runs')).status).toBe(200);
  });
});

describe('the contract of workers', () => {
  it('says how many leases one call may take', () => {
    expect(ROUTES.workers.claim.body.safeParse({ limit: 1_001 }).success).toBe(false);
  });
});
