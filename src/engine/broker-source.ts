/**
 * A source of work for a worker that listens to a broker (SPEC S10.6). A message only says what to claim; the claim, the results and the
 * heartbeats go to the database. When nothing has come for a while and there is room, work is claimed from the database directly: a
 * flushed broker, a lost message or a process that writes none strands nothing.
 */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Consumer, Delivery } from '../brokers/broker.ts';
import type {
  Heartbeat,
  HeartbeatAnswer,
  Lease,
  LogChunk,
  Settlement,
  SettlementResult,
  WorkSource,
} from '../worker/work-source.ts';
import type { EngineSource } from './engine-source.ts';
import { SEEN_EVERY_MS } from './outbox-fleet.ts';
import type { Signal } from './signal.ts';
import { readTaskMessage, type TaskMessage } from './task-message.ts';

/** What a source on a broker is made of. */
export interface BrokerSourceOptions {
  readonly source: EngineSource;
  readonly consumer: Consumer;
  /** The topics of the queues that the worker serves. */
  readonly topicsOf: (queues: readonly number[]) => readonly string[];
  /** There may be a queue that was not there before. */
  readonly queues: Signal;
  /** Whether limits hold tasks back; these have no message. */
  readonly hasHeld: () => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The broker cannot be reached; said once, until it is back. */
  readonly onAway: (message: string) => void;
  /** Writes down that the worker is there. */
  readonly touch: () => Promise<void>;
}

/** How long a worker with room hears nothing before it looks for itself; less while limits hold tasks back. */
const SILENCE_MS = 5_000;
const SILENCE_HELD_MS = 1_000;
/** A broker that is away is asked again after this. */
const AWAY_MS = 500;

type Answer = { readonly results: readonly SettlementResult[]; readonly leases: readonly Lease[] };

/** Hands out what messages are about. */
export class BrokerSource implements WorkSource {
  readonly #options: BrokerSourceOptions;
  /** Messages whose claim is not decided, because there was no room or the store did not answer. */
  #undecided: Delivery[] = [];
  /** A call of the broker that waits; it goes on while results are handed over. */
  #receiving: Promise<void> | null = null;
  #heardAt: number;
  #touchAt: number;
  #isAway = false;
  #isClosed = false;
  #arrived: () => void = () => {};

  constructor(options: BrokerSourceOptions) {
    this.#options = options;
    this.#heardAt = options.clock.monotonic();
    this.#touchAt = this.#heardAt + SEEN_EVERY_MS;
  }

  async next(request: {
    readonly limit: number;
    readonly settlements: readonly Settlement[];
    readonly signal: AbortSignal;
  }): Promise<Answer> {
    const { limit, settlements, signal } = request;
    this.#touch();
    if (limit > 0) await this.#listen(limit, settlements.length > 0 ? AbortSignal.abort() : signal);
    const deliveries = this.#undecided.slice(0, limit);
    const isSilent = deliveries.length === 0 && limit > 0 && this.#silenceLeftMs <= 0;
    if (deliveries.length === 0 && settlements.length === 0 && !isSilent) return { results: [], leases: [] };
    const messages = isSilent ? {} : { messages: await this.#read(deliveries) };
    // Nobody waits in the engine: what there is to wait for comes from the broker.
    const answer = await this.#options.source.next({
      limit,
      settlements,
      signal: AbortSignal.abort(),
      ...messages,
    });
    this.#decided(deliveries);
    if (isSilent) this.#lookedFor(answer.leases.length);
    return answer;
  }

  extend(heartbeats: readonly Heartbeat[]): Promise<readonly HeartbeatAnswer[]> {
    this.#touch();
    return this.#options.source.extend(heartbeats);
  }

  log(chunks: readonly LogChunk[]): Promise<void> {
    return this.#options.source.log(chunks);
  }

  /** What was not decided goes to other workers. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#options.consumer.close();
  }

  /** How long is still to be waited for a message before the store is asked. */
  get #silenceLeftMs(): number {
    const { clock, hasHeld } = this.#options;
    return this.#heardAt + (hasHeld() ? SILENCE_HELD_MS : SILENCE_MS) - clock.monotonic();
  }

  /** Waits until something has come, the silence was long enough, or the worker has something better to do. */
  async #listen(limit: number, signal: AbortSignal): Promise<void> {
    const isOver = (): boolean => this.#undecided.length > 0 || signal.aborted || this.#silenceLeftMs <= 0;
    // What is there already comes with this call; a call that waits goes on beside it.
    if (isOver() && this.#undecided.length === 0 && this.#receiving === null) {
      this.#receiving = this.#receive(limit, 0);
      await this.#receiving;
    }
    while (!isOver()) {
      this.#receiving ??= this.#receive(limit, this.#silenceLeftMs);
      await this.#arrival(this.#silenceLeftMs, signal);
    }
  }

  /** Resolves when a call of the broker is over, or at the time, or when aborted. */
  #arrival(withinMs: number, signal: AbortSignal): Promise<void> {
    return new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, withinMs);
      signal.addEventListener('abort', end, { once: true });
      this.#arrived = end;
    });
  }

  /** One call of the broker. Never rejects: an outage is a silence, and is told once. */
  async #receive(limit: number, waitMs: number): Promise<void> {
    const { consumer, source, topicsOf, queues, logger, clock } = this.#options;
    const over = new AbortController();
    try {
      const mark = queues.mark();
      const topics = topicsOf(await source.queues());
      if (topics.length === 0 && waitMs > 0) await queues.after(mark, AbortSignal.timeout(Math.ceil(waitMs)));
      if (topics.length === 0) return;
      if (waitMs > 0) void this.#interruptForOthers(topics, mark, over.signal);
      const deliveries = await consumer.receive({ topics, limit, waitMs });
      this.#undecided.push(...deliveries);
      if (deliveries.length > 0) this.#heardAt = clock.monotonic();
      if (this.#isAway) logger.warn('broker.back');
      this.#isAway = false;
    } catch (error) {
      if (!this.#isAway && !this.#isClosed)
        this.#options.onAway(error instanceof Error ? error.message : String(error));
      this.#isAway = true;
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, Math.min(waitMs, AWAY_MS)).unref());
    } finally {
      over.abort();
      this.#receiving = null;
      this.#arrived();
    }
  }

  /** Ends the wait as soon as the worker serves other queues than these. */
  async #interruptForOthers(topics: readonly string[], mark: number, signal: AbortSignal): Promise<void> {
    const { queues, source, topicsOf, consumer } = this.#options;
    for (let seen = mark; ; ) {
      await queues.after(seen, signal);
      if (signal.aborted) return;
      seen = queues.mark();
      // A store that is away is noticed elsewhere.
      const now = topicsOf(await source.queues().catch(() => []));
      if (now.length > 0 && now.join() !== topics.join() && !signal.aborted) {
        consumer.interrupt();
        return;
      }
    }
  }

  /** Messages of a later version are left to workers that understand them; what is none of ours is done with. */
  async #read(deliveries: readonly Delivery[]): Promise<readonly TaskMessage[]> {
    const { consumer, logger } = this.#options;
    const read = deliveries.map((delivery) => ({ delivery, message: readTaskMessage(delivery.body) }));
    const unknown = read.filter(({ message }) => message === 'unknown').map(({ delivery }) => delivery);
    if (unknown.length > 0) {
      logger.warn('broker.message_of_later_version', { messages: unknown.length });
      this.#undecided = this.#undecided.filter((delivery) => !unknown.includes(delivery));
      await consumer.leave(unknown);
    }
    return read.flatMap(({ message }) => (message === null || message === 'unknown' ? [] : [message]));
  }

  /** The database has decided; the broker need not keep them. If it does, they come again and find nothing to claim. */
  #decided(deliveries: readonly Delivery[]): void {
    const { consumer, logger } = this.#options;
    const done = deliveries.filter((delivery) => this.#undecided.includes(delivery));
    if (done.length === 0) return;
    this.#undecided = this.#undecided.filter((delivery) => !done.includes(delivery));
    consumer
      .acknowledge(done)
      .catch((error: unknown) => logger.info('broker.not_acknowledged', { messages: done.length, error }));
  }

  /** After a direct claim that found nothing, silence begins anew; after one that found something there may be more. */
  #lookedFor(found: number): void {
    const { clock, logger } = this.#options;
    if (found === 0) this.#heardAt = clock.monotonic();
    else logger.info('broker.silent', { claimed_directly: found });
  }

  #touch(): void {
    const { clock, touch, logger } = this.#options;
    if (clock.monotonic() < this.#touchAt) return;
    this.#touchAt = clock.monotonic() + SEEN_EVERY_MS;
    touch().catch((error: unknown) => logger.warn('worker.not_touched', { error }));
  }
}
