/**
 * Redis Streams: a stream for each topic, one consumer group. An entry is pending for its consumer until it is acknowledged, and then
 * deleted; what a dead consumer has left is taken over by others. A flushed server loses messages and nothing else.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { RelayError } from '../base/errors.ts';
import type { Broker, Consumer, Delivery, OutgoingMessage, ReceiveRequest, SendResult } from './broker.ts';
import { before, describeBroker, messageOf } from './broker-url.ts';

const GROUP = 'workers';
const RECONNECT_MAX_MS = 1_000;
/** A connection on which nothing comes for so long is given up; a read that waits ends before that. */
const SOCKET_TIMEOUT_MS = 15_000;
const WAIT_MAX_MS = 10_000;
/** A claim takes milliseconds: an entry that is pending for so long has lost its consumer. */
const ABANDONED_MS = 10_000;
/** A consumer without entries that was not heard of for so long is struck off the list. */
const FORGOTTEN_MS = 3_600_000;

const OPTIONS = {
  lazyConnect: true,
  // A command fails at once while the server is away; the database knows what is to be done, not a queue in memory.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  retryStrategy: (times: number) => Math.min(50 * times, RECONNECT_MAX_MS),
  connectTimeout: 5_000,
  socketTimeout: SOCKET_TIMEOUT_MS,
  protocol: 2,
} as const satisfies RedisOptions;

/** Replies that are about the state of the server, not about the message. */
const SERVER_STATE =
  /^(LOADING|READONLY|MISCONF|OOM|CLUSTERDOWN|MASTERDOWN|BUSY|TRYAGAIN|NOAUTH|WRONGPASS|NOREPLICAS|UNKILLABLE|ERR max)/;

/** Atomically, so that an entry delivered at this very moment is not lost with its consumer. */
const FORGET = `
for _, entry in ipairs(redis.call('xinfo', 'consumers', KEYS[1], ARGV[1])) do
  local fields = {}
  for at = 1, #entry, 2 do fields[entry[at]] = entry[at + 1] end
  if fields.pending == 0 and fields.idle > tonumber(ARGV[2]) then
    redis.call('xgroup', 'delconsumer', KEYS[1], ARGV[1], fields.name)
  end
end`;

type Entry = readonly [id: string, fields: readonly string[] | null];
interface Tag {
  readonly topic: string;
  readonly id: string;
}

/** A Redis server as a broker. */
export class RedisBroker implements Broker {
  readonly description: string;
  readonly #url: string;
  readonly #commands: Link;
  readonly #consumers = new Set<RedisConsumer>();

  constructor(url: string) {
    this.description = describeBroker(url);
    this.#url = url;
    this.#commands = new Link(url);
  }

  async publish({ topic, body }: OutgoingMessage, signal: AbortSignal): Promise<SendResult> {
    try {
      await before(signal, this.#commands.call('XADD', topic, '*', 'body', body));
      return { kind: 'sent' };
    } catch (error) {
      const message = messageOf(error);
      const isRefused = isReply(error) && !SERVER_STATE.test(message);
      return { kind: isRefused ? 'rejected' : 'outage', error: message };
    }
  }

  consumer({ name }: { readonly name: string }): Consumer {
    const consumer = new RedisConsumer({ name, url: this.#url, commands: this.#commands });
    this.#consumers.add(consumer);
    return consumer;
  }

  async close(): Promise<void> {
    for (const consumer of this.#consumers) await consumer.close();
    this.#commands.close();
  }
}

/** One connection, opened when it is first needed. */
class Link {
  readonly #redis: Redis;
  /** The first try; later ones are the client's own. */
  #opening: Promise<void> | null = null;
  #lastError = 'the connection is closed';

  constructor(url: string) {
    this.#redis = new Redis(url, { ...OPTIONS });
    this.#redis.on('error', (error: Error) => {
      this.#lastError = messageOf(error);
    });
  }

  async call(command: string, ...args: readonly (string | number)[]): Promise<unknown> {
    this.#opening ??= this.#redis.connect();
    await this.#opening.catch(() => {});
    try {
      return await this.#redis.call(command, ...args);
    } catch (error) {
      // What the client says about a lost connection is about itself; the cause came before.
      if (isReply(error)) throw error;
      throw new RelayError('BROKER_UNAVAILABLE', this.#lastError, { cause: error });
    }
  }

  close(): void {
    this.#redis.disconnect();
  }
}

/** Reads on a connection of its own, because a read that waits blocks it. */
class RedisConsumer implements Consumer {
  readonly #name: string;
  readonly #reader: Link;
  readonly #commands: Link;
  readonly #joined = new Set<string>();
  #inHand = 0;
  #readerId: unknown = null;
  #reclaimAt = 0;

  constructor(options: { readonly name: string; readonly url: string; readonly commands: Link }) {
    this.#name = options.name;
    this.#commands = options.commands;
    this.#reader = new Link(options.url);
  }

  async receive({ topics, limit, waitMs }: ReceiveRequest): Promise<readonly Delivery[]> {
    if (topics.length === 0) return [];
    for (const topic of topics) if (!this.#joined.has(topic)) await this.#join(topic);
    const abandoned = await this.#reclaim(topics, limit);
    if (abandoned.length > 0) return abandoned;
    // A stream gives up to its share; those that gave all of it are asked for more, until the hand is full.
    const share = Math.max(1, Math.floor(limit / topics.length));
    const first = await this.#read(topics, { count: share, waitMs });
    const got = [...first];
    for (const topic of topics.length === 1 ? [] : topics) {
      const isMore = first.filter(({ tag }) => (tag as Tag).topic === topic).length === share;
      if (isMore && got.length < limit)
        got.push(...(await this.#read([topic], { count: limit - got.length, waitMs: 0 })));
    }
    return got;
  }

  interrupt(): void {
    if (this.#readerId === null) return;
    // If it cannot be told, the wait ends by itself.
    this.#commands.call('CLIENT', 'UNBLOCK', String(this.#readerId)).catch(() => {});
  }

  async acknowledge(deliveries: readonly Delivery[]): Promise<void> {
    this.#inHand -= deliveries.length;
    const tags = deliveries.map(({ tag }) => tag as Tag);
    const topics = [...new Set(tags.map(({ topic }) => topic))];
    await Promise.all(
      topics.flatMap((topic) => {
        const ids = tags.filter((tag) => tag.topic === topic).map(({ id }) => id);
        return [
          this.#commands.call('XACK', topic, GROUP, ...ids),
          this.#commands.call('XDEL', topic, ...ids),
        ];
      }),
    );
  }

  /** Pending entries are offered to others once they are old enough. */
  async leave(): Promise<void> {}

  async close(): Promise<void> {
    // What is still in hand belongs to the name: without it nobody could take it over.
    if (this.#inHand === 0) {
      const leaving = [...this.#joined].map((topic) =>
        this.#commands.call('XGROUP', 'DELCONSUMER', topic, GROUP, this.#name),
      );
      await Promise.allSettled(leaving);
    }
    this.#reader.close();
  }

  async #join(topic: string): Promise<void> {
    try {
      await this.#commands.call('XGROUP', 'CREATE', topic, GROUP, '0', 'MKSTREAM');
    } catch (error) {
      if (!messageOf(error).startsWith('BUSYGROUP')) throw error;
      await this.#commands.call('EVAL', FORGET, 1, topic, GROUP, FORGOTTEN_MS);
    }
    this.#joined.add(topic);
  }

  async #read(
    topics: readonly string[],
    { count, waitMs }: { readonly count: number; readonly waitMs: number },
  ): Promise<readonly Delivery[]> {
    const wait = waitMs > 0 ? ['BLOCK', Math.ceil(Math.min(waitMs, WAIT_MAX_MS))] : [];
    const places = [...topics, ...topics.map(() => '>')];
    const words = ['GROUP', GROUP, this.#name, 'COUNT', count, ...wait, 'STREAMS', ...places];
    try {
      this.#readerId ??= await this.#reader.call('CLIENT', 'ID');
      const reply = await this.#reader.call('XREADGROUP', ...words);
      const streams = (reply ?? []) as readonly (readonly [string, readonly Entry[]])[];
      return this.#taken(streams.flatMap(([topic, entries]) => deliveriesOf(topic, entries)));
    } catch (error) {
      // Another connection has another number, and a flushed server another idea of its groups.
      this.#readerId = null;
      this.#joined.clear();
      if (isReply(error) && messageOf(error).startsWith('NOGROUP')) return [];
      throw error;
    }
  }

  /** What dead consumers have left, looked for now and then. */
  async #reclaim(topics: readonly string[], limit: number): Promise<readonly Delivery[]> {
    const now = performance.now();
    if (now < this.#reclaimAt) return [];
    this.#reclaimAt = now + ABANDONED_MS;
    const found: Delivery[] = [];
    for (const topic of topics) {
      if (found.length >= limit) break;
      const wanted = limit - found.length;
      const reply = await this.#commands.call(
        'XAUTOCLAIM',
        topic,
        GROUP,
        this.#name,
        ABANDONED_MS,
        '0-0',
        'COUNT',
        wanted,
      );
      const [, entries] = reply as [string, readonly Entry[]];
      found.push(...deliveriesOf(topic, entries));
    }
    // A full hand means that there may be more.
    if (found.length >= limit) this.#reclaimAt = 0;
    return this.#taken(found);
  }

  #taken(deliveries: readonly Delivery[]): readonly Delivery[] {
    this.#inHand += deliveries.length;
    return deliveries;
  }
}

function deliveriesOf(topic: string, entries: readonly Entry[]): Delivery[] {
  return entries.map(([id, fields]) => ({ body: fields?.[1] ?? '', tag: { topic, id } satisfies Tag }));
}

function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}
