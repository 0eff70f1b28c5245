/** The outbox with real processes on real servers: kills, outages, flushes, shutdown (SPEC S10). The program is the built one. */
import { mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { createClient } from '../../client/src/index.ts';
import { LocalRelay } from '../../src/app/local-relay.ts';
import { type BrokerServer, startRabbit, startRedis } from '../support/brokers.ts';
import { canonical } from '../support/harness.ts';
import { brokenPromises } from '../support/invariants.ts';
import { createDatabase } from '../support/postgres.ts';
import { eventually } from '../support/processes.ts';
import { type Running, start, startServer, tokenOf } from '../support/server-process.ts';
import { startProxy } from '../support/tcp-proxy.ts';

const place = inject('postgres');
const redis = await startRedis();
const rabbit = await startRabbit();
const why = [place, redis, rabbit].flatMap((found) => ('reason' in found ? found.reason : []));
const title = `the outbox, with processes${why.length === 0 ? '' : `, skipped: ${why.join('; ')}`}`;

let cwd: string;
let store: string;
let drop: () => Promise<void>;
const processes: Running[] = [];
const relays: LocalRelay[] = [];

/** A process of the built program on the store; it ends with the test. */
function relay(...argv: readonly string[]): Running {
  const running = start([...argv, '--store', store], { cwd });
  processes.push(running);
  return running;
}

/** The store as a process sees it that starts runs and does nothing else. */
async function open(broker: string | undefined): Promise<LocalRelay> {
  const opened = await LocalRelay.open({
    data: join(cwd, '.relay'),
    store,
    broker,
    cwd,
    env: {},
    by: 'test',
    log: 'error',
    writeLog: () => {},
  });
  relays.push(opened);
  return opened;
}

async function startRun(local: LocalRelay, count: number, task: object = {}): Promise<string> {
  const tasks = Object.fromEntries(Array.from({ length: count }, (_, n) => [`t${n}`, task]));
  const workflow = await canonical({ name: `of-${count}`, tasks });
  return (await local.engine.startRun({ workflow }, { caller: 'test' })).id;
}

async function untilOver(local: LocalRelay, run: string, withinMs = 60_000): Promise<void> {
  await eventually(async () => (await local.api.runs.get(run)).status === 'SUCCESS', withinMs);
}

/** Every task succeeded with its first attempt, and everything was recorded once. */
async function expectOnce(local: LocalRelay, run: string): Promise<void> {
  const rows = await local.store.read(async (tx) => {
    const found = await tx.runs.byId(run);
    return tx.tasks.ofRun(found?.key ?? 0, { after: 0, limit: 100_000 });
  });
  const odd = rows.filter(
    ({ status, attempt, losses }) => status !== 'SUCCESS' || attempt !== 1 || losses > 0,
  );
  expect(odd).toEqual([]);
  expect(await brokenPromises(local.store, run)).toEqual([]);
}

const stats = (local: LocalRelay) => local.api.outbox.stats();
const up = (running: Running, words: string): Promise<void> =>
  eventually(() => {
    if (running.process.exitCode !== null) throw new TypeError(running.printed());
    return running.printed().includes(words);
  }, 30_000);
/** Short times, so that what a dead daemon had in hand comes back soon. */
const QUICK = ['--stale-timeout', '2s', '--send-timeout', '1s', '--broker-outage-cooldown', '500ms'] as const;

describe.skipIf(why.length > 0)(title, () => {
  const servers = { redis: redis as BrokerServer, rabbit: rabbit as BrokerServer };

  beforeAll(async () => {
    cwd = mkdtempSync(join(tmpdir(), 'relay-outbox-'));
  });
  afterEach(async () => {
    for (const { process: child } of processes) child.kill('SIGKILL');
    await Promise.all(processes.splice(0).map(({ ended }) => ended));
    for (const local of relays.splice(0)) await local.close();
    await drop();
  });
  afterAll(async () => {
    await servers.redis.remove();
    await servers.rabbit.remove();
    rmSync(cwd, { recursive: true, force: true });
  });
  const fresh = async (): Promise<void> => {
    ({ url: store, drop } = await createDatabase('url' in place ? place.url : ''));
  };

  // SPEC S10.1, S10.2, I9
  it.each(['before', 'after'] as const)(
    'a daemon killed with a send under way, %s the broker has it: the message is handled, once',
    async (when) => {
      await fresh();
      const proxy = await startProxy(servers.redis.port);
      const local = await open(servers.redis.url);
      const held = proxy.holdAt('XADD', when);
      const daemon = relay('outbox', '--broker', `redis://127.0.0.1:${proxy.port}`, ...QUICK);
      await up(daemon, 'go to');
      const run = await startRun(local, 20);
      await held;
      expect(await stats(local)).toMatchObject({ in_flight: 20, outstanding: 0 });
      daemon.process.kill('SIGKILL');
      await daemon.ended;
      await proxy.close();
      const worker = relay('worker', '--broker', servers.redis.url);
      await up(worker, 'at work');
      relay('outbox', '--broker', servers.redis.url, ...QUICK);
      await untilOver(local, run);
      await expectOnce(local, run);
    },
  );

  // SPEC S10.2, S10.5, I11
  it('two daemons, killed again and again, and one told to stop: every message is handled once', async () => {
    await fresh();
    const local = await open(servers.redis.url);
    const run = await startRun(local, 1_500);
    const worker = relay('worker', '--broker', servers.redis.url, '--concurrency', '32');
    await up(worker, 'at work');
    for (let kill = 0; kill < 3; kill++) {
      const pair = [1, 2].map(() =>
        relay('outbox', '--broker', servers.redis.url, '--batch-size', '10', ...QUICK),
      );
      const before = (await local.api.runs.get(run)).counts.success ?? 0;
      await eventually(async () => {
        const { status, counts } = await local.api.runs.get(run);
        return status === 'SUCCESS' || (counts.success ?? 0) > before + 50;
      }, 30_000);
      // One that has not begun to listen to signals yet would simply end by it.
      if (kill === 2) await Promise.all(pair.map((daemon) => up(daemon, 'go to')));
      for (const { process: child } of pair) child.kill(kill === 2 ? 'SIGTERM' : 'SIGKILL');
      const ends = await Promise.all(pair.map(({ ended }) => ended));
      if (kill === 2) expect(ends).toEqual([0, 0]);
    }
    relay('outbox', '--broker', servers.redis.url, ...QUICK);
    await untilOver(local, run);
    await expectOnce(local, run);
    // What a killed daemon had sent and not recorded comes back when its claim is over, and is found to be done.
    await eventually(async () => (await stats(local)).depth === 0, 30_000);
    expect(await stats(local)).toMatchObject({ dead: 0 });
  });

  // SPEC S10.4, S5.4, I10
  it.each(['redis', 'rabbit'] as const)(
    'a broker that is really stopped and started (%s) costs no retry and no attempt',
    async (name) => {
      await fresh();
      const server = servers[name];
      const local = await open(server.url);
      const daemon = relay('outbox', '--broker', server.url, ...QUICK, '--max-retries', '1');
      const worker = relay('worker', '--broker', server.url);
      await Promise.all([up(daemon, 'go to'), up(worker, 'at work')]);
      const first = await startRun(local, 20);
      await untilOver(local, first);
      await server.stop();
      const second = await startRun(local, 40, { uses: 'shell', with: { run: ['sleep', '0.2'] } });
      await up(daemon, 'outbox.breaker_opened');
      await up(worker, 'cannot be reached');
      const { items } = await local.api.outbox.list({ limit: 1_000 });
      expect(items.every(({ retries }) => retries === 0)).toBe(true);
      await server.start();
      await untilOver(local, second);
      await expectOnce(local, second);
      await eventually(async () => {
        const run = await startRun(local, 1);
        await untilOver(local, run, 10_000);
        return true;
      }, 30_000);
      expect(await stats(local)).toMatchObject({ dead: 0 });
    },
  );

  // SPEC S10.6
  it('a flushed Redis with 5,000 queued, 100 delayed and a paused run: everything finishes', async () => {
    await fresh();
    const local = await open(servers.redis.url);
    const daemon = relay('outbox', '--broker', servers.redis.url, ...QUICK, '--publish-concurrency', '16');
    await up(daemon, 'go to');
    const queued = await startRun(local, 5_000);
    const delayed = await startRun(local, 100, {
      uses: 'shell',
      with: { run: 'test -e "$MARK" || { exit 1; }', env: { MARK: join(cwd, 'go') } },
      retry: { initial: '2s', jitter: 0, max_attempts: 5 },
    });
    const paused = await startRun(local, 50);
    await eventually(async () => (await stats(local)).outstanding >= 32);
    await local.api.runs.pause(paused);
    const worker = relay('worker', '--broker', servers.redis.url, '--concurrency', '64');
    await up(worker, 'at work');
    await eventually(async () => ((await local.api.runs.get(queued)).counts.success ?? 0) > 200, 30_000);
    await eventually(async () => (await stats(local)).delayed > 0, 60_000);
    await flush(servers.redis.url);
    writeFileSync(join(cwd, 'go'), '');
    await local.api.runs.resume(paused);
    await untilOver(local, queued, 120_000);
    await untilOver(local, paused, 60_000);
    await untilOver(local, delayed, 60_000);
    await expectOnce(local, queued);
    await expectOnce(local, paused);
    expect(await brokenPromises(local.store, delayed)).toEqual([]);
  });

  // SPEC S10.6, S11.2
  it('a worker whose broker is down says so, works from the store, and listens when it is back', async () => {
    await fresh();
    const local = await open(servers.redis.url);
    await servers.redis.stop();
    const run = await startRun(local, 3);
    const worker = relay('worker', '--broker', servers.redis.url);
    await up(worker, 'waiting for it');
    await untilOver(local, run);
    await expectOnce(local, run);
    await servers.redis.start();
    const daemon = relay('outbox', '--broker', servers.redis.url, ...QUICK);
    await up(daemon, 'go to');
    const next = await startRun(local, 3);
    await untilOver(local, next);
    await expectOnce(local, next);
  });

  // SPEC S10.2, S10.6, S10.7, S13.1
  it('a server with a broker sends by itself, shows the outbox, and takes over tasks of one without', async () => {
    await fresh();
    const server = await startServer(cwd, ['--port', '0', '--store', store, '--broker', servers.rabbit.url]);
    processes.push(server);
    const client = createClient({ url: server.url, token: tokenOf(cwd) });
    const definition = await canonical({ name: 'served', tasks: { a: {}, b: { needs: 'a' } } });
    const { id } = await client.runs.start({ definition });
    await eventually(async () => (await client.runs.get(id)).status === 'SUCCESS', 30_000);
    // A task may be over before its message is recorded as sent.
    await eventually(async () => (await client.outbox.list()).items.length === 0, 30_000);
    expect(await client.outbox.stats()).toMatchObject({ depth: 0, dead: 0 });
    const metrics = await fetch(`${server.url}/metrics`, {
      headers: { authorization: `Bearer ${tokenOf(cwd)}` },
    });
    expect(await metrics.text()).toMatch(/^relay_outbox_depth 0$/m);
    // This process knows of no broker and writes no message.
    const local = await open(undefined);
    const run = await startRun(local, 5);
    await untilOver(local, run);
    await expectOnce(local, run);
    client.close();
  });

  // SPEC S10.3
  it('the liveness file is touched while the loop turns, also while the broker is away', async () => {
    await fresh();
    const path = join(cwd, 'alive');
    const daemon = relay('outbox', '--broker', 'redis://127.0.0.1:1', '--liveness-file', path);
    await up(daemon, 'go to');
    const local = await open('redis://127.0.0.1:1');
    await startRun(local, 3);
    await up(daemon, 'outbox.breaker_opened');
    utimesSync(path, 0, 0);
    await eventually(() => statSync(path).mtimeMs > 0);
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended).toBe(0);
    expect(readFileSync(path, 'utf8')).toBe('');
  });
});

async function flush(url: string): Promise<void> {
  const client = new Redis(url);
  await client.flushall();
  client.disconnect();
}
