/**
 * The publishing loop (SPEC S10.2–S10.5): takes messages that the engine has written, sends them, and records what became of each.
 * Any number of processes may run it. A message can be sent twice (a crash between send and record) and is never lost: its row goes
 * only when it was sent, and leaves a mark (I9). An outage spends nothing (I10); stopping in the middle loses nothing (I11).
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { LoopService } from '../base/service.ts';
import type { Broker, SendResult } from '../brokers/broker.ts';
import { afterOutage, type Breaker, CLOSED, openForMs } from '../domain/breaker.ts';
import type { RelaySettings } from '../domain/relay-settings.ts';
import type { TakenMessage } from '../stores/rows.ts';
import type { OutboxOutcome, Store, Tx } from '../stores/store.ts';
import { settleOutbox } from './dead-letters.ts';
import { Loop } from './loop.ts';
import { fleetConcurrency } from './outbox-fleet.ts';
import { newHome, topicOf } from './outbox-topics.ts';
import { runTrace } from './run-settings.ts';
import { writeTaskMessage } from './task-message.ts';

/** What a relay is made of. */
export interface OutboxRelayOptions {
  readonly store: Store;
  readonly broker: Broker;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: RelaySettings;
  /** Says that the loop is alive; called about every second, or after a send that took longer. */
  readonly onAlive?: () => void;
}

/** Delayed messages that one turn makes due, and messages that one turn of tidying looks at. */
const WAKE_MAX = 1_000;
const TIDY_MS = 5_000;
/** The loop shows that it is alive also while it waits. */
const ALIVE_MS = 1_000;
/** While messages wait for room in the window, it is looked for soon, and then less and less often. */
const SHORT_REST_MIN_MS = 2;
const SHORT_REST_MAX_MS = 100;
/** Before a worker is known, a few messages are sent ahead for the first. */
const WINDOW_MIN = 32;
const WINDOW_PER_SLOT = 2;
const WINDOW_MS = 1_000;

const NOTHING = { sent: 0, deferred: 0, dead: 0, released: 0 };

/** What one turn of the loop did. */
type Counts = { -readonly [Name in keyof typeof NOTHING]: number };

/** Sends the messages of a store. */
export class OutboxRelay implements LoopService {
  readonly name = 'outbox_relay';
  readonly #options: OutboxRelayOptions;
  readonly #loop: Loop;
  /** Names what this process has in hand; two relays never share it. */
  readonly #owner = `relay-${randomUUID()}`;
  #home: string | null = null;
  #breaker: Breaker = CLOSED;
  #tidyAt = 0;
  #restUntil = 0;
  #window = { size: WINDOW_MIN, until: 0 };
  #shortRestMs = SHORT_REST_MIN_MS;
  #isTold = false;
  /** Messages were due, and none could be taken. */
  #isWaitingForRoom = false;
  /** No send starts after this moment; the first word to stop sets it, and no later one moves it. */
  #stopSendingAt = Number.POSITIVE_INFINITY;

  constructor(options: OutboxRelayOptions) {
    this.#options = options;
    this.#loop = new Loop({
      name: this.name,
      logger: options.logger,
      turn: () => this.#turnOrRest(),
    });
  }

  async start(): Promise<void> {
    await this.#loop.start();
  }

  /** Takes no more; what is in hand is sent until the shutdown timeout is over, and the rest is given back. */
  async stop(): Promise<void> {
    const { clock, settings } = this.#options;
    this.#stopSendingAt = Math.min(this.#stopSendingAt, clock.monotonic() + settings.shutdownTimeoutMs);
    await this.#loop.stop();
  }

  /** There is something to send, there is room for more, or another process has said one or the other. */
  wake(news: 'queued' | 'claimed' | 'announced'): void {
    if (news === 'claimed' && !this.#isWaitingForRoom) return;
    this.#restUntil = 0;
    if (news === 'queued') this.#isTold = true;
    this.#loop.wake();
  }

  /** One turn: a batch, or nothing while the breaker is open. */
  async runOnce(): Promise<Counts> {
    return (await this.#turn()).counts;
  }

  /** Rests in short stretches, so that the loop can show that it is alive. */
  async #turnOrRest(): Promise<{ counts: Counts; restMs: number }> {
    const { clock } = this.#options;
    const leftMs = this.#restUntil - clock.monotonic();
    this.#options.onAlive?.();
    if (leftMs > 0) return { counts: { ...NOTHING }, restMs: Math.min(leftMs, ALIVE_MS) };
    this.#restUntil = Number.POSITIVE_INFINITY;
    const { counts, restMs } = await this.#turn();
    // A wake-up during the turn has set it to zero.
    this.#restUntil = Math.min(this.#restUntil, clock.monotonic() + restMs);
    return { counts, restMs: this.#restUntil === 0 ? 0 : Math.min(restMs, ALIVE_MS) };
  }

  async #turn(): Promise<{ counts: Counts; restMs: number }> {
    const { clock, store, settings } = this.#options;
    const now = clock.now();
    const cooldownMs = openForMs(this.#breaker, now);
    if (cooldownMs > 0 || this.#isStopping) return { counts: { ...NOTHING }, restMs: cooldownMs };
    await this.#tidy(now);
    // An idle loop only looks; a writer that was told of messages need not ask.
    if (!this.#isTold) {
      const { due, next_at } = await store.read((tx) => tx.outbox.peek());
      if (due === 0 && (next_at === null || next_at > now)) {
        const untilNext = next_at === null ? settings.idleTimeMs : next_at - now;
        return { counts: { ...NOTHING }, restMs: Math.min(untilNext, settings.idleTimeMs) };
      }
    }
    this.#isTold = false;
    const messages = await this.#take(now);
    this.#isWaitingForRoom = messages.length === 0;
    const counts = await this.#send(messages);
    return { counts, restMs: this.#restAfter(messages.length) };
  }

  /** Nothing when the batch was full. Else there is no more, or the window is full: a moment, and then longer. */
  #restAfter(taken: number): number {
    const { batchSize, idleTimeMs } = this.#options.settings;
    if (taken > 0) this.#shortRestMs = SHORT_REST_MIN_MS;
    if (taken >= batchSize) return 0;
    const restMs = this.#shortRestMs;
    this.#shortRestMs = Math.min(restMs * 2, SHORT_REST_MAX_MS);
    return Math.min(restMs, idleTimeMs);
  }

  get #isStopping(): boolean {
    return this.#stopSendingAt !== Number.POSITIVE_INFINITY;
  }

  /** Tasks that processes without this broker have moved or queued are noticed here. */
  async #tidy(now: number): Promise<void> {
    const { clock, store } = this.#options;
    if (clock.monotonic() < this.#tidyAt) return;
    this.#tidyAt = clock.monotonic() + TIDY_MS;
    // A look at the store sets its clock, by which processes agree when a message is due and for how long it is in hand.
    await store.changeMark();
    const isUntidy = await store.read((tx) => tx.outbox.isUntidy(now));
    if (isUntidy) await store.write((tx) => tx.outbox.tidy(now, WAKE_MAX));
  }

  /** Takes a batch, but no more than the fleet will soon have room for: whoever is first in line is decided here (SPEC S10.6). */
  async #take(now: number): Promise<readonly TakenMessage[]> {
    const { store, settings } = this.#options;
    const owner = this.#owner;
    const until = now + settings.staleTimeoutMs;
    return store.write(async (tx) => {
      this.#home ??= await tx.outbox.home(newHome());
      await tx.outbox.wake(now, WAKE_MAX);
      const window = await this.#windowSize(tx);
      const messages = await tx.outbox.take({ now, owner, until, limit: settings.batchSize, window });
      return messages.sort((a, b) => a.rank - b.rank || a.task_key - b.task_key);
    });
  }

  /** About twice what the fleet can have at work. Workers come and go seldom, so that they are counted once in a while. */
  async #windowSize(tx: Tx): Promise<number> {
    const { clock } = this.#options;
    if (clock.monotonic() >= this.#window.until) {
      const slots = fleetConcurrency(await tx.workers.list(), clock.now());
      const size = Math.max(WINDOW_MIN, WINDOW_PER_SLOT * slots);
      this.#window = { size, until: clock.monotonic() + WINDOW_MS };
    }
    return this.#window.size;
  }

  /** Sends a batch: serially, or as many at once as the settings say. */
  async #send(messages: readonly TakenMessage[]): Promise<Counts> {
    if (messages.length === 0) return { ...NOTHING };
    const { settings, clock, onAlive } = this.#options;
    const batch = new Batch(messages, clock.now() + settings.staleTimeoutMs);
    const total: Counts = { ...NOTHING };
    const inFlight = new Set<Promise<void>>();
    let aliveAt = clock.monotonic() + ALIVE_MS;
    while (batch.unsent.length > 0 && this.#mayStart()) {
      if (clock.monotonic() >= aliveAt) {
        aliveAt = clock.monotonic() + ALIVE_MS;
        onAlive?.();
      }
      if (batch.until - clock.now() < this.#renewBelowMs) await this.#renew(batch, total);
      const message = batch.unsent.shift();
      if (message === undefined) break;
      const sending: Promise<void> = this.#sendOne(message, batch).finally(() => inFlight.delete(sending));
      inFlight.add(sending);
      if (inFlight.size >= settings.publishConcurrency) await Promise.race(inFlight);
    }
    // Sends that are under way are judged by their own outcome; nothing takes their place.
    await Promise.all(inFlight);
    await this.#record(batch, total, { isLast: true });
    return total;
  }

  /** Claims are renewed in good time, so that a send never starts with less than its own timeout left. */
  get #renewBelowMs(): number {
    const { staleTimeoutMs, sendTimeoutMs } = this.#options.settings;
    return Math.max(sendTimeoutMs, staleTimeoutMs / 2);
  }

  #mayStart(): boolean {
    const { clock } = this.#options;
    return openForMs(this.#breaker, clock.now()) === 0 && clock.monotonic() < this.#stopSendingAt;
  }

  async #sendOne(message: TakenMessage, batch: Batch): Promise<void> {
    const { broker, settings } = this.#options;
    batch.sending.add(message.task_key);
    const topic = topicOf(this.#home ?? '', message.queue_key);
    const trace = runTrace({ id: message.run_id, settings: message.run_settings });
    const body = writeTaskMessage(message, trace);
    const result = await broker.publish({ topic, body }, AbortSignal.timeout(settings.sendTimeoutMs));
    batch.sending.delete(message.task_key);
    this.#judge(message, result, batch);
  }

  /** The one place that says what a result means. */
  #judge(message: TakenMessage, result: SendResult, batch: Batch): void {
    const { clock, settings, logger, broker } = this.#options;
    const { task_key, retries } = message;
    const now = clock.now();
    if (result.kind === 'sent') {
      this.#breaker = CLOSED;
      batch.sent.push(task_key);
      return;
    }
    const last_error = result.error.slice(0, ERROR_CHARS_MAX);
    if (result.kind === 'outage') {
      const wasOpen = openForMs(this.#breaker, now) > 0;
      this.#breaker = afterOutage(this.#breaker, now, settings.outageCooldownMs);
      if (!wasOpen && openForMs(this.#breaker, now) > 0)
        logger.error('outbox.breaker_opened', { broker: broker.description, error: last_error });
      const available_at = now + settings.outageCooldownMs;
      batch.deferred.push({ task_key, available_at, retries, last_error });
    } else if (retries < settings.maxRetries) {
      const backoffMs = Math.min(settings.backoffTimeMs * 2 ** retries, settings.maxBackoffMs);
      const available_at = now + backoffMs;
      batch.deferred.push({ task_key, available_at, retries: retries + 1, last_error });
    } else batch.dead.push({ task_key, retries, last_error });
  }

  /** Records what is known by now and keeps the rest in hand for longer; what has become another's is not sent. */
  async #renew(batch: Batch, total: Counts): Promise<void> {
    const { clock, settings } = this.#options;
    const until = clock.now() + settings.staleTimeoutMs;
    const keys = [...batch.unsent.map(({ task_key }) => task_key), ...batch.sending];
    const own = await this.#record(batch, total, { isLast: false, renewed: { keys, until } });
    batch.until = until;
    batch.unsent = batch.unsent.filter(({ task_key }) => own.has(task_key));
  }

  async #record(
    batch: Batch,
    total: Counts,
    { isLast, renewed = { keys: [], until: 0 } }: { isLast: boolean; renewed?: OutboxOutcome['renewed'] },
  ): Promise<ReadonlySet<number>> {
    const { store, clock, logger } = this.#options;
    const released = isLast ? batch.unsent.map(({ task_key }) => task_key) : [];
    const { sent, deferred, dead } = batch.takeResults();
    const outcome: OutboxOutcome = {
      owner: this.#owner,
      now: clock.now(),
      sent,
      deferred,
      dead,
      released,
      renewed,
    };
    const own = await store.write((tx) => settleOutbox(tx, outcome));
    for (const { task_key, last_error } of dead)
      logger.error('outbox.dead_lettered', { task_key, error: last_error });
    total.sent += sent.length;
    total.deferred += deferred.length;
    total.dead += dead.length;
    total.released += released.length;
    return own;
  }
}

const ERROR_CHARS_MAX = 1_000;

/** Messages in hand, and what is known about them. */
class Batch {
  readonly messages: readonly TakenMessage[];
  unsent: TakenMessage[];
  readonly sending = new Set<number>();
  sent: number[] = [];
  deferred: OutboxOutcome['deferred'][number][] = [];
  dead: OutboxOutcome['dead'][number][] = [];
  /** When they are no longer ours. */
  until: number;

  constructor(messages: readonly TakenMessage[], until: number) {
    this.messages = messages;
    this.unsent = [...messages];
    this.until = until;
  }

  /** What is known and not recorded yet. */
  takeResults(): Pick<OutboxOutcome, 'sent' | 'deferred' | 'dead'> {
    const { sent, deferred, dead } = this;
    this.sent = [];
    this.deferred = [];
    this.dead = [];
    return { sent, deferred, dead };
  }
}
