/**
 * Workers that dial in (SPEC S11.1). What they are is in the store, so any process with this engine can serve any of them and
 * a restart forgets nobody; here is only what makes serving them cheap. Every write is fenced by its lease, as everywhere.
 */
import { randomUUID } from 'node:crypto';
import { RelayError } from '../base/errors.ts';
import type { WorkerRow } from '../stores/rows.ts';
import { cleanText } from '../worker/clean-text.ts';
import type {
  Heartbeat,
  HeartbeatAnswer,
  Lease,
  LogChunk,
  Settlement,
  SettlementResult,
} from '../worker/work-source.ts';
import type { EngineContext } from './engine-context.ts';
import { EngineSource } from './engine-source.ts';
import { parseLeaseId } from './lease-id.ts';
import { expire, extend } from './reap.ts';
import type { WorkerFit } from './worker-fit.ts';

/** What a worker says about itself. */
export interface Registration extends WorkerFit {
  readonly worker_id?: string | undefined;
  readonly boot_id: string;
  readonly handlers: readonly string[];
  readonly slurm_job_id?: string | undefined;
}

/** A claim from far away. */
export interface RemoteClaim {
  readonly limit: number;
  readonly settlements: readonly Settlement[];
  readonly claim_id?: string | undefined;
  readonly start?: boolean | undefined;
  /** How long to wait for work; not at all with settlements. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** What the store keeps about a worker in `info`. */
export interface WorkerInfo extends WorkerFit {
  readonly handlers: readonly string[];
  readonly is_remote?: boolean;
  readonly slurm_job_id?: string | undefined;
}

interface Known {
  readonly row: WorkerRow;
  readonly source: EngineSource;
  /** Ends the waiting of its claims. */
  readonly draining: AbortController;
  /** The claim that waits; a worker makes one call at a time, so a new one takes its place. */
  waiting: AbortController | null;
  seenAt: number;
}

/** Local workers are named so; nobody else may call themselves that. */
const LOCAL_PREFIX = 'local-';
/** How often a worker's last sign of life is written down. */
const TOUCH_MS = 10_000;
/** A worker that was not heard of for so long is taken off the list. */
const FORGET_MS = 7 * 86_400_000;
const KNOWN_MAX = 10_000;
const LOG_CHARS_MAX = 256 * 1024;

/** Serves remote workers. */
export class RemoteWorkers {
  readonly #context: EngineContext;
  readonly #leaseMs: number;
  readonly #known = new Map<string, Known>();
  /** For settlements that come by lease alone. */
  readonly #anyone: EngineSource;

  constructor(context: EngineContext, { leaseMs }: { readonly leaseMs: number }) {
    this.#context = context;
    this.#leaseMs = leaseMs;
    this.#anyone = new EngineSource(context, {
      worker: 'remote',
      handlers: [],
      lease_ms: leaseMs,
      run_key: null,
    });
  }

  /** Writes a worker down. A new boot frees what the old one held. */
  async register(
    registration: Registration,
  ): Promise<{ readonly worker_id: string; readonly lease_ms: number; readonly freed: number }> {
    const { worker_id: id = `worker-${randomUUID()}`, boot_id, ...info } = registration;
    if (id.startsWith(LOCAL_PREFIX))
      throw new RelayError('USAGE', `a worker may not be called \`${id}\``, {
        hint: `names that start with ${LOCAL_PREFIX} belong to the server's own workers`,
      });
    const { committer, random } = this.#context;
    const { row, freed } = await committer.commit(async (work) => {
      const all = await work.tx.workers.list();
      const before = all.find((worker) => worker.id === id);
      const isReborn = before !== undefined && before.boot_id !== boot_id;
      const held = isReborn ? await work.adopt(await work.tx.tasks.leasedBy(id)) : [];
      const freed = await expire(work, held, random);
      const row: WorkerRow = {
        id,
        boot_id,
        host: 'remote',
        pid: 0,
        process_start: null,
        status: 'ACTIVE',
        info: JSON.stringify({ ...info, is_remote: true }),
        started_at: isReborn || before === undefined ? work.now : before.started_at,
        seen_at: work.now,
      };
      await work.tx.workers.save(row);
      const isForgotten = (worker: WorkerRow): boolean =>
        worker.host === 'remote' && worker.seen_at < work.now - FORGET_MS;
      for (const old of all.filter(isForgotten)) if (old.id !== id) await work.tx.workers.remove(old.id);
      return { row, freed };
    });
    this.#remember(row);
    return { worker_id: id, lease_ms: this.#leaseMs, freed };
  }

  /** Records results and hands out work, in one step. */
  async claim(
    id: string,
    claim: RemoteClaim,
  ): Promise<{ results: readonly SettlementResult[]; leases: readonly Lease[]; drain: boolean }> {
    const worker = await this.#find(id);
    const isDraining = worker.draining.signal.aborted;
    worker.waiting?.abort();
    const waiting = new AbortController();
    worker.waiting = waiting;
    const isPatient = claim.waitMs > 0 && claim.settlements.length === 0 && !isDraining;
    const timeout = AbortSignal.timeout(claim.waitMs);
    const signal = isPatient
      ? AbortSignal.any([claim.signal, waiting.signal, worker.draining.signal, timeout])
      : AbortSignal.abort();
    const { results, leases } = await worker.source.next({
      limit: isDraining ? 0 : claim.limit,
      settlements: claim.settlements,
      signal,
      // Two workers may name their claims alike.
      claim_id: claim.claim_id === undefined ? null : `${id} ${claim.claim_id}`,
      start: claim.start ?? true,
    });
    this.#touch(worker);
    return { results, leases, drain: worker.draining.signal.aborted };
  }

  /** Signs of life of a worker and its leases. */
  async heartbeat(
    id: string,
    beats: readonly Heartbeat[],
  ): Promise<{ readonly leases: readonly HeartbeatAnswer[]; readonly drain: boolean }> {
    const worker = await this.#find(id);
    const leases = await this.beat(beats);
    this.#touch(worker);
    return { leases, drain: worker.draining.signal.aborted };
  }

  /** Signs of life of leases, whoever holds them. */
  beat(beats: readonly Heartbeat[]): Promise<readonly HeartbeatAnswer[]> {
    if (beats.length === 0) return Promise.resolve([]);
    return this.#context.committer.commit((work) => extend(work, beats));
  }

  /** Records one result. */
  async settle(settlement: Settlement): Promise<SettlementResult | undefined> {
    const signal = AbortSignal.abort();
    return (await this.#anyone.next({ limit: 0, settlements: [settlement], signal })).results[0];
  }

  /** Appends to the logs of live leases; what comes for others is dropped. Tells how many were taken. */
  async log(chunks: readonly LogChunk[]): Promise<number> {
    const { committer, logged } = this.#context;
    const count = await committer.commit(async (work) => {
      const places = chunks.map(({ lease_id }) => parseLeaseId(lease_id));
      const tasks = await work.tasks(places.flatMap((place) => place?.task_key ?? []));
      const live = new Set(tasks.map(({ lease_id }) => lease_id));
      const rows = chunks.flatMap(({ lease_id, stream, text }, index) => {
        const place = places[index] ?? null;
        if (place === null || !live.has(lease_id)) return [];
        return [{ ...place, at: work.now, stream, text: cleanText(text, LOG_CHARS_MAX) }];
      });
      if (rows.length > 0) await work.tx.logs.append(rows);
      return rows.length;
    });
    if (count > 0) logged.notify();
    return count;
  }

  /** Whether a lease is held by somebody now. */
  async isLive(lease_id: string): Promise<boolean> {
    const place = parseLeaseId(lease_id);
    if (place === null) return false;
    const [task] = await this.#context.store.read((tx) => tx.tasks.byKeys([place.task_key]));
    return task?.lease_id === lease_id;
  }

  /** Asks a worker to finish and leave; it hears of it with its next call. */
  async drain(id: string): Promise<void> {
    const worker = await this.#find(id);
    await this.#context.committer.commit((work) =>
      work.tx.workers.save({ ...worker.row, status: 'DRAINING', seen_at: worker.seenAt }),
    );
    worker.draining.abort();
  }

  /** The worker leaves; what it still holds goes back to the queue and costs nothing. */
  async deregister(id: string): Promise<number> {
    const worker = await this.#find(id);
    const held = await this.#context.store.read((tx) => tx.tasks.leasedBy(id));
    const settlements = held.map(({ lease_id }) => ({ kind: 'release', lease_id: lease_id ?? '' }) as const);
    if (settlements.length > 0)
      await worker.source.next({ limit: 0, settlements, signal: AbortSignal.abort() });
    await this.#context.committer.commit((work) => work.tx.workers.remove(id));
    worker.draining.abort();
    this.#known.delete(id);
    return settlements.length;
  }

  async #find(id: string): Promise<Known> {
    const known = this.#known.get(id);
    const isFresh = known !== undefined && this.#context.clock.now() - known.seenAt < TOUCH_MS;
    if (isFresh) return known;
    // Another process may have registered, drained or removed it meanwhile.
    const rows = await this.#context.store.read((tx) => tx.workers.list());
    const row = rows.find((worker) => worker.id === id);
    if (row === undefined || row.host !== 'remote') {
      this.#known.delete(id);
      throw new RelayError('NOT_FOUND', `there is no worker ${id}`, { hint: 'register first' });
    }
    if (known !== undefined && known.row.boot_id === row.boot_id && known.row.info === row.info) {
      if (row.status === 'DRAINING') known.draining.abort();
      return known;
    }
    return this.#remember(row);
  }

  #remember(row: WorkerRow): Known {
    const { handlers, pool, labels, resources } = JSON.parse(row.info) as WorkerInfo;
    const source = new EngineSource(this.#context, {
      worker: row.id,
      handlers,
      lease_ms: this.#leaseMs,
      run_key: null,
      fit: { pool, labels, resources },
    });
    const known: Known = {
      row,
      source,
      draining: new AbortController(),
      waiting: null,
      seenAt: row.seen_at,
    };
    if (row.status === 'DRAINING') known.draining.abort();
    this.#known.set(row.id, known);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= KNOWN_MAX) break;
      this.#known.delete(oldest);
    }
    return known;
  }

  /** Writes the sign of life down now and then; missing one harms nobody. */
  #touch(worker: Known): void {
    const { clock, committer, logger } = this.#context;
    const now = clock.now();
    if (now - worker.seenAt < TOUCH_MS) return;
    worker.seenAt = now;
    const status = worker.draining.signal.aborted ? 'DRAINING' : 'ACTIVE';
    committer
      .commit((work) => work.tx.workers.save({ ...worker.row, status, seen_at: now }))
      .catch((error: unknown) => logger.warn('worker.not_touched', { worker: worker.row.id, error }));
  }
}
