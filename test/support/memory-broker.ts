/** A broker in memory that does as it is told; it passes the same suite as the real ones (test/services/brokers.test.ts). */
import type {
  Broker,
  Consumer,
  Delivery,
  OutgoingMessage,
  ReceiveRequest,
  SendResult,
} from '../../src/brokers/broker.ts';

/** What the next sends come to; without one they are sent. */
export type Script = (message: OutgoingMessage, signal: AbortSignal) => SendResult | Promise<SendResult>;

export class MemoryBroker implements Broker {
  readonly description = 'memory:';
  /** Every message that was sent, in order. */
  readonly sent: OutgoingMessage[] = [];
  /** Sends under way now, and the most there ever were. */
  inFlight = 0;
  inFlightMax = 0;
  attempts = 0;
  isDown = false;
  script: Script | null = null;
  readonly #topics = new Map<string, string[]>();
  readonly #waiters = new Set<() => void>();

  async publish(message: OutgoingMessage, signal: AbortSignal): Promise<SendResult> {
    this.attempts += 1;
    this.inFlight += 1;
    this.inFlightMax = Math.max(this.inFlightMax, this.inFlight);
    try {
      if (this.isDown) return { kind: 'outage', error: 'it is down' };
      const result = (await this.script?.(message, signal)) ?? { kind: 'sent' };
      if (result.kind === 'sent') this.#add(message);
      return result;
    } finally {
      this.inFlight -= 1;
    }
  }

  consumer(): Consumer {
    const inHand = new Set<Delivery>();
    let interrupt = (): void => {};
    let isClosed = false;
    return {
      receive: async ({ topics, limit, waitMs }: ReceiveRequest) => {
        if (this.isDown) throw new Error('it is down');
        const until = Date.now() + waitMs;
        for (let isInterrupted = false; ; ) {
          const found = topics.flatMap((topic) => this.#take(topic, limit)).slice(0, limit);
          for (const delivery of found) inHand.add(delivery);
          const leftMs = until - Date.now();
          if (found.length > 0 || leftMs <= 0 || isInterrupted || isClosed) return found;
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, leftMs);
            const wake = (): void => {
              clearTimeout(timer);
              this.#waiters.delete(wake);
              resolve();
            };
            this.#waiters.add(wake);
            interrupt = () => {
              isInterrupted = true;
              wake();
            };
          });
        }
      },
      interrupt: () => interrupt(),
      acknowledge: async (deliveries) => {
        for (const delivery of deliveries) inHand.delete(delivery);
      },
      leave: async (deliveries) => {
        for (const delivery of deliveries) this.#giveBack(inHand, delivery);
      },
      close: async () => {
        isClosed = true;
        interrupt();
        for (const delivery of inHand) this.#giveBack(inHand, delivery);
      },
    };
  }

  async close(): Promise<void> {}

  /** As if the server had lost everything. */
  flush(): void {
    this.#topics.clear();
  }

  #add(message: OutgoingMessage): void {
    this.sent.push(message);
    const queue = this.#topics.get(message.topic) ?? [];
    this.#topics.set(message.topic, [...queue, message.body]);
    for (const wake of this.#waiters) wake();
  }

  #take(topic: string, limit: number): Delivery[] {
    const bodies = this.#topics.get(topic)?.splice(0, limit) ?? [];
    return bodies.map((body) => ({ body, tag: topic }));
  }

  #giveBack(inHand: Set<Delivery>, delivery: Delivery): void {
    if (!inHand.delete(delivery)) return;
    const topic = delivery.tag as string;
    this.#topics.set(topic, [...(this.#topics.get(topic) ?? []), delivery.body]);
    for (const wake of this.#waiters) wake();
  }
}
