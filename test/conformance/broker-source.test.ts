/** A worker that listens to a broker: messages, silence, doubt (SPEC S10.1, S10.6). */
import { expect, it } from 'vitest';
import { RELAY_DEFAULTS } from '../../src/domain/relay-settings.ts';
import type { BrokerSource } from '../../src/engine/broker-source.ts';
import { OutboxRelay } from '../../src/engine/outbox-relay.ts';
import type { Lease } from '../../src/worker/work-source.ts';
import type { Harness } from '../support/harness.ts';
import { MemoryBroker } from '../support/memory-broker.ts';
import { conformance, expectSound } from './suite.ts';

interface Listening {
  readonly h: Harness;
  readonly broker: MemoryBroker;
  readonly relay: OutboxRelay;
  readonly source: BrokerSource;
}

conformance('a source on a broker', (open) => {
  async function listen(options: Parameters<typeof open>[0] = {}): Promise<Listening> {
    const h = await open({ hasBroker: true, ...options });
    const broker = new MemoryBroker();
    const { clock } = h;
    const { logger } = h.engine.context;
    const relay = new OutboxRelay({ store: h.store, broker, clock, logger, settings: RELAY_DEFAULTS });
    const handlers = ['transform'];
    const { source } = await h.engine.brokerSource({ handlers }, { broker, concurrency: 4 });
    return { h, broker, relay, source };
  }
  const next = async (source: BrokerSource, limit = 4): Promise<readonly Lease[]> =>
    (await source.next({ limit, settlements: [], signal: AbortSignal.timeout(100) })).leases;

  // SPEC S10.6
  it('takes as much as it has room for, and leaves the rest to others', async () => {
    const { h, broker, relay, source } = await listen();
    const run = await h.start({ a: {}, b: {}, c: {} });
    await relay.runOnce();
    const first = await next(source, 2);
    expect(first).toHaveLength(2);
    const other = await h.engine.brokerSource({ handlers: ['transform'] }, { broker, concurrency: 4 });
    expect(await next(other.source)).toHaveLength(1);
    expect(await next(source)).toEqual([]);
    await h.settle(...first.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }) as const));
    await expectSound(h, run);
  });

  // SPEC S10.6
  it('hears of a message while it waits, and results go through meanwhile', async () => {
    const { h, relay, source } = await listen();
    const run = await h.start({ a: {}, b: { needs: ['a'] } });
    const waiting = source.next({ limit: 4, settlements: [], signal: AbortSignal.timeout(5_000) });
    await relay.runOnce();
    const [a] = (await waiting).leases;
    const idle = new AbortController();
    const polling = source.next({ limit: 3, settlements: [], signal: idle.signal });
    idle.abort();
    await polling;
    const settled = await source.next({
      limit: 4,
      settlements: [{ kind: 'complete', lease_id: a?.lease_id ?? '', output: 1 }],
      signal: AbortSignal.timeout(5_000),
    });
    expect(settled.results).toMatchObject([{ ok: true }]);
    await relay.runOnce();
    const leases = settled.leases.length > 0 ? settled.leases : await next(source);
    expect(leases.map(({ task_id }) => task_id)).toEqual(['b']);
    await expectSound(h, run);
  });

  // SPEC S10.6
  it('claims from the store after five seconds of silence, and goes on while it finds something', async () => {
    const { h, relay, broker, source } = await listen();
    const run = await h.start({ a: {}, b: {}, c: {}, d: {}, e: {}, f: {} });
    await relay.runOnce();
    broker.flush();
    expect(await next(source)).toEqual([]);
    h.clock.advance(5_000);
    const first = await next(source);
    expect(first).toHaveLength(4);
    await h.settle(...first.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }) as const));
    expect(await next(source)).toHaveLength(2);
    expect(await next(source)).toEqual([]);
    // Silence begins anew.
    const late = await h.start({ g: {} });
    expect(await next(source)).toEqual([]);
    h.clock.advance(5_000);
    expect(await next(source)).toHaveLength(1);
    await expectSound(h, run);
    await expectSound(h, late);
  });

  // SPEC S10.6
  it('works from the store while the broker is away', async () => {
    const { h, broker, source } = await listen();
    broker.isDown = true;
    await h.start({ a: {} });
    expect(await next(source)).toEqual([]);
    h.clock.advance(5_000);
    expect(await next(source)).toHaveLength(1);
  });

  // SPEC S10.1
  it('a message comes twice, late, or is none at all: nothing happens, and it is done with', async () => {
    const { h, broker, relay, source } = await listen();
    const run = await h.start({ a: {} });
    await relay.runOnce();
    const [message] = broker.sent;
    const { topic = '', body = '' } = message ?? {};
    const signal = AbortSignal.timeout(1_000);
    for (const text of [body, 'nonsense', body]) await broker.publish({ topic, body: text }, signal);
    expect(await next(source)).toHaveLength(1);
    expect(await next(source)).toEqual([]);
    await source.close();
    const heir = broker.consumer();
    expect(await heir.receive({ topics: [topic], limit: 9, waitMs: 0 })).toEqual([]);
    await expectSound(h, run);
  });

  // SPEC S10.1
  it('a message of a later version is left to a worker that understands it', async () => {
    const { h, broker, relay, source } = await listen();
    await h.start({ a: {} });
    await relay.runOnce();
    const topic = broker.sent[0]?.topic ?? '';
    const body = '{"schema_version":2}';
    await next(source);
    await broker.publish({ topic, body }, AbortSignal.timeout(1_000));
    expect(await next(source)).toEqual([]);
    await source.close();
    const newer = await broker.consumer().receive({ topics: [topic], limit: 9, waitMs: 0 });
    expect(newer.map((delivery) => delivery.body)).toEqual([body]);
  });

  // SPEC S10.1, DESIGN contracts
  it('a claim that the store did not answer is tried again before the message is done with', async () => {
    let isArmed = false;
    const { h, relay, source } = await listen({
      onStatement: (name) => {
        if (isArmed && name === 'commit') throw new TypeError('away');
      },
    });
    const run = await h.start({ a: {} });
    await relay.runOnce();
    isArmed = true;
    await expect(next(source)).rejects.toThrow('away');
    isArmed = false;
    expect(await next(source)).toHaveLength(1);
    await expectSound(h, run);
  });

  // SPEC S10.6, S8.1
  it('what a limit holds back is taken by whoever makes room, without a message', async () => {
    const { h, relay, source } = await listen({ limits: { one: { concurrency: 1 } } });
    const run = await h.start({ a: { limits: ['one'] }, b: { limits: ['one'] } });
    await relay.runOnce();
    const [a, ...others] = await next(source);
    expect(a?.task_id).toBe('a');
    expect(others).toEqual([]);
    expect((await h.task(run, 'b')).waiting_for).toBe('limit');
    const { leases } = await source.next({
      limit: 4,
      settlements: [{ kind: 'complete', lease_id: a?.lease_id ?? '', output: 1 }],
      signal: AbortSignal.abort(),
    });
    expect(leases.map(({ task_id }) => task_id)).toEqual(['b']);
    await expectSound(h, run);
  });

  // SPEC S10.6
  it('a new kind of work is heard of without waiting', async () => {
    const { h, relay, source } = await listen();
    const waiting = source.next({ limit: 4, settlements: [], signal: AbortSignal.timeout(5_000) });
    await h.start({ a: {} });
    await relay.runOnce();
    expect((await waiting).leases).toHaveLength(1);
  });
});
