/** The engine as a source of work for a worker in the same process. */
import { setTimeout as delay } from 'node:timers/promises';
import type { QueueRow } from '../stores/store.ts';
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
import { prepareSettlement } from './prepare.ts';
import { extend } from './reap.ts';
import { renderLeases } from './rendering.ts';

/** What a worker can do and how it wants to be treated. */
export interface SourceOptions {
  readonly worker: string;
  readonly handlers: readonly string[];
  readonly lease_ms: number;
  /** Serves this run and no other. */
  readonly run_key: number | null;
}

/** How long an idle worker waits before it looks again without having been woken. */
const IDLE_POLL_MS = 1_000;

/** Hands out leases of this process's engine and takes their results. */
export class EngineSource implements WorkSource {
  readonly #context: EngineContext;
  readonly #options: SourceOptions;
  readonly #outputs = new Map<string, OutputSpec | null>();
  #queues: readonly QueueRow[] = [];
  #queuesMark = -1;

  constructor(context: EngineContext, options: SourceOptions) {
    this.#context = context;
    this.#options = options;
  }

  async next(request: {
    readonly limit: number;
    readonly settlements: readonly Settlement[];
    readonly signal: AbortSignal;
  }): Promise<{ results: readonly SettlementResult[]; leases: readonly Lease[] }> {
    const settlements = await Promise.all(request.settlements.map((settlement) => this.#prepare(settlement)));
    for (;;) {
      const mark = this.#context.queued.mark();
      const claim = request.limit > 0 ? await this.#claimRequest(request.limit) : null;
      const { results, leased } = await this.#context.committer.tick({ settlements, claim });
      for (const { lease_id } of request.settlements) this.#outputs.delete(lease_id);
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
        return place === null ? [] : [{ ...place, at: work.now, stream, text }];
      });
      await work.tx.logs.append(rows);
    });
  }

  async #prepare(settlement: Settlement): ReturnType<typeof prepareSettlement> {
    const outputOf = async (lease_id: string): Promise<OutputSpec | null> =>
      this.#outputs.get(lease_id) ?? null;
    return prepareSettlement(settlement, { blobs: this.#context.blobs, outputOf });
  }

  /** The queues that this worker can serve. They are few; a new one shows after a moment. */
  async #claimRequest(limit: number): Promise<ClaimRequest> {
    const { worker, handlers, lease_ms, run_key } = this.#options;
    if (this.#queuesMark !== this.#context.queues.mark()) {
      this.#queuesMark = this.#context.queues.mark();
      this.#queues = await this.#context.store.read((tx) => tx.queues.all());
    }
    const fitting = this.#queues.filter((queue) => handlers.includes(queue.handler) && queue.worker === '{}');
    const queues = fitting.map((queue) => queue.key);
    return { worker, limit, queues, lease_ms, start: true, claim_id: null, run_key };
  }

  /** A template that fails settles its attempt at once; the worker never sees it. */
  async #render(leased: Parameters<typeof renderLeases>[0]): Promise<readonly Lease[]> {
    const { leases, failed } = await renderLeases(leased, this.#context);
    for (const lease of leases) if (lease.output !== null) this.#outputs.set(lease.lease_id, lease.output);
    if (failed.length > 0) {
      const settlements = failed.map(({ lease_id, failure }) =>
        this.#prepare({ kind: 'fail', lease_id, failure }),
      );
      await this.#context.committer.tick({ settlements: await Promise.all(settlements), claim: null });
    }
    return leases;
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
