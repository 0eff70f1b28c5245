/**
 * The engine: every change of the product goes through here. It owns the group commit, follows up on what a commit leaves over,
 * and wakes whoever waits. It knows contracts only; which store, handlers and worker there are is the composition root's matter.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { RelayError } from '../base/errors.ts';
import { compileJsonSchema } from '../base/json-schema.ts';
import { MAP_ITEMS_MAX } from '../base/limits.ts';
import type { Logger } from '../base/logger.ts';
import { type Service, startAll, stopAll } from '../base/service.ts';
import type { TraceContext } from '../base/trace.ts';
import type { Broker } from '../brokers/broker.ts';
import type { HandlerCatalog } from '../definition/handler-spec.ts';
import type { Task, Workflow } from '../definition/workflow.ts';
import type { LimitDefinition } from '../domain/limits.ts';
import type { Random } from '../domain/retry.ts';
import type { BlobStore } from '../stores/blob-store.ts';
import type { RunRow, TaskRow, WorkerRow } from '../stores/rows.ts';
import type { Store, Tx } from '../stores/store.ts';
import { answer, type Decision, openQuestion } from './answer.ts';
import { BrokerSource } from './broker-source.ts';
import { Committer } from './committer.ts';
import { appendContext, type NewContext } from './context-snapshot.ts';
import { replayDeadLetters } from './dead-letters.ts';
import type { EngineContext } from './engine-context.ts';
import { createLoops, type EngineLoops } from './engine-loops.ts';
import { EngineSource, type SourceOptions } from './engine-source.ts';
import { ITEMS_CHUNK } from './expand.ts';
import { doOnce, isDone } from './idempotency.ts';
import { checkInputs } from './inputs.ts';
import { LimitBook } from './limit-book.ts';
import { cancelOneTask, cancelRun, closeRun, pauseRun, resumeRun } from './operate.ts';
import { newHome, topicOf } from './outbox-topics.ts';
import { Plans } from './plans.ts';
import { freeDeadWorkers, processIdentity } from './presence.ts';
import { type PruneFilter, prune } from './prune.ts';
import { RemoteWorkers } from './remote-workers.ts';
import { replayTask, rerunFrom, retryRun } from './replay.ts';
import type { BudgetChange } from './run-settings.ts';
import { Scopes } from './scope.ts';
import { Signal } from './signal.ts';
import { enqueueTasks, storeVersion, submit, submitOpen } from './submit.ts';
import { verdictAfterGate } from './verdict-after-gate.ts';
import type { Aftermath, Work } from './work.ts';

/** How long a lease lasts by default (SPEC S14.6). */
const LEASE_MS = 30_000;

/** How soon a process without limits notices that another one has configured some. */
const LIMITS_LOOK_MS = 1_000;

/** What an engine is made of. */
export interface EngineOptions {
  readonly store: Store;
  readonly blobs: BlobStore;
  readonly handlers: HandlerCatalog;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly secret: (name: string) => string | undefined;
  readonly env: (name: string) => string | undefined;
  /** Values that are masked like secrets though no workflow names them: the keys of model providers. */
  readonly masked?: readonly string[];
  readonly leaseMs?: number;
  /** The longest list that `for_each` may give; 100,000 by default. */
  readonly itemsMax?: number | undefined;
  /** Items of a map that one transaction makes; 500 by default, less only to look between the chunks. */
  readonly itemsChunk?: number | undefined;
  /** Terminal runs that ended longer ago than this are removed; by default nothing is (SPEC S12.6). */
  readonly retentionMs?: number | undefined;
  /** Named limits, for every process of the store: the last one that was started has the last word on each. */
  readonly limits?: Readonly<Record<string, LimitDefinition>> | undefined;
  /**
   * Set where a broker tells workers of tasks: every entry into the queue writes a message, and this hears of commits that did, or
   * that made room for more by claiming.
   */
  readonly onMessages?: ((news: 'queued' | 'claimed') => void) | undefined;
}

/** What a run is started with. */
export interface StartRun {
  readonly workflow: Workflow;
  readonly inputs?: Readonly<Record<string, unknown>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly priority?: number;
  readonly workdir?: string | null;
  readonly cloned_from?: string | null;
  /** The trace of whoever starts it (SPEC S12.5). */
  readonly trace?: TraceContext | undefined;
}

/** How a run is retried. */
export interface RetryOptions {
  readonly key?: string | undefined;
  /** Another budget; what is not named stays as it is. */
  readonly budget?: BudgetChange | undefined;
}

/** Makes a repeated request harmless: same caller, operation and key give the first answer (SPEC S4.7). */
export interface Idempotency {
  readonly caller: string;
  readonly key?: string | undefined;
}

/** How a worker listens to a broker. */
export interface BrokerWork {
  readonly broker: Broker;
  /** Tasks at work at once, at most; what is sent ahead depends on it. */
  readonly concurrency: number;
  readonly onBrokerAway?: ((message: string) => void) | undefined;
}

/** Runs workflows on a store. */
export class Engine implements Service {
  readonly name = 'engine';
  readonly context: EngineContext;
  /** Workers that are not in this process. */
  readonly remote: RemoteWorkers;
  /** Runs ended. */
  readonly finished = new Signal();
  /** Events were committed, here or by another process. */
  readonly changed = new Signal();
  /** Values of the secrets that workflows name, so that logs and errors can be masked. */
  readonly secretValues: () => Iterable<string>;
  readonly #leaseMs: number;
  readonly #limits: Readonly<Record<string, LimitDefinition>>;
  #areLimitsSaved = false;
  #limitsLookAt = 0;
  readonly #loops: EngineLoops;
  readonly #onMessages: NonNullable<EngineOptions['onMessages']>;
  #changeMark = -1;

  constructor(options: EngineOptions) {
    const { store, blobs, clock, random, logger, handlers } = options;
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
    this.#limits = options.limits ?? {};
    this.#onMessages = options.onMessages ?? (() => {});
    const hasBroker = options.onMessages !== undefined;
    const used = new Map<string, string>();
    const secret = (name: string): string | undefined => {
      const value = options.secret(name);
      if (value !== undefined) used.set(name, value);
      return value;
    };
    this.secretValues = () => [...used.values(), ...(options.masked ?? [])];
    const afterCommit = (aftermath: Aftermath): void => this.#afterCommit(aftermath);
    // A secret may come from an output that another process has made: all that the workflow names are masked, used here or not.
    const plans = new Plans(handlers, ({ secrets = [] }) => {
      for (const name of secrets) secret(name);
    });
    const book = new LimitBook();
    this.context = {
      store,
      blobs,
      clock,
      random,
      logger,
      handlers,
      plans,
      scopes: new Scopes({ blobs, secret, env: options.env }),
      committer: new Committer({ store, clock, random, plans, book, afterCommit, hasBroker }),
      book,
      itemsMax: options.itemsMax ?? MAP_ITEMS_MAX,
      itemsChunk: options.itemsChunk ?? ITEMS_CHUNK,
      queued: new Signal(),
      queues: new Signal(),
      logged: new Signal(),
    };
    this.remote = new RemoteWorkers(this.context, { leaseMs: this.#leaseMs });
    const { retentionMs = null } = options;
    this.#loops = createLoops(this.context, {
      leaseMs: this.#leaseMs,
      retentionMs,
      watch: () => this.#watch(),
    });
  }

  /** Takes over what dead processes of this host have left, then runs the loops. */
  async start(): Promise<void> {
    await this.configureLimits();
    await freeDeadWorkers(this.context);
    await startAll(Object.values(this.#loops));
  }

  /** Only notices commits of other processes, which run the loops. */
  async startWatching(): Promise<void> {
    await this.configureLimits();
    await this.#loops.watcher.start();
  }

  /** Writes this process's limits down for all, and learns of the others. A limit that is not named here stays as it is. */
  async configureLimits(): Promise<void> {
    const { book, committer, store } = this.context;
    const wanted = Object.entries(this.#limits);
    // Once: a process that was started later has the last word.
    if (wanted.length > 0 && !this.#areLimitsSaved) {
      const rows = wanted.map(([name, definition]) => ({ name, definition: JSON.stringify(definition) }));
      await committer.commit(({ tx, now }) =>
        tx.limits.save(rows.map((row) => ({ ...row, updated_at: now }))),
      );
    }
    this.#areLimitsSaved = true;
    await book.refresh(store);
  }

  async stop(): Promise<void> {
    await stopAll(Object.values(this.#loops));
  }

  /** One turn of every loop, for tests: decisions, timers, expired leases. Returns how much was done. */
  async runOnce(): Promise<number> {
    const all = await Promise.all([
      this.#loops.followUps.runOnce(),
      this.#loops.timers.runOnce(),
      this.#loops.reaper.runOnce(),
      this.#loops.sweep.runOnce(),
      this.#loops.retention.runOnce(),
      this.#loops.limits.runOnce(),
    ]);
    return all.flatMap((counts) => Object.values(counts)).reduce((sum, count) => sum + count, 0);
  }

  /** A source of work for a worker in this process; the process is written down, so that its death can be noticed. */
  async source(
    options: Partial<SourceOptions> & Pick<SourceOptions, 'handlers'>,
  ): Promise<{ readonly id: string; readonly source: EngineSource }> {
    const { row, source } = await this.#newSource(options, { handlers: options.handlers });
    return { id: row.id, source };
  }

  /** The same for a worker that listens to a broker. */
  async brokerSource(
    options: Partial<SourceOptions> & Pick<SourceOptions, 'handlers'>,
    { broker, concurrency, onBrokerAway }: BrokerWork,
  ): Promise<{ readonly id: string; readonly source: BrokerSource }> {
    const { handlers } = options;
    const { row, source } = await this.#newSource(options, { handlers, broker_concurrency: concurrency });
    const { clock, logger, queues, committer } = this.context;
    const home = await committer.commit((work) => work.tx.outbox.home(newHome()));
    return {
      id: row.id,
      source: new BrokerSource({
        source,
        consumer: broker.consumer({ name: row.id, prefetch: concurrency }),
        topicsOf: (keys) => keys.map((key) => topicOf(home, key)),
        queues,
        hasHeld: () => this.context.book.hasHeld,
        clock,
        onAway: (message) => {
          logger.warn('broker.away', { broker: broker.description, message });
          onBrokerAway?.(message);
        },
        logger,
        touch: () => committer.commit((work) => work.tx.workers.save({ ...row, seen_at: work.now })),
      }),
    };
  }

  async #newSource(
    options: Partial<SourceOptions> & Pick<SourceOptions, 'handlers'>,
    info: object,
  ): Promise<{ readonly row: WorkerRow; readonly source: EngineSource }> {
    const id = options.worker ?? `local-${randomUUID()}`;
    const now = this.context.clock.now();
    const row: WorkerRow = {
      id,
      boot_id: randomUUID(),
      ...processIdentity(),
      status: 'ACTIVE',
      info: JSON.stringify(info),
      started_at: now,
      seen_at: now,
    };
    await this.context.committer.commit((work) => work.tx.workers.save(row));
    const source = new EngineSource(this.context, {
      lease_ms: this.#leaseMs,
      run_key: null,
      ...options,
      worker: id,
    });
    return { row, source };
  }

  /** The worker has ended in good order. */
  async forget(worker: string): Promise<void> {
    await this.context.committer.commit((work) => work.tx.workers.remove(worker));
  }

  async storeWorkflow(workflow: Workflow): Promise<number> {
    return this.context.committer.commit((work) => storeVersion(work.tx, workflow, work.now));
  }

  async startRun(start: StartRun, idempotency: Idempotency): Promise<RunRow> {
    await this.#requireLimits(start.workflow);
    const inputs = await checkInputs(start.workflow, start.inputs ?? {});
    const { workflow, labels = {}, priority = 0, workdir = null, cloned_from = null } = start;
    const request = { workflow, inputs, labels, priority, workdir, cloned_from };
    const { committer, plans } = this.context;
    const run =
      idempotency.key === undefined
        ? await committer.submit({ ...request, trace: start.trace })
        : // A repeat comes in a span of its own and is the same request all the same.
          await this.#once('runs.start', idempotency, request, async (work) => {
            const [first] = await submit(work, [{ ...request, trace: start.trace }], plans);
            return first as RunRow;
          });
    this.context.queues.notify();
    return run;
  }

  async startOpenRun(
    start: {
      inputs?: Record<string, unknown>;
      labels?: Record<string, string>;
      priority?: number;
      auto_close?: boolean;
      trace?: TraceContext | undefined;
    },
    idempotency: Idempotency,
  ): Promise<RunRow> {
    const { inputs = {}, labels = {}, priority = 0, auto_close = true } = start;
    const request = { inputs, labels, priority, auto_close, workdir: null };
    const { trace } = start;
    return this.#once('runs.start', idempotency, request, (work) => submitOpen(work, { ...request, trace }));
  }

  async enqueue(
    run_id: string,
    tasks: readonly { id: string; task: Task }[],
    idempotency: Idempotency,
  ): Promise<readonly TaskRow[]> {
    const rows = await this.#onRun(
      run_id,
      (work, run) => enqueueTasks(work, run, tasks, this.context.plans),
      {
        ...idempotency,
        operation: 'runs.enqueue',
        request: { run_id, tasks },
      },
    );
    this.context.queues.notify();
    return rows;
  }

  cancelRun(run_id: string, by: string, key?: string): Promise<void> {
    const once = { caller: by, key, operation: 'runs.cancel', request: { run_id } };
    return this.#onRun(run_id, (work, run) => cancelRun(work, run, by), once);
  }

  pauseRun(run_id: string, by: string, key?: string): Promise<void> {
    const once = { caller: by, key, operation: 'runs.pause', request: { run_id } };
    return this.#onRun(run_id, async (work, run) => pauseRun(work, run, by), once);
  }

  resumeRun(run_id: string, by: string, key?: string): Promise<void> {
    const once = { caller: by, key, operation: 'runs.resume', request: { run_id } };
    return this.#onRun(run_id, (work, run) => resumeRun(work, run, by), once);
  }

  closeRun(run_id: string, by: string, key?: string): Promise<void> {
    const once = { caller: by, key, operation: 'runs.close', request: { run_id } };
    return this.#onRun(run_id, (work, run) => closeRun(work, run, by), once);
  }

  retryRun(run_id: string, by: string, { key, budget }: RetryOptions = {}): Promise<number> {
    const request = budget === undefined ? { run_id } : { run_id, budget };
    const once = { caller: by, key, operation: 'runs.retry', request };
    return this.#onRun(run_id, (work, run) => retryRun(work, run, { by, budget }), once);
  }

  rerunFrom(run_id: string, task_id: string, by: string, key?: string): Promise<number> {
    const once = { caller: by, key, operation: 'runs.rerun', request: { run_id, task_id } };
    return this.#onRun(run_id, (work, run) => rerunFrom(work, run, task_id, by), once);
  }

  replayTask(
    task_run_id: string,
    options: { resetAttempts: boolean; by: string },
    key?: string,
  ): Promise<number> {
    const once = { caller: options.by, key, operation: 'tasks.replay', request: { task_run_id, options } };
    return this.#onTask(task_run_id, (work, task) => replayTask(work, task, options), once);
  }

  /** Takes a dead task off the list; it stays FAILED. */
  purgeDeadTask(task_run_id: string, by: string): Promise<void> {
    return this.#onTask(task_run_id, async (work, task) => {
      if (task.status !== 'FAILED')
        throw new RelayError('NOT_RETRYABLE', `task ${task.task_id} is ${task.status}, not FAILED`);
      task.reason = 'purged';
      work.note(task, { event: 'task.failed', reason: 'purged', data: { by } });
    });
  }

  cancelTask(task_run_id: string, idempotency?: Idempotency): Promise<void> {
    if (idempotency === undefined) return this.#onTask(task_run_id, cancelOneTask);
    const once = { ...idempotency, operation: 'tasks.cancel', request: { task_run_id } };
    return this.#onTask(task_run_id, cancelOneTask, once);
  }

  /** Records a decision after checking the answer against the form it was asked with. */
  async decide(task_run_id: string, decision: Decision, key?: string): Promise<void> {
    const once = {
      caller: decision.by,
      key,
      operation: 'tasks.decide',
      request: { task_run_id, decision },
    };
    const question = await this.context.store.read(async (tx) => {
      if (key !== undefined && (await isDone(tx, { ...once, key }))) return null;
      const task = await requireTask(tx, task_run_id);
      return { ...openQuestion(task, decision.question_id), id: task.question_id ?? undefined };
    });
    if (question === null) return;
    if (decision.kind === 'approve' && question.schema !== undefined) {
      const refusal = (await compileJsonSchema(question.schema))(decision.answer ?? {});
      if (refusal !== null)
        throw new RelayError('INVALID_ANSWER', `the answer does not fit the form: ${refusal}`);
    }
    await this.#onTask(
      task_run_id,
      async (work, task) => {
        const next = await verdictAfterGate(this.context, work, task);
        await answer(work, task, { ...decision, question_id: question.id }, next);
      },
      once,
    );
  }

  /** Appends an immutable note to a run, or to one of its tasks. */
  appendContext(
    run_id: string,
    snapshot: NewContext & { readonly by: string },
    key?: string,
  ): Promise<string> {
    const once = { caller: snapshot.by, key, operation: 'runs.context', request: { run_id, snapshot } };
    return this.#onRun(run_id, (work, run) => appendContext(work, run, snapshot), once);
  }

  /** Sends dead letters again, as far as their tasks still wait; returns how many. */
  replayDeadLetters(keys: readonly number[], by: string): Promise<number> {
    return this.context.committer.commit((work) => replayDeadLetters(work, keys, by));
  }

  /** Removes terminal runs that ended before a time; returns their ids. Blobs go a day after the last run that refers to them. */
  prune(filter: PruneFilter): Promise<readonly string[]> {
    return prune(this.context, filter);
  }

  /** Where there are limits they are looked at with every change of others, elsewhere now and then. */
  async #lookAtLimits(): Promise<void> {
    const { book, clock, store } = this.context;
    if (book.size === 0 && clock.monotonic() < this.#limitsLookAt) return;
    this.#limitsLookAt = clock.monotonic() + LIMITS_LOOK_MS;
    await book.refresh(store);
  }

  /** A limit that is ignored in silence is none. */
  async #requireLimits({ tasks }: Workflow): Promise<void> {
    const named = Object.entries(tasks).flatMap(([id, { limits = [] }]) =>
      limits.length === 0 ? [] : [{ id, limits }],
    );
    if (named.length === 0) return;
    // Also learns of what another process has configured a moment ago.
    await this.configureLimits();
    for (const { id, limits } of named) this.context.book.require(id, limits);
  }

  #onRun<T>(run_id: string, action: (work: Work, run: RunRow) => Promise<T>, once?: OnceOptions): Promise<T> {
    const act = async (work: Work): Promise<T> => {
      const found = await work.tx.runs.byId(run_id);
      if (found === null) throw new RelayError('NOT_FOUND', `there is no run ${run_id}`);
      const [run = found] = await work.runs([found.key]);
      return action(work, run);
    };
    if (once === undefined) return this.context.committer.commit(act);
    return this.#once(once.operation, once, once.request, act);
  }

  #onTask<T>(
    task_run_id: string,
    action: (work: Work, task: TaskRow) => Promise<T>,
    once?: OnceOptions,
  ): Promise<T> {
    const act = async (work: Work): Promise<T> => {
      const found = await requireTask(work.tx, task_run_id);
      const [task = found] = await work.adopt([found]);
      return action(work, task);
    };
    if (once === undefined) return this.context.committer.commit(act);
    return this.#once(once.operation, once, once.request, act);
  }

  #once<T>(
    operation: string,
    { caller, key }: Idempotency,
    request: unknown,
    action: (work: Work) => Promise<T>,
  ): Promise<T> {
    const { committer } = this.context;
    if (key === undefined) return committer.commit(action);
    return committer.commit((work) => doOnce(work, { operation, caller, key, request }, action));
  }

  #afterCommit(aftermath: Aftermath): void {
    if (aftermath.hasQueued || (aftermath.hasRoom && this.context.book.hasHeld)) this.context.queued.notify();
    if (aftermath.hasQueued || aftermath.hasClaimed)
      this.#onMessages(aftermath.hasQueued ? 'queued' : 'claimed');
    if (aftermath.hasUndecided || aftermath.hasFinishing || aftermath.hasCursors)
      this.#loops.followUps.wake();
    if (aftermath.hasTimers) this.#loops.timers.wake();
    if (aftermath.finishedRuns.length > 0) this.finished.notify();
    if (aftermath.hasEvents) this.changed.notify();
  }

  /** Notices commits of other processes on the same store. */
  async #watch(): Promise<number> {
    const mark = await this.context.store.changeMark();
    if (mark === this.#changeMark) return 0;
    this.#changeMark = mark;
    const { queues, queued, logged } = this.context;
    for (const signal of [queues, queued, logged, this.finished, this.changed]) signal.notify();
    this.#loops.followUps.wake();
    // Another process may have held tasks back, or let them go.
    await this.#lookAtLimits();
    return 1;
  }
}

interface OnceOptions extends Idempotency {
  readonly operation: string;
  readonly request: unknown;
}

async function requireTask(tx: Tx, task_run_id: string): Promise<TaskRow> {
  const task = await tx.tasks.byId(task_run_id);
  if (task === null) throw new RelayError('NOT_FOUND', `there is no task run ${task_run_id}`);
  return task;
}
