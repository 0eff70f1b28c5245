/**
 * The worker: claims, runs, settles (SPEC S6, S11.2). What has finished is handed over in the same call that takes new work, and
 * what finishes in one turn of the event loop is handed over together. There is one timer for everything; an attempt costs none.
 */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Service } from '../base/service.ts';
import { traceIdOf } from '../base/trace.ts';
import type { Handler } from '../handlers/handler.ts';
import { Alarm } from './alarm.ts';
import { Attempt } from './attempt.ts';
import { Exchange } from './exchange.ts';
import { LeaseKeeper } from './lease-keeper.ts';
import { LogShipper } from './log-shipper.ts';
import { type AttemptHost, runAttempt, settleCrashed, settleStopped } from './run-attempt.ts';
import type { Lease, Settlement, WorkSource } from './work-source.ts';

/** What a worker needs. */
export interface WorkerOptions {
  readonly source: WorkSource;
  readonly handlers: ReadonlyMap<string, Handler>;
  /** Handlers at work at once, at most. */
  readonly concurrency: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where handlers work when the run did not come from a file. */
  readonly workdir: string;
  /** How long running handlers may finish after `drain`. */
  readonly shutdownGraceMs: number;
  /** Progress travels within this time, where somebody looks on; otherwise with the next ordinary heartbeat. */
  readonly progressWithinMs?: number;
  /** Masks secrets in logs and errors. */
  readonly redact?: (text: string) => string;
}

/** After the grace, handlers have 10 s to obey and results a little longer to arrive; then the worker leaves. */
const GIVE_UP_AFTER_MS = 15_000;

/** Runs tasks from a source until it is told to stop. */
export class Worker implements Service {
  readonly name = 'worker';
  readonly #options: WorkerOptions;
  readonly #host: AttemptHost;
  readonly #exchange: Exchange;
  readonly #keeper: LeaseKeeper;
  readonly #logs: LogShipper;
  readonly #alarm: Alarm;
  #running = 0;
  /** Settles when the worker has left; null before it starts. */
  #left: Promise<void> | null = null;
  #leave: () => void = () => {};
  #wake: (() => void) | null = null;
  #drainEndsAt = Number.POSITIVE_INFINITY;
  #isGivenUp = false;
  #isIdle = false;
  #idleWaiters: (() => void)[] = [];

  constructor(options: WorkerOptions) {
    this.#options = options;
    const { source, clock, logger, handlers, env, workdir, redact = (text) => text } = options;
    this.#alarm = new Alarm(clock, () => void this.runDue());
    this.#exchange = new Exchange({
      source,
      clock,
      logger,
      beforeSend: (settlements) => this.#sendAhead(settlements),
      onSettled: (leaseId) => this.#keeper.remove(leaseId),
    });
    const onAbandon = (attempt: Attempt): void => this.#abandon(attempt);
    this.#keeper = new LeaseKeeper({ source, clock, logger, onAbandon });
    const onDueAt = (at: number): void => this.#alarm.setBy(at);
    this.#logs = new LogShipper({ source, clock, logger, redact, onDueAt });
    const log: AttemptHost['log'] = (attempt, stream, text) => this.#logs.add(attempt, stream, text);
    this.#host = { handlers, clock, env, workdir, redact, log, onProgress: () => this.#hurryBeat() };
  }

  /** Handlers at work now. */
  get running(): number {
    return this.#running;
  }

  async start(): Promise<void> {
    this.#left ??= new Promise<void>((resolve) => {
      this.#leave = resolve;
      void this.#run().then(resolve);
    });
  }

  /** Takes no new work; what runs may finish within the grace and is then released. Resolves when all is handed over. */
  async drain(graceMs = this.#options.shutdownGraceMs): Promise<void> {
    if (!this.#isDraining) {
      this.#drainEndsAt = this.#options.clock.monotonic() + graceMs;
      this.#alarm.setBy(this.#drainEndsAt);
      this.#exchange.interrupt();
      this.#rouse();
    }
    await this.#left;
  }

  async stop(graceMs?: number): Promise<void> {
    await this.drain(graceMs);
    this.#alarm.clear();
  }

  /** Resolves when nothing is held and the last claim came back empty. */
  async idle(): Promise<void> {
    if (this.#isIdle) return;
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Does what is due now: heartbeats, deadlines, logs, retries. The alarm calls it; so do tests that own the clock. */
  async runDue(): Promise<void> {
    const now = this.#options.clock.monotonic();
    if (now >= this.#drainEndsAt) this.#keeper.stopAll('shutdown', now);
    this.#keeper.enforce(now);
    if (now >= this.#drainEndsAt + GIVE_UP_AFTER_MS) this.#giveUp();
    this.#rouse();
    await Promise.all([this.#keeper.beatDue(now), this.#logs.flushDue(now)]);
    if (this.#left !== null && !this.#isDone()) this.#setAlarm();
  }

  get #isDraining(): boolean {
    return this.#drainEndsAt !== Number.POSITIVE_INFINITY;
  }

  get #room(): number {
    return this.#isDraining ? 0 : this.#options.concurrency - this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isDone()) {
      if (this.#exchange.mayCall(this.#room)) await this.#call();
      else await this.#sleep();
      // Handlers that end in this turn are settled together, by the next call.
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    await this.#logs.send();
    this.#alarm.clear();
  }

  #isDone(): boolean {
    return this.#isGivenUp || (this.#isDraining && this.#running === 0 && this.#exchange.unsent === 0);
  }

  async #call(): Promise<void> {
    const room = this.#room;
    const leases = await this.#exchange.call(room);
    const now = this.#options.clock.monotonic();
    for (const lease of leases ?? []) this.#begin(lease, now);
    this.#setAlarm();
    const isEmpty = leases?.length === 0 && room > 0;
    this.#isIdle = isEmpty && this.#keeper.size === 0 && this.#exchange.unsent === 0;
    if (this.#isIdle) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  #begin(lease: Lease, now: number): void {
    if (this.#keeper.get(lease.lease_id) !== undefined) return;
    const attempt = new Attempt(lease, now);
    this.#keeper.add(attempt, now);
    this.#running += 1;
    void runAttempt(attempt, this.#host).then(
      (settlement) => this.#finish(attempt, settlement),
      (error: unknown) => this.#finish(attempt, settleCrashed(attempt, error)),
    );
  }

  /** The first outcome of an attempt counts; a handler that was left behind may say what it likes. */
  #finish(attempt: Attempt, settlement: Settlement | null): void {
    if (attempt.isOver) return;
    attempt.isOver = true;
    this.#running -= 1;
    this.#logs.finish(attempt);
    if (settlement === null) this.#keeper.remove(attempt.lease.lease_id);
    else this.#exchange.add(settlement);
    this.#exchange.interrupt();
    this.#rouse();
  }

  #abandon(attempt: Attempt): void {
    const { lease_id, task_id, handler } = attempt.lease;
    const trace_id = traceIdOf(attempt.lease.trace);
    this.#options.logger.warn('worker.handler_abandoned', { lease_id, task_id, handler, trace_id });
    this.#finish(attempt, settleStopped(attempt, this.#host));
  }

  /** Logs and checkpoints of finished attempts arrive before their settlements, after which nobody would take them. */
  async #sendAhead(settlements: readonly Settlement[]): Promise<void> {
    if (this.#logs.hasReady) await this.#logs.send();
    await this.#keeper.sendCheckpoints(settlements);
  }

  #hurryBeat(): void {
    const { clock, progressWithinMs } = this.#options;
    if (progressWithinMs === undefined) return;
    const at = clock.monotonic() + progressWithinMs;
    this.#keeper.beatBy(at);
    this.#alarm.setBy(at);
  }

  #giveUp(): void {
    const unsettled = this.#keeper.size;
    if (!this.#isGivenUp && unsettled > 0) this.#options.logger.error('worker.gave_up', { unsettled });
    this.#isGivenUp = true;
    this.#exchange.abandon();
    this.#leave();
  }

  #sleep(): Promise<void> {
    return new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  #rouse(): void {
    this.#wake?.();
    this.#wake = null;
  }

  #setAlarm(): void {
    const now = this.#options.clock.monotonic();
    const giveUpAt = this.#drainEndsAt + GIVE_UP_AFTER_MS;
    this.#alarm.setBy(Math.min(this.#keeper.dueAt, this.#logs.dueAt));
    for (const at of [this.#exchange.dueAt, this.#drainEndsAt, giveUpAt]) if (at > now) this.#alarm.setBy(at);
  }
}
