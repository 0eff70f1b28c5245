/** The publishing loop: order, outages, crashes, two at once, shutdown (SPEC S10.2–S10.5, I9–I11). */
import { expect, it } from 'vitest';
import type { OutgoingMessage, SendResult } from '../../src/brokers/broker.ts';
import { RELAY_DEFAULTS, type RelaySettings } from '../../src/domain/relay-settings.ts';
import { OutboxRelay } from '../../src/engine/outbox-relay.ts';
import type { Harness } from '../support/harness.ts';
import { MemoryBroker } from '../support/memory-broker.ts';
import { until } from '../support/until.ts';
import { conformance, expectSound } from './suite.ts';

const OUTAGE: SendResult = { kind: 'outage', error: 'connection refused' };
const REFUSED: SendResult = { kind: 'rejected', error: 'too large' };

function relayOn(
  h: Harness,
  broker: MemoryBroker,
  settings: Partial<RelaySettings> = {},
  onAlive: () => void = () => {},
): OutboxRelay {
  return new OutboxRelay({
    store: h.store,
    broker,
    clock: h.clock,
    logger: h.engine.context.logger,
    settings: { ...RELAY_DEFAULTS, ...settings },
    onAlive,
  });
}

const tasks = (count: number): Record<string, object> =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`t${n}`, {}]));
const idOf = ({ body }: OutgoingMessage): string => (JSON.parse(body) as { task_run_id: string }).task_run_id;
const rows = (h: Harness) => h.store.read((tx) => tx.outbox.list({ after: 0, limit: 10_000 }));
const stats = (h: Harness) => h.store.read((tx) => tx.outbox.stats(h.clock.now()));

/** Claims what was sent, once each, and completes it. Returns how many messages found a task. */
async function work(h: Harness, broker: MemoryBroker, from = 0): Promise<number> {
  const messages = broker.sent.slice(from).map(({ body }) => JSON.parse(body));
  const { leases } = await h.source.next({
    limit: messages.length,
    settlements: [],
    signal: AbortSignal.abort(),
    messages,
  });
  await h.settle(...leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }) as const));
  return leases.length;
}

/** A task that can be claimed is told of, or was (I9). */
async function expectTold(h: Harness): Promise<void> {
  expect(await h.store.read((tx) => tx.outbox.isUntidy(h.clock.now()))).toBe(false);
}

conformance('the outbox relay', (open) => {
  const openWith = () => open({ hasBroker: true });

  // SPEC S10.1, S10.2
  it('sends every message once, with ids, attempt, version and trace, and leaves marks', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    const run = await h.start(tasks(3));
    const relay = relayOn(h, broker);
    expect(await relay.runOnce()).toMatchObject({ sent: 3 });
    const [task] = await h.tasks(run);
    expect(JSON.parse(broker.sent[0]?.body ?? '')).toEqual({
      schema_version: 1,
      task_run_id: task?.id,
      run_id: run,
      attempt: 1,
      traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
    });
    expect(await stats(h)).toMatchObject({ depth: 0, outstanding: 3 });
    await expectTold(h);
    expect(await relay.runOnce()).toMatchObject({ sent: 0 });
    expect(await work(h, broker)).toBe(3);
    expect((await h.run(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  // SPEC S10.4, I10
  it('two outages in a row open the breaker, and the rest is given back untried', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    broker.isDown = true;
    await h.start(tasks(5));
    const relay = relayOn(h, broker);
    expect(await relay.runOnce()).toEqual({ sent: 0, deferred: 2, dead: 0, released: 3 });
    expect(broker.attempts).toBe(2);
    broker.isDown = false;
    expect(await relay.runOnce()).toMatchObject({ sent: 0 });
    h.clock.advance(29_999);
    expect(await relay.runOnce()).toMatchObject({ sent: 0 });
    h.clock.advance(1);
    expect(await relay.runOnce()).toMatchObject({ sent: 5 });
    await expectTold(h);
  });

  // SPEC S10.4
  it('a success between two outages keeps the breaker closed; the streak goes on over batches', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    await h.start(tasks(4));
    const results: SendResult[] = [OUTAGE, { kind: 'sent' }, OUTAGE, OUTAGE];
    broker.script = () => results.shift() ?? { kind: 'sent' };
    const relay = relayOn(h, broker, { batchSize: 1 });
    for (let turn = 0; turn < 4; turn++) await relay.runOnce();
    expect(broker.attempts).toBe(4);
    expect(await relay.runOnce()).toMatchObject({ sent: 0 });
    expect(broker.attempts).toBe(4);
    expect(broker.sent).toHaveLength(1);
  });

  // SPEC S10.4, S5.4, I10
  it('an outage of three minutes spends no retry and no attempt', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    broker.isDown = true;
    const run = await h.start(tasks(3));
    const relay = relayOn(h, broker, { maxRetries: 1 });
    for (let second = 0; second < 180; second++) {
      await relay.runOnce();
      await h.leap(1_000);
    }
    expect(broker.attempts).toBeLessThan(20);
    for (const { retries } of await rows(h)) expect(retries).toBe(0);
    broker.isDown = false;
    h.clock.advance(30_000);
    expect(await relay.runOnce()).toMatchObject({ sent: 3 });
    expect(await work(h, broker)).toBe(3);
    for (const task of await h.tasks(run)) expect(task).toMatchObject({ attempt: 1, attempts_spent: 0 });
    await expectSound(h, run);
  });

  // SPEC S10.2, S10.3, S10.7
  it('a refused message is tried later and later, and then is a dead letter with its last error', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    broker.script = () => REFUSED;
    const run = await h.start(tasks(1));
    const relay = relayOn(h, broker, { maxRetries: 3, backoffTimeMs: 10_000, maxBackoffMs: 20_000 });
    for (const waitMs of [10_000, 20_000, 20_000]) {
      expect(await relay.runOnce()).toMatchObject({ deferred: 1 });
      h.clock.advance(waitMs - 1);
      expect(await relay.runOnce()).toMatchObject({ deferred: 0 });
      h.clock.advance(1);
    }
    expect(await relay.runOnce()).toMatchObject({ dead: 1 });
    const [dead] = await h.store.read((tx) => tx.outbox.deadLetters({ after: 0, limit: 9 }));
    expect(dead).toMatchObject({ task_id: 't0', attempt: 1, retries: 3, last_error: 'too large' });
    expect(await h.events(run, 'outbox.dead_lettered')).toMatchObject([{ data: { error: 'too large' } }]);
    await expectTold(h);
    // The task itself waits for nobody but a worker.
    broker.script = null;
    await h.engine.replayDeadLetters([dead?.key ?? 0], 'me');
    expect(await relay.runOnce()).toMatchObject({ sent: 1 });
    expect(await h.events(run, 'outbox.replayed')).toMatchObject([{ data: { by: 'me' } }]);
    expect(await work(h, broker)).toBe(1);
    await expectSound(h, run);
  });

  // SPEC S10.2, I9
  it('killed between take and send: another sends it when its time in hand is over', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    const run = await h.start(tasks(2));
    const lost = new MemoryBroker();
    lost.script = () => new Promise(() => {});
    void relayOn(h, lost).runOnce();
    await until(() => lost.inFlight === 1);
    const heir = relayOn(h, broker);
    h.clock.advance(299_999);
    expect(await heir.runOnce()).toMatchObject({ sent: 0 });
    h.clock.advance(1);
    expect(await heir.runOnce()).toMatchObject({ sent: 2 });
    expect(await work(h, broker)).toBe(2);
    await expectSound(h, run);
  });

  // SPEC S10.1, S10.2
  it('killed between send and record: the message comes twice, its effects once', async () => {
    let isArmed = false;
    const h = await open({
      hasBroker: true,
      onStatement: (name) => {
        if (isArmed && name === 'outbox.mark') throw new TypeError('killed');
      },
    });
    const broker = new MemoryBroker();
    const run = await h.start(tasks(2));
    isArmed = true;
    await expect(relayOn(h, broker).runOnce()).rejects.toThrow('killed');
    isArmed = false;
    expect(broker.sent).toHaveLength(2);
    expect(await work(h, broker)).toBe(2);
    h.clock.advance(300_000);
    await relayOn(h, broker).runOnce();
    expect(await work(h, broker)).toBe(0);
    for (const task of await h.tasks(run)) expect(task.attempt).toBe(1);
    expect(await rows(h)).toEqual([]);
    await expectSound(h, run);
  });

  // SPEC S10.2
  it('two at once send every message once', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    await h.engine.brokerSource({ handlers: ['transform'] }, { broker, concurrency: 200 });
    await h.start(tasks(300));
    const pair = [relayOn(h, broker, { batchSize: 7 }), relayOn(h, broker, { batchSize: 11 })];
    for (let turn = 0; turn < 60; turn++) await Promise.all(pair.map((relay) => relay.runOnce()));
    expect(broker.sent).toHaveLength(300);
    expect(new Set(broker.sent.map(idOf)).size).toBe(300);
  });

  // SPEC S10.3
  it('a batch that takes longer than the stale timeout is renewed, and nobody else sends it', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    await h.start(tasks(12));
    const other = new MemoryBroker();
    const rival = relayOn(h, other);
    broker.script = async () => {
      h.clock.advance(100_000);
      await rival.runOnce();
      return { kind: 'sent' };
    };
    expect(await relayOn(h, broker).runOnce()).toMatchObject({ sent: 12 });
    expect(other.sent).toEqual([]);
    expect(new Set(broker.sent.map(idOf)).size).toBe(12);
  });

  // SPEC S10.3
  it('a message that another has taken over meanwhile is not sent by the first', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    await h.start(tasks(3));
    const other = new MemoryBroker();
    const rival = relayOn(h, other);
    broker.script = async () => {
      // As if the process had been stopped for longer than its time in hand.
      h.clock.advance(301_000);
      await rival.runOnce();
      return { kind: 'sent' };
    };
    await relayOn(h, broker).runOnce();
    expect(broker.attempts).toBe(1);
    expect(other.sent).toHaveLength(3);
  });

  // SPEC S10.2, S10.4
  it('no more are under way than the settings say, and nothing refills after an outage', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    await h.start(tasks(20));
    const pending: ((result: SendResult) => void)[] = [];
    broker.script = () => new Promise((resolve) => pending.push(resolve));
    const turn = relayOn(h, broker, { publishConcurrency: 4 }).runOnce();
    await until(() => pending.length === 4);
    pending.shift()?.({ kind: 'sent' });
    await until(() => pending.length === 4);
    expect(broker.attempts).toBe(5);
    pending.shift()?.(OUTAGE);
    await until(() => pending.length === 4);
    pending.shift()?.(OUTAGE);
    // The others are judged by what becomes of them; nothing takes their place, not even after a success.
    pending.shift()?.({ kind: 'sent' });
    pending.shift()?.(OUTAGE);
    pending.shift()?.(OUTAGE);
    expect(await turn).toEqual({ sent: 2, deferred: 4, dead: 0, released: 14 });
    expect(broker.inFlightMax).toBe(4);
    expect(broker.attempts).toBe(6);
  });

  // SPEC S10.5, I11
  it('stopping sends what is in hand until the deadline, and gives the rest back', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    const run = await h.start(tasks(10));
    const relay = relayOn(h, broker, { shutdownTimeoutMs: 5_000 });
    let stopping: Promise<unknown> | null = null;
    broker.script = async () => {
      h.clock.advance(2_000);
      if (broker.attempts === 2) stopping = relay.stop();
      // The first word counts: a second one moves nothing.
      if (broker.attempts === 3) void relay.stop();
      return { kind: 'sent' };
    };
    await relay.start();
    await until(() => stopping !== null);
    await stopping;
    expect(broker.sent).toHaveLength(5);
    expect(await stats(h)).toMatchObject({ depth: 5, in_flight: 0, outstanding: 5 });
    expect(await relayOn(h, broker).runOnce()).toMatchObject({ sent: 5 });
    expect(await work(h, broker)).toBe(10);
    await expectSound(h, run);
  });

  // SPEC S10.6
  it('no more is sent than twice what the fleet can have at work', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    const { id } = await h.engine.brokerSource({ handlers: ['transform'] }, { broker, concurrency: 20 });
    const run = await h.start(tasks(200));
    const relay = relayOn(h, broker);
    for (let turn = 0; turn < 5; turn++) await relay.runOnce();
    expect(broker.sent).toHaveLength(40);
    expect(await work(h, broker)).toBe(40);
    for (let turn = 0; turn < 5; turn++) await relay.runOnce();
    expect(broker.sent).toHaveLength(80);
    // A worker that has not been heard of is no longer counted.
    h.clock.advance(61_000);
    await work(h, broker, 40);
    await relay.runOnce();
    expect(broker.sent).toHaveLength(80 + 32);
    await h.engine.forget(id);
    await expectSound(h, run);
  });

  // SPEC S10.6
  it('a long honest backlog sends no message twice', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    const run = await h.start(tasks(400));
    const relay = relayOn(h, broker);
    let done = 0;
    for (let minute = 0; minute < 60; minute++) {
      await relay.runOnce();
      await h.leap(60_000);
      // Slow workers: a few are claimed now and then, everything else waits where it is.
      const next = broker.sent.slice(done, done + 8);
      done += next.length;
      const messages = next.map(({ body }) => JSON.parse(body));
      const { leases } = await h.source.next({
        limit: 8,
        settlements: [],
        signal: AbortSignal.abort(),
        messages,
      });
      await h.settle(...leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }) as const));
    }
    expect(broker.sent.length).toBeGreaterThan(300);
    expect(new Set(broker.sent.map(idOf)).size).toBe(broker.sent.length);
    await expectSound(h, run);
  });

  // SPEC S10.2
  it('shows that it is alive while the breaker is open and in a long batch', async () => {
    const h = await openWith();
    const broker = new MemoryBroker();
    await h.start(tasks(10));
    let alive = 0;
    broker.script = () => {
      h.clock.advance(2_000);
      return { kind: 'sent' };
    };
    const relay = relayOn(h, broker, {}, () => {
      alive += 1;
    });
    await relay.runOnce();
    expect(alive).toBeGreaterThanOrEqual(9);
    broker.script = null;
    broker.isDown = true;
    await h.start(tasks(4));
    await relay.start();
    await until(() => broker.attempts >= 12);
    const before = alive;
    relay.wake('queued');
    await until(() => alive > before);
    await relay.stop();
  });
});
