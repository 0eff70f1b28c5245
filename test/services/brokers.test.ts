/** One suite for every broker, on real servers (SPEC S10.6). The one in memory, which other tests use, keeps the same promises. */
import { connect } from 'amqplib';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Broker, Consumer, Delivery } from '../../src/brokers/broker.ts';
import { openBroker } from '../../src/brokers/registry.ts';
import { type BrokerServer, startRabbit, startRedis } from '../support/brokers.ts';
import { MemoryBroker } from '../support/memory-broker.ts';
import { eventually } from '../support/processes.ts';

interface Kind {
  readonly name: string;
  readonly start: () => Promise<BrokerServer | { readonly reason: string }>;
  /** Makes a topic that takes no messages. */
  readonly spoil: (url: string, topic: string) => Promise<void>;
  /** Loses a topic with all that is in it. */
  readonly lose: (url: string, topic: string) => Promise<void>;
}

const KINDS: readonly Kind[] = [
  {
    name: 'redis',
    start: startRedis,
    spoil: (url, topic) => onRedis(url, (redis) => redis.set(topic, 'no stream')),
    lose: (url) => onRedis(url, (redis) => redis.flushall()),
  },
  {
    name: 'rabbitmq',
    start: startRabbit,
    spoil: (url, topic) =>
      onRabbit(url, (channel) => channel.assertQueue(topic, { durable: true, maxLength: 3 })),
    lose: (url, topic) => onRabbit(url, (channel) => channel.deleteQueue(topic)),
  },
];

const started = await Promise.all(KINDS.map(async (kind) => ({ kind, server: await kind.start() })));
const SEND_MS = 5_000;
let topics = 0;
const newTopic = (): string => `relay.test.${topics++}`;

for (const { kind, server } of started) {
  const why = 'reason' in server ? `, skipped: ${server.reason}` : '';
  describe.skipIf('reason' in server)(`a broker (${kind.name}${why})`, () => {
    if (!('reason' in server)) behaviours(kind, server);
  });
}

function behaviours(kind: Kind, server: BrokerServer): void {
  let broker: Broker;
  const send = (topic: string, body: string) => broker.publish({ topic, body }, AbortSignal.timeout(SEND_MS));
  const consumer = (name = 'one', prefetch = 10): Consumer => broker.consumer({ name, prefetch });

  beforeAll(async () => {
    broker = await openBroker(server.url);
  });
  afterEach(async () => {
    await broker.close();
    broker = await openBroker(server.url);
  });
  afterAll(async () => {
    await broker.close();
    await server.remove();
  });

  // SPEC S10.6
  it('a message arrives in order, at its topic and no other, and not again once it is acknowledged', async () => {
    const [topic, other] = [newTopic(), newTopic()];
    for (const body of ['a', 'b', 'c']) expect(await send(topic, body)).toEqual({ kind: 'sent' });
    await send(other, 'x');
    const one = consumer();
    const got: string[] = [];
    while (got.length < 3) {
      const some = await receive(one, topic, { limit: 2 });
      expect(some.length).toBeLessThanOrEqual(2);
      got.push(...bodies(some));
      await one.acknowledge(some);
    }
    expect(got).toEqual(['a', 'b', 'c']);
    await one.close();
    expect(await consumer('two').receive({ topics: [topic], limit: 5, waitMs: 300 })).toEqual([]);
  });

  // SPEC S10.6
  it('takes no more than it has room for, from however many topics', async () => {
    const both = [newTopic(), newTopic()];
    for (const body of ['a', 'b', 'c', 'd']) await send(both[0] ?? '', body);
    await send(both[1] ?? '', 'x');
    const one = consumer('one', 4);
    const got: string[] = [];
    await eventually(async () => {
      const some = await one.receive({ topics: both, limit: 4, waitMs: 500 });
      expect(some.length).toBeLessThanOrEqual(4);
      await one.acknowledge(some);
      got.push(...bodies(some));
      return got.length === 5;
    });
    expect(got.toSorted()).toEqual(['a', 'b', 'c', 'd', 'x']);
  });

  // SPEC S10.2
  it('whoever waits hears of a message at once, and can be told to stop waiting', async () => {
    const [topic, other] = [newTopic(), newTopic()];
    const one = consumer();
    const waiting = one.receive({ topics: [topic, other], limit: 5, waitMs: 20_000 });
    expect(await send(other, 'now')).toEqual({ kind: 'sent' });
    const got = await waiting;
    expect(bodies(got)).toEqual(['now']);
    await one.acknowledge(got);
    const again = one.receive({ topics: [topic], limit: 5, waitMs: 60_000 });
    const stopping = setInterval(() => one.interrupt(), 20);
    expect(await again).toEqual([]);
    clearInterval(stopping);
  });

  // SPEC S10.6
  it('what a dead consumer had in hand goes to another', async () => {
    const topic = newTopic();
    await send(topic, 'left');
    const dying = await openBroker(server.url);
    const lost = dying.consumer({ name: 'dying', prefetch: 5 });
    expect(bodies(await receive(lost, topic))).toEqual(['left']);
    await dying.close();
    const heir = consumer('heir');
    const got = await receive(heir, topic, { withinMs: 30_000 });
    expect(bodies(got)).toEqual(['left']);
    await heir.acknowledge(got);
  });

  // SPEC S10.6
  it('a busy consumer keeps nothing from an idle one', async () => {
    const topic = newTopic();
    for (const body of ['a', 'b', 'c', 'd']) await send(topic, body);
    const busy = consumer('busy');
    expect(bodies(await receive(busy, topic, { limit: 1 }))).toEqual(['a']);
    const idle = consumer('idle');
    const got: string[] = [];
    await eventually(async () => {
      const more = await idle.receive({ topics: [topic], limit: 5, waitMs: 200 });
      await idle.acknowledge(more);
      got.push(...bodies(more));
      return got.length === 3;
    }, 20_000);
    expect(got.sort()).toEqual(['b', 'c', 'd']);
  });

  // SPEC S10.2
  it('a topic that cannot take a message refuses it, and that is no outage', async () => {
    const topic = newTopic();
    await kind.spoil(server.url, topic);
    const result = await send(topic, 'a');
    expect(result).toMatchObject({
      kind: 'rejected',
      error: expect.stringMatching(/WRONGTYPE|PRECONDITION/),
    });
    expect(await send(newTopic(), 'b')).toEqual({ kind: 'sent' });
  });

  // SPEC S10.6
  it('after a loss of everything, messages arrive again', async () => {
    const topic = newTopic();
    const one = consumer();
    await send(topic, 'before');
    await one.acknowledge(await receive(one, topic));
    await kind.lose(server.url, topic);
    await eventually(async () => {
      await send(topic, 'after');
      const got = await one.receive({ topics: [topic], limit: 5, waitMs: 200 }).catch(() => []);
      await one.acknowledge(got);
      return bodies(got).includes('after');
    }, 20_000);
  });

  // SPEC S10.4
  it('a stopped server is an outage for senders and receivers, and both go on when it is back', async () => {
    const topic = newTopic();
    const one = consumer();
    await send(topic, 'before');
    await one.acknowledge(await receive(one, topic));
    await server.stop();
    try {
      await eventually(async () => (await send(topic, 'lost')).kind === 'outage');
      expect(await send(topic, 'lost')).toMatchObject({ kind: 'outage', error: expect.any(String) });
      await expect(one.receive({ topics: [topic], limit: 1, waitMs: 100 })).rejects.toThrow();
    } finally {
      await server.start();
    }
    await eventually(async () => (await send(topic, 'after')).kind === 'sent', 30_000);
    await eventually(async () => {
      const got = await one.receive({ topics: [topic], limit: 5, waitMs: 200 }).catch(() => []);
      return bodies(got).includes('after');
    }, 30_000);
  });

  // SPEC S10.3
  it('a send ends with its time, whatever the server does', async () => {
    expect(await broker.publish({ topic: newTopic(), body: 'a' }, AbortSignal.abort())).toMatchObject({
      kind: 'outage',
    });
  });
}

describe('a broker (memory)', () => {
  // SPEC S10.6
  it('keeps, hands out and gives back messages as the real ones do', async () => {
    const broker = new MemoryBroker();
    const topic = newTopic();
    const lost = broker.consumer();
    const waiting = lost.receive({ topics: [topic], limit: 1, waitMs: 5_000 });
    for (const body of ['a', 'b'])
      expect(await broker.publish({ topic, body }, AbortSignal.timeout(SEND_MS))).toEqual({ kind: 'sent' });
    expect(bodies(await waiting)).toEqual(['a']);
    await lost.close();
    const heir = broker.consumer();
    const got = await heir.receive({ topics: [topic], limit: 5, waitMs: 0 });
    expect(bodies(got)).toEqual(['b', 'a']);
    await heir.acknowledge(got);
    await heir.close();
    expect(await broker.consumer().receive({ topics: [topic], limit: 5, waitMs: 0 })).toEqual([]);
    broker.isDown = true;
    await expect(heir.receive({ topics: [topic], limit: 1, waitMs: 0 })).rejects.toThrow();
  });
});

const bodies = (deliveries: readonly Delivery[]): string[] => deliveries.map(({ body }) => body);

/** Asks until something comes; a worker does the same. */
async function receive(
  from: Consumer,
  topic: string,
  { limit = 5, withinMs = 10_000 }: { readonly limit?: number; readonly withinMs?: number } = {},
): Promise<readonly Delivery[]> {
  let got: readonly Delivery[] = [];
  await eventually(async () => {
    got = await from.receive({ topics: [topic], limit, waitMs: 500 });
    return got.length > 0;
  }, withinMs);
  return got;
}

async function onRedis(url: string, act: (redis: Redis) => Promise<unknown>): Promise<void> {
  const redis = new Redis(url);
  await act(redis);
  redis.disconnect();
}

type RabbitChannel = Awaited<ReturnType<Awaited<ReturnType<typeof connect>>['createChannel']>>;

async function onRabbit(url: string, act: (channel: RabbitChannel) => Promise<unknown>): Promise<void> {
  const connection = await connect(url);
  await act(await connection.createChannel());
  await connection.close();
}
