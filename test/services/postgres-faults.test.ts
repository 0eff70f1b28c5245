/** What the Postgres store does when the connection or the server goes away (SPEC S14.7, DESIGN "Poison and doubt"). */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { isStoreError } from '../../src/base/errors.ts';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import { Harness } from '../support/harness.ts';
import { brokenPromises } from '../support/invariants.ts';
import { createDatabase, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { startProgram } from '../support/processes.ts';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts';

const place = inject('postgres');
const skipped = 'reason' in place ? `, skipped: ${place.reason}` : '';
const serverUrl = 'url' in place ? place.url : '';
/** The name of the statement as it stands in the bytes. */
const COMMIT = '\0commit\0';
/** How long an answer is waited for here. */
const ANSWER_MS = 2_000;
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** An engine on a fresh database, reached by a URL that the test chooses. */
async function harnessOn(direct: string, via: string): Promise<Harness> {
  const folder = mkdtempSync(join(tmpdir(), 'relay-faults-'));
  const store = new PostgresStore({ url: via, answerTimeoutMs: ANSWER_MS });
  await store.migrate();
  const look = new PostgresStore({ url: direct });
  closing.push(async () => {
    await store.close();
    await look.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const opened = { store, folder, reopen: async () => store, close: async () => {} };
  const harness = new Harness(opened);
  await harness.connect();
  return harness;
}

async function throughProxy(): Promise<{ harness: Harness; proxy: TcpProxy }> {
  const { url, drop } = await createDatabase(serverUrl);
  closing.push(drop);
  const proxy = await startProxy(Number(new URL(url).port));
  closing.push(() => proxy.close());
  const via = new URL(url);
  via.port = String(proxy.port);
  return { harness: await harnessOn(url, via.href), proxy };
}

/** Does something again until the store is back; says how often it was away. */
async function insist<T>(action: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await action();
    } catch (error) {
      if (!isStoreError(error) || tries > 200) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Waits for something that other processes bring about. */
async function eventuallyTrue(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50));
}

/** Ends a program and waits for it. */
async function ended(program: ChildProcess): Promise<void> {
  if (program.exitCode !== null || program.signalCode !== null) return;
  program.kill('SIGTERM');
  await once(program, 'exit');
}

describe.skipIf(skipped !== '')(`postgres: a connection is cut${skipped}`, () => {
  it('after the commit: the answer is found out, and nothing happens twice', async () => {
    const { harness: h, proxy } = await throughProxy();
    const run = await h.start({ a: {}, b: { needs: 'a' }, c: { needs: 'a' }, d: { needs: ['b', 'c'] } });
    let cuts = 0;
    for (let turn = 0; turn < 10 && (await h.run(run)).status === 'RUNNING'; turn++) {
      let cut = proxy.cutAt(COMMIT, 'after');
      const leases = await h.claim(5);
      await cut;
      cut = proxy.cutAt(COMMIT, 'after');
      const results = await h.settle(
        ...leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }) as const),
      );
      await cut;
      cuts += 2;
      expect(results.map(({ ok }) => ok)).toEqual(leases.map(() => true));
    }
    expect(cuts).toBe(6);
    expect((await h.run(run)).status).toBe('SUCCESS');
    expect((await h.tasks(run)).map(({ attempt, losses }) => [attempt, losses])).toEqual(
      Array.from({ length: 4 }, () => [1, 0]),
    );
    expect(await h.events(run, 'task.completed')).toHaveLength(4);
    expect(await brokenPromises(h.store, run)).toEqual([]);
  });

  it('before the commit: nothing is recorded, and a repeat is the first', async () => {
    const { harness: h, proxy } = await throughProxy();
    const run = await h.start({ a: {}, b: { needs: 'a' } });
    const lease = await h.claimOne('a');
    const cut = proxy.cutAt(COMMIT, 'before');
    await expect(h.complete(lease)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await cut;
    expect(await insist(() => h.statuses(run))).toEqual({ a: 'RUNNING', b: 'PENDING' });
    expect(await insist(() => h.complete(lease))).toMatchObject({ ok: true });
    expect(await h.statuses(run)).toEqual({ a: 'SUCCESS', b: 'QUEUED' });
    expect(await brokenPromises(h.store, run)).toEqual([]);
  });

  // SPEC S14.7: a network that swallows everything closes no connection
  it('without a word: what waits for an answer gives up, and goes on once the network is back', async () => {
    const { harness: h, proxy } = await throughProxy();
    const run = await h.start({ a: {}, b: { needs: 'a' } });
    const lease = await h.claimOne('a');
    proxy.freeze();
    const before = performance.now();
    await expect(h.complete(lease)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await expect(h.statuses(run)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(performance.now() - before).toBeLessThan(ANSWER_MS * 15);
    proxy.thaw();
    expect(await insist(() => h.complete(lease))).toMatchObject({ ok: true });
    expect(await insist(() => h.statuses(run))).toEqual({ a: 'SUCCESS', b: 'QUEUED' });
    expect(await h.events(run, 'task.completed')).toHaveLength(1);
    expect(await brokenPromises(h.store, run)).toEqual([]);
  });

  it('in the middle of a transaction: everything is undone', async () => {
    const { harness: h, proxy } = await throughProxy();
    const run = await h.start({ a: {} });
    const cut = proxy.cutAt('claimable.peek_locked', 'after');
    await expect(h.claim(1)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await cut;
    expect(await insist(() => h.statuses(run))).toEqual({ a: 'QUEUED' });
    expect(await insist(() => h.claim(1))).toHaveLength(1);
  });
});

describe.skipIf(skipped !== '')(`postgres: the server goes away${skipped}`, () => {
  const start = async (): Promise<PostgresServer> => {
    const server = await startPostgres();
    if ('reason' in server) throw new Error(server.reason);
    closing.push(() => server.remove());
    return server;
  };

  it.each(['fast', 'immediate'] as const)(
    'a %s restart in the middle of a run fails nothing, spends nothing, and the run goes on',
    async (mode) => {
      const server = await start();
      const h = await harnessOn(server.url, server.url);
      const run = await h.start({ a: {}, b: { needs: 'a' }, c: { needs: 'b' } });
      const lease = await h.claimOne('a');
      server.stop(mode);
      await expect(h.complete(lease)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      await expect(h.statuses(run)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      const before = performance.now();
      for (let n = 0; n < 20; n++) await h.complete(lease).catch(() => {});
      expect(performance.now() - before, 'calls fail at once while it is away').toBeLessThan(2_000);
      server.start();
      expect(await insist(() => h.complete(lease))).toMatchObject({ ok: true });
      expect((await h.finish(run)).status).toBe('SUCCESS');
      expect((await h.tasks(run)).map((task) => [task.attempts_spent, task.losses])).toEqual(
        Array.from({ length: 3 }, () => [0, 0]),
      );
      expect(await brokenPromises(h.store, run)).toEqual([]);
    },
  );

  it('an outage of three leases with the engine running expires no lease of a worker that comes back', async () => {
    const server = await start();
    const h = await harnessOn(server.url, server.url);
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    // A first turn of the reaper, so that its grace after the start is over before the outage.
    await h.pass(10_000);
    await h.beat(lease);
    server.stop();
    for (let n = 0; n < 18; n++) {
      h.clock.advance(5_000);
      await h.engine.runOnce().catch(() => 0);
    }
    server.start();
    await insist(() => h.beat(lease));
    await h.idle();
    expect(await h.task(run, 'a')).toMatchObject({ status: 'RUNNING', losses: 0 });
    expect(await h.complete(lease)).toMatchObject({ ok: true });
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  // SPEC S14.7, S6.2; I8
  it('two processes at work, and a server that is away for three leases: nothing fails, nothing is spent', async () => {
    const server = await start();
    const h = await harnessOn(server.url, server.url);
    const leaseMs = 1_000;
    const argv = [server.url, String(leaseMs), '150'];
    const started = await Promise.all([1, 2].map(() => startProgram('relay-process.ts', argv, /ready/)));
    closing.push(() => Promise.all(started.map(({ program }) => ended(program))));
    const tasks = Object.fromEntries(
      Array.from({ length: 60 }, (_, n) => [`t${n}`, n < 6 ? {} : { needs: `t${n - 6}` }]),
    );
    const run = await h.start(tasks);
    await Promise.all(started.map(({ program }) => once(program.stdout ?? program, 'data')));
    server.stop('immediate');
    await new Promise((resolve) => setTimeout(resolve, leaseMs * 3));
    server.start();
    await eventuallyTrue(async () => (await insist(() => h.run(run))).status !== 'RUNNING');
    expect((await h.run(run)).status).toBe('SUCCESS');
    for (const task of await h.tasks(run)) expect(task).toMatchObject({ attempts_spent: 0, losses: 0 });
    expect(await h.events(run, 'task.completed')).toHaveLength(60);
    expect(await brokenPromises(h.store, run)).toEqual([]);
  });

  it('a reader that has to wait for its turn does not take the server for gone', async () => {
    const { url, drop } = await createDatabase(serverUrl);
    closing.push(drop);
    const store = new PostgresStore({ url });
    closing.push(() => store.close());
    await store.migrate();
    let letGo = (): void => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    // More than there are connections for, each for longer than a connection may take to open.
    const slow = Array.from({ length: 8 }, () =>
      store.read(async (tx) => {
        await tx.workflows.list();
        await held;
      }),
    );
    const waiting = store.read((tx) => tx.workflows.list());
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    letGo();
    await Promise.all(slow);
    expect(await waiting).toEqual([]);
  });

  it('changes of others are noticed', async () => {
    const { url, drop } = await createDatabase(serverUrl);
    closing.push(drop);
    const [h, other] = [await harnessOn(url, url), new PostgresStore({ url })];
    closing.push(() => other.close());
    const mark = await other.changeMark();
    await h.start({ a: {} });
    expect(await other.changeMark()).not.toBe(mark);
  });
});
