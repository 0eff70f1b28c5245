/** The product in one process: store, engine, and a worker when one is wanted. The only place that puts the parts together. */
import { join, resolve } from 'node:path';
import { type Clock, systemClock } from '../base/clock.ts';
import { invariant } from '../base/invariant.ts';
import { createLogger, type Logger, type LogLevel } from '../base/logger.ts';
import { createRedactor } from '../base/redact.ts';
import type { Broker } from '../brokers/broker.ts';
import { openBroker } from '../brokers/registry.ts';
import type { LimitDefinition } from '../domain/limits.ts';
import type { RelaySettings } from '../domain/relay-settings.ts';
import { Engine } from '../engine/engine.ts';
import { OutboxRelay } from '../engine/outbox-relay.ts';
import type { WorkerFit } from '../engine/worker-fit.ts';
import type { Handler } from '../handlers/handler.ts';
import type { BlobStore } from '../stores/blob-store.ts';
import { type BlobSettings, openBlobs } from '../stores/blobs/open-blobs.ts';
import { openStore } from '../stores/registry.ts';
import type { Store } from '../stores/store.ts';
import type { WorkSource } from '../worker/work-source.ts';
import { Worker } from '../worker/worker.ts';
import type { RelayApi } from './api.ts';
import { configureHandlers, type HandlerSettings } from './configured-handlers.ts';
import { createLocalApi } from './local-api.ts';

/** How a local Relay is opened. */
export interface LocalOptions {
  /** Folder of the embedded store and the blobs. */
  readonly data: string;
  /** A store URL; by default `relay.db` in the data folder. */
  readonly store?: string | undefined;
  /** Where large payloads are kept; by default files in the data folder. */
  readonly blobs?: BlobSettings | undefined;
  /** A broker URL. It must be the same for every process on the store: messages are written because of it. */
  readonly broker?: string | undefined;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: LogLevel;
  readonly writeLog: (line: string) => void;
  /** Who is written down for decisions and actions. */
  readonly by: string;
  readonly handlers?: readonly Handler[];
  /** Providers and prices of the config; keys come from `env`. */
  readonly models?: HandlerSettings['models'];
  readonly leaseMs?: number;
  /** How long terminal runs are kept; by default for ever. */
  readonly retentionMs?: number | undefined;
  /** The longest list that `for_each` may give. */
  readonly itemsMax?: number | undefined;
  /** Named limits, for every process of the store. */
  readonly limits?: Readonly<Record<string, LimitDefinition>> | undefined;
}

/** What a worker is started with. */
export interface LocalWorkerOptions {
  readonly concurrency: number;
  /** Serve this run and no other. */
  readonly run_id?: string;
  readonly shutdownGraceMs?: number;
  /** What tasks may ask of a worker beyond its handlers. */
  readonly fit?: WorkerFit;
  /** Somebody waits for `idle`: a claim that finds nothing must come back. */
  readonly isLeavingWhenIdle?: boolean;
  /** Looks on at what the worker asks of its source. */
  readonly watch?: (source: WorkSource) => WorkSource;
  /** Called when the broker cannot be reached; it is tried again. */
  readonly onBrokerAway?: (message: string) => void;
}

/** A worker at work. */
export interface RunningWorker {
  stop(graceMs?: number): Promise<void>;
  /** Resolves when there is nothing to do. */
  idle(): Promise<void>;
}

const SHUTDOWN_GRACE_MS = 10_000;
const IDLE_MS = 1_000;
/** How often the numbers of the outbox are logged. */
const SAMPLE_MS = 30_000;
/** A heartbeat costs one small commit here, and people watch. */
const PROGRESS_WITHIN_MS = 500;

/** Store, engine and workers of this process. */
export class LocalRelay {
  /** For programs that hold values, and for the routes; commands go through the routes. */
  readonly api: RelayApi;
  /** Who is written down for decisions and actions. */
  readonly by: string;
  readonly engine: Engine;
  readonly store: Store;
  readonly logger: Logger;
  /** Migrations that opening has applied. */
  readonly migrated: readonly string[];
  readonly #clock: Clock = systemClock;
  readonly #options: LocalOptions;
  readonly #handlers: ReadonlyMap<string, Handler>;
  #isRunning = false;
  /** Workers and outbox relays that nobody has stopped yet. */
  readonly #started = new Set<{ stop(graceMs?: number): Promise<void> }>();
  /** Where the word goes that there are messages to send. */
  #onMessages: (news: 'queued' | 'claimed') => void;
  /** What tells workers of tasks; null when they look for themselves. */
  readonly broker: Broker | null;

  private constructor(
    options: LocalOptions,
    {
      store,
      blobs,
      migrated,
      broker,
    }: Pick<LocalRelay, 'store' | 'migrated' | 'broker'> & { readonly blobs: BlobStore },
  ) {
    this.#options = options;
    this.by = options.by;
    this.store = store;
    this.migrated = migrated;
    this.broker = broker;
    this.#onMessages = () => store.announce();
    this.logger = createLogger({ level: options.log, clock: this.#clock, write: options.writeLog });
    const { env, models, handlers: own } = options;
    const { catalog, forWorker, keys } = configureHandlers({ env, models, own });
    this.#handlers = forWorker;
    this.engine = new Engine({
      store,
      blobs,
      handlers: catalog,
      clock: store.clock,
      random: Math.random,
      logger: this.logger,
      secret: (name) => options.env[name],
      env: (name) => options.env[name],
      masked: keys,
      ...(options.leaseMs === undefined ? {} : { leaseMs: options.leaseMs }),
      retentionMs: options.retentionMs,
      itemsMax: options.itemsMax,
      limits: options.limits,
      onMessages: broker === null ? undefined : (news) => this.#onMessages(news),
    });
    this.api = createLocalApi(this.engine, { by: options.by });
  }

  /** Opens the store and brings its schema up to date. Nothing runs yet. */
  static async open(options: LocalOptions): Promise<LocalRelay> {
    const folder = resolve(options.cwd, options.data);
    const blobs = await openBlobs(options.blobs ?? { kind: 'files' }, {
      folder: join(folder, 'blobs'),
      env: options.env,
      clock: systemClock,
    });
    const store = await openStore(options.store ?? `sqlite:${join(folder, 'relay.db')}`, options.cwd);
    const { applied } = await store.migrate();
    const { broker: brokerUrl = 'none' } = options;
    const broker = brokerUrl === 'none' ? null : await openBroker(brokerUrl);
    return new LocalRelay(options, { store, blobs, migrated: applied, broker });
  }

  /** Runs the engine's loops: decisions, timers, expired leases. */
  async startEngine(): Promise<void> {
    this.#isRunning = true;
    await this.engine.start();
  }

  /** Only notices what other processes commit; they run the loops. */
  async watchStore(): Promise<void> {
    this.#isRunning = true;
    await this.engine.startWatching();
  }

  /** Starts a worker; stopping it hands over or releases everything it holds. */
  async startWorker(options: LocalWorkerOptions): Promise<RunningWorker> {
    const run_key = options.run_id === undefined ? null : await this.#runKey(options.run_id);
    const { fit = {}, watch = (source) => source } = options;
    const handlers = [...this.#handlers.keys()];
    const { source, id, close } = await this.#sourceFor({ handlers, run_key, fit }, options);
    const worker = new Worker({
      source: watch(source),
      handlers: this.#handlers,
      concurrency: options.concurrency,
      clock: this.#clock,
      logger: this.logger,
      env: this.#options.env,
      workdir: this.#options.cwd,
      shutdownGraceMs: options.shutdownGraceMs ?? SHUTDOWN_GRACE_MS,
      progressWithinMs: PROGRESS_WITHIN_MS,
      redact: createRedactor(this.engine.secretValues),
    });
    await worker.start();
    const running: RunningWorker = {
      idle: () => worker.idle(),
      stop: async (graceMs) => {
        await worker.stop(graceMs);
        if (!this.#started.delete(running)) return;
        await close();
        await this.engine.forget(id);
      },
    };
    this.#started.add(running);
    return running;
  }

  /** Sends messages to the broker until it is stopped; new ones, of any process, are sent at once. */
  async startOutboxRelay(settings: RelaySettings, onAlive?: () => void): Promise<{ stop(): Promise<void> }> {
    const { logger, broker } = this;
    invariant(broker !== null, 'an outbox is sent to a broker');
    // Sending and claiming are not to wait for each other.
    const store = this.store.sibling();
    const relay = new OutboxRelay({
      store,
      broker,
      clock: store.clock,
      logger,
      settings,
      ...(onAlive === undefined ? {} : { onAlive }),
    });
    this.#onMessages = (news) => relay.wake(news);
    const deafen = store.listen(() => relay.wake('announced'));
    const sample = setInterval(() => void this.#logOutbox(), SAMPLE_MS).unref();
    await relay.start();
    const running = {
      stop: async () => {
        if (!this.#started.delete(running)) return;
        clearInterval(sample);
        this.#onMessages = () => this.store.announce();
        await relay.stop();
        await deafen();
        if (store !== this.store) await store.close();
      },
    };
    this.#started.add(running);
    return running;
  }

  async #logOutbox(): Promise<void> {
    try {
      this.logger.info('outbox.stats', { ...(await this.api.outbox.stats()) });
    } catch (error) {
      this.logger.warn('outbox.not_counted', { error });
    }
  }

  /** Ends everything, also what was started here and not stopped because something failed. */
  async close(): Promise<void> {
    // A store that is away keeps one from saying goodbye, and must not keep the rest from ending.
    await Promise.allSettled([...this.#started].map((running) => running.stop(0)));
    if (this.#isRunning) await this.engine.stop();
    await this.broker?.close();
    await this.store.close();
  }

  /** With a broker a worker waits for its word; one that serves a single run looks for itself. */
  async #sourceFor(
    wanted: { handlers: readonly string[]; run_key: number | null; fit: WorkerFit },
    { concurrency, onBrokerAway, isLeavingWhenIdle = false }: LocalWorkerOptions,
  ): Promise<{ id: string; source: WorkSource; close: () => Promise<void> }> {
    const { broker } = this;
    if (broker === null || wanted.run_key !== null) {
      const { id, source } = await this.engine.source(wanted);
      return { id, source: isLeavingWhenIdle ? impatient(source) : source, close: async () => {} };
    }
    // It comes back by itself when it has heard nothing and found nothing.
    const { id, source } = await this.engine.brokerSource(wanted, { broker, concurrency, onBrokerAway });
    return { id, source, close: () => source.close() };
  }

  async #runKey(run_id: string): Promise<number | null> {
    return this.store.read(async (tx) => (await tx.runs.byId(run_id))?.key ?? null);
  }
}

/** The same source, which waits for work a moment only. */
function impatient(source: WorkSource): WorkSource {
  return {
    next: ({ signal, ...request }) =>
      source.next({ ...request, signal: AbortSignal.any([signal, AbortSignal.timeout(IDLE_MS)]) }),
    extend: (heartbeats) => source.extend(heartbeats),
    log: (chunks) => source.log(chunks),
  };
}
