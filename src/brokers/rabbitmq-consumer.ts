/**
 * The receiving side of RabbitMQ. The server pushes, a worker pulls: what has arrived waits here, and goes back to the server when the
 * worker has no room for it, so that a busy worker keeps nothing from an idle one.
 */
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';
import type { Consumer, Delivery, ReceiveRequest } from './broker.ts';

/** How long messages may wait here for room. */
const HOLD_MS = 1_000;
/** When messages that are not for this consumer are offered to others. */
const LEAVE_MS = 10_000;

interface Open {
  readonly connection: ChannelModel;
  readonly channel: Channel;
  /** Consumer tags by topic. */
  readonly tags: Map<string, string>;
}

interface Tag {
  readonly open: Open;
  readonly message: ConsumeMessage;
}

/** Holds up to `prefetch` messages of each topic. */
export class RabbitConsumer implements Consumer {
  readonly #options: { readonly connect: () => Promise<ChannelModel>; readonly prefetch: number };
  readonly #timers = new Set<NodeJS.Timeout>();
  #open: Open | null = null;
  #held: Delivery[] = [];
  #waiter: (() => void) | null = null;
  #holding: NodeJS.Timeout | undefined;

  constructor(options: { readonly connect: () => Promise<ChannelModel>; readonly prefetch: number }) {
    this.#options = options;
  }

  async receive({ topics, limit, waitMs }: ReceiveRequest): Promise<readonly Delivery[]> {
    if (topics.length === 0) return [];
    clearTimeout(this.#holding);
    this.#open ??= await this.#connect();
    await this.#subscribe(this.#open, topics);
    if (this.#held.length === 0 && waitMs > 0) await this.#arrival(waitMs);
    const taken = this.#held.splice(0, limit);
    if (this.#held.length > 0) this.#holdForAWhile();
    return taken;
  }

  interrupt(): void {
    this.#waiter?.();
  }

  async acknowledge(deliveries: readonly Delivery[]): Promise<void> {
    for (const { tag } of deliveries) {
      const { open, message } = tag as Tag;
      // With its connection a message has gone back to the server, and comes again.
      if (open === this.#open) open.channel.ack(message);
    }
  }

  async leave(deliveries: readonly Delivery[]): Promise<void> {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      for (const { tag } of deliveries) this.#giveBack(tag as Tag);
    }, LEAVE_MS).unref();
    this.#timers.add(timer);
  }

  async close(): Promise<void> {
    clearTimeout(this.#holding);
    for (const timer of this.#timers) clearTimeout(timer);
    const open = this.#open;
    this.#open = null;
    this.#held = [];
    this.#waiter?.();
    // The channel first: acknowledgements on their way arrive before it ends.
    await open?.channel.close().catch(() => {});
    await open?.connection.close().catch(() => {});
  }

  async #connect(): Promise<Open> {
    const connection = await this.#options.connect();
    const channel = await connection.createChannel();
    await channel.prefetch(this.#options.prefetch);
    const open: Open = { connection, channel, tags: new Map() };
    const lose = (): void => {
      if (this.#open !== open) return;
      this.#open = null;
      this.#held = [];
      this.#waiter?.();
      void connection.close().catch(() => {});
    };
    channel.on('error', () => {});
    channel.on('close', lose);
    connection.on('close', lose);
    return open;
  }

  async #subscribe(open: Open, topics: readonly string[]): Promise<void> {
    for (const topic of topics) {
      if (open.tags.has(topic)) continue;
      await open.channel.assertQueue(topic, { durable: true });
      const { consumerTag } = await open.channel.consume(topic, (message) =>
        this.#arrived(open, topic, message),
      );
      open.tags.set(topic, consumerTag);
    }
    for (const [topic, tag] of open.tags) {
      if (topics.includes(topic)) continue;
      open.tags.delete(topic);
      await open.channel.cancel(tag);
    }
  }

  /** Null means that the queue was deleted; it is made again with the next call. */
  #arrived(open: Open, topic: string, message: ConsumeMessage | null): void {
    if (message === null) open.tags.delete(topic);
    else if (open === this.#open && open.tags.size > 0)
      this.#held.push({ body: message.content.toString('utf8'), tag: { open, message } satisfies Tag });
    else this.#giveBack({ open, message });
    if (this.#waiter !== null) this.#waiter();
    else this.#holdForAWhile();
  }

  #arrival(waitMs: number): Promise<void> {
    return new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waiter = null;
        resolve();
      };
      const timer = setTimeout(end, waitMs);
      this.#waiter = end;
    });
  }

  #holdForAWhile(): void {
    clearTimeout(this.#holding);
    this.#holding = setTimeout(() => void this.#letGo(), HOLD_MS).unref();
  }

  /** Takes no more until somebody asks again, and gives back what is held. */
  async #letGo(): Promise<void> {
    const open = this.#open;
    if (open === null) return;
    const tags = [...open.tags.values()];
    open.tags.clear();
    const held = this.#held;
    this.#held = [];
    // A channel that closes meanwhile gives everything back by itself.
    for (const tag of tags) await open.channel.cancel(tag).catch(() => {});
    for (const { tag } of held) this.#giveBack(tag as Tag);
  }

  #giveBack({ open, message }: Tag): void {
    if (open === this.#open) open.channel.nack(message, false, true);
  }
}
