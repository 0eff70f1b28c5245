/**
 * The contract of a broker. It carries small messages from the outbox to workers, at least once, and decides nothing: a message that
 * is lost, late or doubled does no harm, because the claim in the database decides. Sends only send; the outbox relay judges.
 */

/** A message on its way to the workers of one topic. */
export interface OutgoingMessage {
  readonly topic: string;
  readonly body: string;
}

/**
 * What came of a send. `outage`: the broker was not there, or did not answer in time; the message may have arrived all the same.
 * `rejected`: it was there and refused this message.
 */
export type SendResult =
  | { readonly kind: 'sent' }
  | { readonly kind: 'outage'; readonly error: string }
  | { readonly kind: 'rejected'; readonly error: string };

/** A message that a consumer has in hand until it acknowledges it. */
export interface Delivery {
  readonly body: string;
  /** What the broker calls it. */
  readonly tag: unknown;
}

/** What a consumer wants next. */
export interface ReceiveRequest {
  readonly topics: readonly string[];
  readonly limit: number;
  /** How long to wait for the first message, at most; 0 takes what is there. */
  readonly waitMs: number;
}

/** Takes messages for one worker. What it takes and does not acknowledge goes to another consumer once this one is gone. */
export interface Consumer {
  /** One call at a time. Rejects when the broker is away. */
  receive(request: ReceiveRequest): Promise<readonly Delivery[]>;
  /** Ends a call that waits. */
  interrupt(): void;
  /** These are dealt with and never come again. */
  acknowledge(deliveries: readonly Delivery[]): Promise<void>;
  /** These are not for this consumer; others get them, after a while. */
  leave(deliveries: readonly Delivery[]): Promise<void>;
  close(): Promise<void>;
}

/** A way to tell workers of tasks. */
export interface Broker {
  /** The URL without its password, for messages. */
  readonly description: string;
  /** Sends one message and waits until the broker has it. Never rejects; ends with `signal` at the latest. */
  publish(message: OutgoingMessage, signal: AbortSignal): Promise<SendResult>;
  /** A consumer for one worker. `prefetch` is how many messages it may hold at once. */
  consumer(options: { readonly name: string; readonly prefetch: number }): Consumer;
  close(): Promise<void>;
}
