/**
 * The engine: every change of the product goes through here. It owns the group commit, follows up on what a commit leaves over,
 * and wakes whoever waits. It knows contracts only; which store, handlers and worker there are is the composition root's matter.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { RelayError } from '../base/errors.ts';
import { compileJsonSchema } from '../base/json-schema.ts';
import type { Logger } from '../base/logger.ts';
import { type Service, startAll, stopAll } from '../base/service.ts';
import type { HandlerCatalog } from '../definition/handler-spec.ts';
import type { Task, Workflow } from '../definition/workflow.ts';
import type { Random } from '../domain/retry.ts';
import type { BlobStore } from '../stores/blob-store.ts';
import type { RunRow, TaskRow } from '../stores/rows.ts';
import type { Store, Tx } from '../stores/store.ts';
import { answer, type Decision, openQuestion } from './answer.ts';
import { Committer } from './committer.ts';
import type { EngineContext } from './engine-context.ts';
import { EngineSource, type SourceOptions } from './engine-source.ts';
import { followUp } from './follow-ups.ts';
import { checkInputs } from './inputs.ts';
import { Loop } from './loop.ts';
import { cancelOneTask, cancelRun, closeRun, pauseRun, resumeRun } from './operate.ts';
import { Plans } from './plans.ts';
import { freeDeadWorkers, processIdentity } from './presence.ts';
import { Reaper } from './reaper.ts';
import { replayTask, rerunFrom, retryRun } from './replay.ts';
import { Scopes } from './scope.ts';
import { Signal } from './signal.ts';
import { enqueueTasks, storeVersion, submit, submitOpen } from './submit.ts';
import { runTimers } from './timers.ts';
import { verdictAfterGate } from './verdict-after-gate.ts';
import type { Aftermath, Work } from './work.ts';

/** Lease and reaper defaults (SPEC S14.6). */
export const LEASE_MS = 30_000;
const REAPER_MS = 5_000;
const TIMER_REST_MAX_MS = 1_000;
const WATCH_MS = 100;
const KEY_LIFE_MS = 7 * 86_400_000;

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
  readonly leaseMs?: number;
}

/** What a run is started with. */
export interface StartRun {
  readonly workflow: Workflow;
  readonly inputs?: Readonly<Record<string, unknown>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly priority?: number;
  readonly workdir?: string | null;
  readonly cloned_from?: string | null;
}

/** Makes a repeated request harmless: same caller, operation and key give the first answer (SPEC S4.7). */
export interface Idempotency {
  readonly caller: string;
  readonly key?: string | undefined;
}

/** Runs workflows on a store. */
export class Engine implements Service {
  readonly name = 'engine';
  readonly context: EngineContext;
  /** Runs ended. */
  readonly finished = new Signal();
  /** Events were committed, here or by another process. */
  readonly changed = new Signal();
  /** Values of the secrets that templates have asked for, so that logs and errors can be masked. */
  readonly secretValues: () => Iterable<string>;
  readonly #leaseMs: number;
  readonly #followUps: Loop;
  readonly #timers: Loop;
  readonly #reaper: Loop;
  readonly #watcher: Loop;
  #changeMark = -1;

  constructor(options: EngineOptions) {
    const { store, blobs, clock, random, logger, handlers } = options;
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
    const used = new Map<string, string>();
    const secret = (name: string): string | undefined => {
      const value = options.secret(name);
      if (value !== undefined) used.set(name, value);
      return value;
    };
    this.secretValues = () => used.values();
    const afterCommit = (aftermath: Aftermath): void => this.#afterCommit(aftermath);
    const plans = new Plans(handlers);
    this.context = {
      store,
      blobs,
      clock,
      random,
      logger,
      handlers,
      plans,
      scopes: new Scopes({ blobs, secret, env: options.env }),
      committer: new Committer({ store, clock, random, plans, afterCommit }),
      queued: new Signal(),
      queues: new Signal(),
    };
    const reaper = new Reaper(this.context, { intervalMs: REAPER_MS, leaseMs: this.#leaseMs });
    const loop = (name: string, turn: ConstructorParameters<typeof Loop>[0]['turn']): Loop =>
      new Loop({ name, logger, turn });
    this.#followUps = loop('follow_ups', async () => {
      const counts = await followUp(this.context);
      const total = counts.decided + counts.finished + counts.chunks;
      return { counts, restMs: total > 0 ? 0 : TIMER_REST_MAX_MS };
    });
    this.#timers = loop('timers', async () => {
      const { fired, next } = await runTimers(this.context);
      const untilNext = next === null ? TIMER_REST_MAX_MS : next - clock.now();
      return { counts: { fired }, restMs: Math.min(Math.max(0, untilNext), TIMER_REST_MAX_MS) };
    });
    this.#reaper = loop('reaper', async () => ({
      counts: { expired: await reaper.runOnce() },
      restMs: REAPER_MS,
    }));
    this.#watcher = loop('watcher', async () => ({
      counts: { changes: await this.#watch() },
      restMs: WATCH_MS,
    }));
  }

  /** Takes over what dead processes of this host have left, then runs the loops. */
  async start(): Promise<void> {
    await freeDeadWorkers(this.context);
    await startAll([this.#followUps, this.#timers, this.#reaper, this.#watcher]);
  }

  async stop(): Promise<void> {
    await stopAll([this.#followUps, this.#timers, this.#reaper, this.#watcher]);
  }

  /** One turn of every loop, for tests: decisions, timers, expired leases. Returns how much was done. */
  async runOnce(): Promise<number> {
    const all = await Promise.all([
      this.#followUps.runOnce(),
      this.#timers.runOnce(),
      this.#reaper.runOnce(),
    ]);
    return all.flatMap((counts) => Object.values(counts)).reduce((sum, count) => sum + count, 0);
  }

  /** A source of work for a worker in this process; the process is written down, so that its death can be noticed. */
  async source(
    options: Partial<SourceOptions> & Pick<SourceOptions, 'handlers'>,
  ): Promise<{ readonly id: string; readonly source: EngineSource }> {
    const id = options.worker ?? `local-${randomUUID()}`;
    const now = this.context.clock.now();
    const row = {
      id,
      boot_id: randomUUID(),
      ...processIdentity(),
      status: 'ACTIVE',
      started_at: now,
      seen_at: now,
    } as const;
    await this.context.committer.commit((work) =>
      work.tx.workers.save({ ...row, info: JSON.stringify({ handlers: options.handlers }) }),
    );
    const source = new EngineSource(this.context, {
      lease_ms: this.#leaseMs,
      run_key: null,
      ...options,
      worker: id,
    });
    return { id, source };
  }

  /** The worker has ended in good order. */
  async forget(worker: string): Promise<void> {
    await this.context.committer.commit((work) => work.tx.workers.remove(worker));
  }

  async storeWorkflow(workflow: Workflow): Promise<number> {
    return this.context.committer.commit((work) => storeVersion(work.tx, workflow, work.now));
  }

  async startRun(start: StartRun, idempotency: Idempotency): Promise<RunRow> {
    const inputs = await checkInputs(start.workflow, start.inputs ?? {});
    const { workflow, labels = {}, priority = 0, workdir = null, cloned_from = null } = start;
    const request = { workflow, inputs, labels, priority, workdir, cloned_from };
    const { committer, plans } = this.context;
    const run =
      idempotency.key === undefined
        ? await committer.submit(request)
        : await this.#once('runs.start', idempotency, request, async (work) => {
            const [first] = await submit(work, [request], plans);
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
    },
    idempotency: Idempotency,
  ): Promise<RunRow> {
    const { inputs = {}, labels = {}, priority = 0, auto_close = true } = start;
    const request = { inputs, labels, priority, auto_close, workdir: null };
    return this.#once('runs.start', idempotency, request, (work) => submitOpen(work, request));
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

  cancelRun(run_id: string, by: string): Promise<void> {
    return this.#onRun(run_id, (work, run) => cancelRun(work, run, by));
  }

  pauseRun(run_id: string, by: string): Promise<void> {
    return this.#onRun(run_id, async (work, run) => pauseRun(work, run, by));
  }

  resumeRun(run_id: string, by: string): Promise<void> {
    return this.#onRun(run_id, (work, run) => resumeRun(work, run, by));
  }

  closeRun(run_id: string, by: string): Promise<void> {
    return this.#onRun(run_id, (work, run) => closeRun(work, run, by));
  }

  retryRun(run_id: string, by: string): Promise<number> {
    return this.#onRun(run_id, (work, run) => retryRun(work, run, by));
  }

  rerunFrom(run_id: string, task_id: string, by: string): Promise<number> {
    return this.#onRun(run_id, (work, run) => rerunFrom(work, run, task_id, by));
  }

  replayTask(task_run_id: string, options: { resetAttempts: boolean; by: string }): Promise<number> {
    return this.#onTask(task_run_id, (work, task) => replayTask(work, task, options));
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

  cancelTask(task_run_id: string): Promise<void> {
    return this.#onTask(task_run_id, cancelOneTask);
  }

  /** Records a decision after checking the answer against the form it was asked with. */
  async decide(task_run_id: string, decision: Decision): Promise<void> {
    const question = await this.context.store.read(async (tx) => {
      const task = await requireTask(tx, task_run_id);
      return { ...openQuestion(task, decision.question_id), id: task.question_id ?? undefined };
    });
    if (decision.kind === 'approve' && question.schema !== undefined) {
      const refusal = (await compileJsonSchema(question.schema))(decision.answer ?? {});
      if (refusal !== null)
        throw new RelayError('INVALID_ANSWER', `the answer does not fit the form: ${refusal}`);
    }
    await this.#onTask(task_run_id, async (work, task) => {
      const next = await verdictAfterGate(this.context, work, task);
      await answer(work, task, { ...decision, question_id: question.id }, next);
    });
  }

  /** Appends an immutable note to a run, or to one of its tasks. */
  appendContext(
    run_id: string,
    snapshot: { data: unknown; label?: string; parent_id?: string; task_run_id?: string; by: string },
  ): Promise<string> {
    return this.#onRun(run_id, async (work, run) => {
      const task =
        snapshot.task_run_id === undefined ? null : await requireTask(work.tx, snapshot.task_run_id);
      const parents = snapshot.parent_id === undefined ? [] : await work.tx.contexts.ofRun(run.key);
      if (snapshot.parent_id !== undefined && !parents.some((row) => row.id === snapshot.parent_id)) {
        throw new RelayError('NOT_FOUND', `run ${run.id} has no context snapshot ${snapshot.parent_id}`);
      }
      const id = randomUUID();
      await work.tx.contexts.insert({
        id,
        run_key: run.key,
        task_key: task?.key ?? null,
        parent_id: snapshot.parent_id ?? null,
        label: snapshot.label ?? null,
        data: JSON.stringify(snapshot.data),
        created_by: snapshot.by,
        created_at: work.now,
      });
      work.runEvent(run, 'context_snapshot.appended', { id, parent_id: snapshot.parent_id ?? null });
      return id;
    });
  }

  /** Removes terminal runs that ended before a time; returns their ids. Blobs that nothing refers to go with them. */
  async prune(filter: {
    statuses: readonly string[];
    before: number;
    limit: number;
    dryRun: boolean;
  }): Promise<readonly string[]> {
    const { store, committer, blobs } = this.context;
    if (filter.dryRun) return store.read(async (tx) => (await tx.runs.prunable(filter)).map((run) => run.id));
    const { ids, orphans } = await committer.commit(async (work) => {
      const runs = await work.tx.runs.prunable(filter);
      const refs = await work.tx.runs.remove(runs.map((run) => run.key));
      const unused = [];
      for (const ref of refs) if (!(await work.tx.artifacts.isBlobUsed(ref))) unused.push(ref);
      await work.tx.idempotency.expire(work.now - KEY_LIFE_MS);
      return { ids: runs.map((run) => run.id), orphans: unused };
    });
    for (const ref of orphans) await blobs.remove(ref);
    return ids;
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

  #onTask<T>(task_run_id: string, action: (work: Work, task: TaskRow) => Promise<T>): Promise<T> {
    return this.context.committer.commit(async (work) => {
      const found = await requireTask(work.tx, task_run_id);
      const [task = found] = await work.adopt([found]);
      return action(work, task);
    });
  }

  /** A refused request burns no key: the record is written in the transaction of the change. */
  #once<T>(
    operation: string,
    { caller, key }: Idempotency,
    request: unknown,
    action: (work: Work) => Promise<T>,
  ): Promise<T> {
    const { committer } = this.context;
    if (key === undefined) return committer.commit(action);
    const scope = `${caller} ${operation}`;
    const digest = createHash('sha256').update(JSON.stringify(request)).digest('hex');
    return committer.commit(async (work) => {
      const known = await work.tx.idempotency.find(scope, key);
      if (known !== null) {
        if (known.digest !== digest)
          throw new RelayError('IDEMPOTENCY_CONFLICT', `the key ${key} was used with another request`);
        return JSON.parse(known.answer) as T;
      }
      const result = await action(work);
      const run_key = operation === 'runs.start' ? (result as RunRow).key : null;
      await work.tx.idempotency.record({
        scope,
        idempotency_key: key,
        digest,
        answer: JSON.stringify(result),
        run_key,
        created_at: work.now,
      });
      return result;
    });
  }

  #afterCommit(aftermath: Aftermath): void {
    if (aftermath.hasQueued) this.context.queued.notify();
    if (aftermath.hasUndecided || aftermath.hasFinishing || aftermath.hasCursors) this.#followUps.wake();
    if (aftermath.hasTimers) this.#timers.wake();
    if (aftermath.finishedRuns.length > 0) this.finished.notify();
    if (aftermath.hasEvents) this.changed.notify();
  }

  /** Notices commits of other processes on the same store. */
  async #watch(): Promise<number> {
    const mark = await this.context.store.changeMark();
    if (mark === this.#changeMark) return 0;
    this.#changeMark = mark;
    for (const signal of [this.context.queues, this.context.queued, this.finished, this.changed])
      signal.notify();
    this.#followUps.wake();
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
