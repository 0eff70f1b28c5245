/** The engine as a source of work for a worker in the same process. */
import { setTimeout as delay } from 'node:timers/promises';
import type { QueueRow } from '../stores/store.ts';
import { cleanText } from '../worker/clean-text.ts';
import type {
  Heartbeat,
  HeartbeatAnswer,
  Lease,
  LogChunk,
  OutputSpec,
  Settlement,
  SettlementResult,
  WorkSource,
} from '../worker/work-source.ts';
import type { ClaimRequest } from './claim.ts';
import type { EngineContext } from './engine-context.ts';
import { parseLeaseId } from './lease-id.ts';
import { type NamedTask, readNewTasks, type WrittenTasks } from './new-tasks.ts';
import { prepareAtOnce, prepareSettlement } from './prepare.ts';
import { extend } from './reap.ts';
import { renderLeases } from './rendering.ts';
import type { PreparedSettlement } from './settle.ts';
import type { TaskMessage } from './task-message.ts';
import { fitsWorker, type WorkerFit } from './worker-fit.ts';

/** What a worker can do and how it wants to be treated. */
export interface SourceOptions {
  readonly worker: string;
  readonly handlers: readonly string[];
  readonly lease_ms: number;
  /** Serves this run and no other. */
  readonly run_key: number | null;
  /** What tasks may ask of a worker beyond its handlers. */
  readonly fit?: WorkerFit;
}

/** What a worker asks for: results to record, leases to take. A worker far away names its claim, so that it can repeat it. */
export interface NextRequest {
  readonly limit: number;
  readonly settlements: readonly Settlement[];
  readonly signal: AbortSignal;
  readonly claim_id?: string | null;
  /** RUNNING at once (default), or LEASED until the worker says so. */
  readonly start?: boolean;
  /** What a broker has delivered: these tasks and no others. */
  readonly messages?: readonly TaskMessage[];
}

/** How long an idle worker waits before it looks again without having been woken. */
const IDLE_POLL_MS = 1_000;
const RUN_TASKS_MAX = 100_000;
/** Leases whose output rules are remembered; beyond these they are looked up. */
const OUTPUTS_MAX = 10_000;
/** The longest piece of a log that is stored as one. */
const LOG_CHARS_MAX = 256 * 1024;

/** Hands out leases of this process's engine and takes their results. */
export class EngineSource implements WorkSource {
  readonly #context: EngineContext;
  readonly #options: SourceOptions;
  readonly #outputs = new Map<string, OutputSpec | null>();
  #queues: readonly QueueRow[] = [];
  #queuesMark = -1;
  /** The moment of `queued` at which the queue had less than was asked for, and until when that is believed. */
  #dry = { mark: -1, until: 0 };

  constructor(context: EngineContext, options: SourceOptions) {
    this.#context = context;
    this.#options = options;
  }

  async next(
    request: NextRequest,
  ): Promise<{ results: readonly SettlementResult[]; leases: readonly Lease[] }> {
    const settlements = await this.#prepareAll(request.settlements);
    for (let hasWaited = false; ; hasWaited = true) {
      const mark = this.#context.queued.mark();
      const claim = request.limit > 0 ? await this.#claimRequest(request, mark) : null;
      // Whoever named a claim and has stopped waiting repeats it elsewhere; leases taken here now would be nobody's.
      const isNamed = claim !== null && claim.claim_id !== null;
      if (hasWaited && isNamed && request.signal.aborted) return { results: [], leases: [] };
      const { results, leased } = await this.#context.committer.tick({ settlements, claim });
      if (claim?.probes === true && leased.length < claim.limit) this.#noteDry(mark);
      for (const { lease_id } of request.settlements) this.#outputs.delete(lease_id);
      // Tasks that a completion brought along may be of a kind that was not there before.
      if (request.settlements.some((each) => each.kind === 'complete' && each.enqueue !== undefined))
        this.#context.queues.notify();
      const leases = leased.length === 0 ? [] : await this.#render(leased);
      if (leases.length > 0 || settlements.length > 0 || request.signal.aborted) return { results, leases };
      await this.#untilQueued(mark, request.signal);
    }
  }

  async extend(heartbeats: readonly Heartbeat[]): Promise<readonly HeartbeatAnswer[]> {
    return this.#context.committer.commit((work) => extend(work, heartbeats));
  }

  async log(chunks: readonly LogChunk[]): Promise<void> {
    await this.#context.committer.commit(async (work) => {
      const rows = chunks.flatMap(({ lease_id, stream, text }) => {
        const place = parseLeaseId(lease_id);
        return place === null
          ? []
          : [{ ...place, at: work.now, stream, text: cleanText(text, LOG_CHARS_MAX) }];
      });
      await work.tx.logs.append(rows);
    });
    this.#context.logged.notify();
  }

  async #prepareAll(settlements: readonly Settlement[]): Promise<readonly PreparedSettlement[]> {
    const prepared = settlements.map((each) => prepareAtOnce(each, this.#outputs.get(each.lease_id)));
    if (prepared.every((each) => each !== null)) return prepared;
    return Promise.all(
      prepared.map((each, index) => each ?? this.#prepare(settlements[index] as Settlement)),
    );
  }

  async #prepare(settlement: Settlement): ReturnType<typeof prepareSettlement> {
    const outputOf = async (lease_id: string): Promise<OutputSpec | null> => {
      const known = this.#outputs.get(lease_id);
      return known === undefined ? this.#findOutput(lease_id) : known;
    };
    const readTasks = (lease_id: string, tasks: WrittenTasks): Promise<readonly NamedTask[]> =>
      this.#readTasks(lease_id, tasks);
    return prepareSettlement(settlement, { blobs: this.#context.blobs, outputOf, readTasks });
  }

  /** What a lease of an earlier process of this engine must deliver. */
  async #findOutput(lease_id: string): Promise<OutputSpec | null> {
    const { store, plans } = this.#context;
    const place = parseLeaseId(lease_id);
    if (place === null) return null;
    return store.read(async (tx) => {
      const [task] = await tx.tasks.byKeys([place.task_key]);
      const [run] = task === undefined ? [] : await tx.runs.byKeys([task.run_key]);
      if (task === undefined || run === undefined || task.lease_id !== lease_id) return null;
      return ((await plans.task(task, run, tx)).task.output as OutputSpec | undefined) ?? null;
    });
  }

  /** New tasks may name any task of the run. */
  async #readTasks(lease_id: string, tasks: WrittenTasks): Promise<readonly NamedTask[]> {
    const { store, handlers } = this.#context;
    const known = await store.read(async (tx) => {
      const [task] = await tx.tasks.byKeys([parseLeaseId(lease_id)?.task_key ?? 0]);
      return task === undefined ? [] : tx.tasks.nodesOf(task.run_key, { after: 0, limit: RUN_TASKS_MAX });
    });
    return readNewTasks(tasks, { known: known.map((task) => task.task_id), handlers });
  }

  async #claimRequest(request: NextRequest, mark: number): Promise<ClaimRequest> {
    const { limit, claim_id = null, start = true, messages } = request;
    const { worker, lease_ms, run_key } = this.#options;
    const queues = await this.queues();
    const probes = messages === undefined && (request.settlements.length === 0 || !this.#isDry(mark));
    return { worker, limit, queues, lease_ms, start, claim_id, run_key, probes, messages };
  }

  /** The queues that this worker can serve. They are few; a new one shows after a moment. */
  async queues(): Promise<readonly number[]> {
    const { handlers, fit = {} } = this.#options;
    if (this.#queuesMark !== this.#context.queues.mark()) {
      this.#queuesMark = this.#context.queues.mark();
      this.#dry.mark = -1;
      this.#queues = await this.#context.store.read((tx) => tx.queues.all());
    }
    const fitting = this.#queues.filter(
      (queue) => handlers.includes(queue.handler) && fitsWorker(queue.worker, fit),
    );
    return fitting.map((queue) => queue.key);
  }

  /**
   * A queue that was empty, with nothing put into it since, is not looked into by a worker that is busy: in Postgres the look costs a
   * round trip and walks over every row that is gone and cannot be removed yet. What others put there is noticed by the watcher.
   */
  #isDry(mark: number): boolean {
    return this.#dry.mark === mark && this.#context.clock.monotonic() < this.#dry.until;
  }

  #noteDry(mark: number): void {
    this.#dry = { mark, until: this.#context.clock.monotonic() + IDLE_POLL_MS };
  }

  /** A template that fails settles its attempt at once; the worker never sees it. */
  async #render(leased: Parameters<typeof renderLeases>[0]): Promise<readonly Lease[]> {
    const { leases, failed } = await this.#renderOrRelease(leased);
    for (const lease of leases) this.#outputs.set(lease.lease_id, lease.output);
    for (const oldest of this.#outputs.keys()) {
      if (this.#outputs.size <= OUTPUTS_MAX) break;
      this.#outputs.delete(oldest);
    }
    if (failed.length > 0) {
      const settlements = failed.map(({ lease_id, failure }) =>
        this.#prepare({ kind: 'fail', lease_id, failure }),
      );
      await this.#context.committer.tick({ settlements: await Promise.all(settlements), claim: null });
    }
    return leases;
  }

  /** A store that goes away between the claim and the rendering must not cost the tasks a loss (TRANSITIONS 23). */
  async #renderOrRelease(leased: Parameters<typeof renderLeases>[0]): ReturnType<typeof renderLeases> {
    try {
      return await renderLeases(leased, this.#context);
    } catch (error) {
      const releases = leased.map(({ task }) =>
        this.#prepare({ kind: 'release', lease_id: task.lease_id ?? '' }),
      );
      await this.#context.committer
        .tick({ settlements: await Promise.all(releases), claim: null })
        .catch((cause: unknown) => this.#context.logger.warn('leases.not_released', { cause }));
      throw error;
    }
  }

  async #untilQueued(mark: number, signal: AbortSignal): Promise<void> {
    const controller = new AbortController();
    const either = AbortSignal.any([signal, controller.signal]);
    await Promise.race([
      this.#context.queued.after(mark, either),
      delay(IDLE_POLL_MS, undefined, { signal: either, ref: true }).catch(() => {}),
    ]);
    controller.abort();
  }
}
