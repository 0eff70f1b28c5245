/**
 * RabbitMQ: a durable queue for each topic, persistent messages, publisher confirms. A message is unacknowledged until its claim is
 * decided; the server gives it to another consumer when the connection of this one ends.
 */
import { type ChannelModel, type ConfirmChannel, connect } from 'amqplib';
import type { Broker, Consumer, OutgoingMessage, SendResult } from './broker.ts';
import { before, describeBroker, messageOf } from './broker-url.ts';
import { RabbitConsumer } from './rabbitmq-consumer.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const HEARTBEAT_S = 10;
/** Refusals that are about the queue or the message: access, unknown, locked, not as it was declared. */
const REFUSED: ReadonlySet<unknown> = new Set([403, 404, 405, 406]);

interface Publisher {
  readonly connection: ChannelModel;
  readonly channel: ConfirmChannel;
  readonly declared: Set<string>;
  /** Messages that came back because no queue took them. */
  readonly returned: Set<string>;
  /** Why the server closed the channel. */
  closedBy: unknown;
}

/** A RabbitMQ server as a broker. */
export class RabbitBroker implements Broker {
  readonly description: string;
  readonly #url: string;
  readonly #consumers = new Set<Consumer>();
  #publisher: Promise<Publisher> | null = null;
  #sent = 0;

  constructor(url: string) {
    this.description = describeBroker(url);
    const full = new URL(url);
    if (!full.searchParams.has('heartbeat')) full.searchParams.set('heartbeat', String(HEARTBEAT_S));
    this.#url = full.href;
  }

  async publish(message: OutgoingMessage, signal: AbortSignal): Promise<SendResult> {
    try {
      return await before(signal, this.#publish(message));
    } catch (error) {
      const isRefused = REFUSED.has((error as { code?: unknown } | null)?.code);
      return { kind: isRefused ? 'rejected' : 'outage', error: messageOf(error) };
    }
  }

  consumer({ prefetch }: { readonly prefetch: number }): Consumer {
    const consumer = new RabbitConsumer({ connect: () => this.#connect(), prefetch });
    this.#consumers.add(consumer);
    return consumer;
  }

  async close(): Promise<void> {
    for (const consumer of this.#consumers) await consumer.close();
    const publisher = await this.#publisher?.catch(() => null);
    this.#publisher = null;
    await publisher?.connection.close().catch(() => {});
  }

  async #publish({ topic, body }: OutgoingMessage): Promise<SendResult> {
    this.#publisher ??= this.#openPublisher();
    const publisher = await this.#publisher;
    if (!publisher.declared.has(topic)) {
      await publisher.channel.assertQueue(topic, { durable: true });
      publisher.declared.add(topic);
    }
    this.#sent += 1;
    const messageId = String(this.#sent);
    const error = await new Promise<unknown>((resolve) => {
      const options = { persistent: true, mandatory: true, messageId };
      publisher.channel.publish('', topic, Buffer.from(body), options, (refusal) => resolve(refusal));
    });
    if (publisher.returned.delete(messageId)) {
      publisher.declared.delete(topic);
      return { kind: 'rejected', error: `the queue ${topic} is not there` };
    }
    if (error === null || error === undefined) return { kind: 'sent' };
    if (messageOf(error) === 'message nacked')
      return { kind: 'rejected', error: 'the broker did not take the message (nack)' };
    throw publisher.closedBy ?? error;
  }

  async #openPublisher(): Promise<Publisher> {
    const forget = (): void => {
      this.#publisher = null;
    };
    try {
      const connection = await this.#connect();
      const channel = await connection.createConfirmChannel();
      const publisher: Publisher = {
        connection,
        channel,
        declared: new Set(),
        returned: new Set(),
        closedBy: null,
      };
      channel.on('return', ({ properties }) => publisher.returned.add(String(properties.messageId)));
      channel.on('error', (error: unknown) => {
        publisher.closedBy = error;
      });
      channel.on('close', () => {
        forget();
        void connection.close().catch(() => {});
      });
      connection.on('close', forget);
      return publisher;
    } catch (error) {
      forget();
      throw error;
    }
  }

  async #connect(): Promise<ChannelModel> {
    const connection = await connect(this.#url, { timeout: CONNECT_TIMEOUT_MS });
    // A lost connection is noticed by whoever uses it next.
    connection.on('error', () => {});
    return connection;
  }
}
