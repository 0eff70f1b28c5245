/**
 * A server as a source of work (SPEC S11.1). It keeps nothing that the worker does not keep: what could not be sent is thrown
 * back and tried again by the worker's own loop, a claim whose answer was lost is repeated under its id, and files and large
 * outputs go ahead of the settlement that names them.
 */
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type AnswerOf, CLAIM_MAX, type Http, ROUTES, type WireSettlement } from '#client';
import { RelayError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import type {
  Heartbeat,
  HeartbeatAnswer,
  Lease,
  LogChunk,
  NewArtifact,
  OutputSpec,
  SentArtifact,
  Settlement,
  SettlementResult,
  WorkSource,
} from './work-source.ts';

/** What a worker tells the server about itself. */
export interface WorkerCard {
  readonly worker_id?: string | undefined;
  readonly handlers: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly pool?: string | undefined;
  readonly resources?: Readonly<Record<string, number>>;
  readonly slurm_job_id?: string | undefined;
}

/** What the source needs. Calls of `http` must throw RelayErrors. */
export interface HttpSourceOptions {
  readonly http: Http;
  readonly card: WorkerCard;
  readonly logger: Logger;
  /** Called when the server wants the worker to finish and leave. */
  readonly onDrain: () => void;
  /** How long a claim waits for work. */
  readonly waitS?: number;
}

type Claimed = AnswerOf<typeof ROUTES.workers.claim>;

const WAIT_S = 20;
/** Larger outputs travel as blobs. */
const INLINE_CHARS_MAX = 128 * 1024;
/** A call is split when it would be larger than this. */
const CALL_BYTES_MAX = 4 * 1024 * 1024;
const LOG_CHUNKS_MAX = 500;
/** A slower connection than this is taken for a broken one. */
const BYTES_PER_MS_MIN = 100;
const MESSAGE_CHARS_MAX = 1_000;
/** What is wrong with the content of a call, and will be wrong again. */
const REFUSED: ReadonlySet<string> = new Set(['USAGE', 'PAYLOAD_TOO_LARGE']);

/** Claims from a server and settles with it. */
export class HttpSource implements WorkSource {
  readonly #options: HttpSourceOptions;
  readonly #bootId = randomUUID();
  #workerId: string | null = null;
  /** The claim that has not been answered. */
  #claimId: string | null = null;

  constructor(options: HttpSourceOptions) {
    this.#options = options;
  }

  get workerId(): string | null {
    return this.#workerId;
  }

  /** Makes the worker known to the server; again when the server has forgotten it. */
  async register(): Promise<string> {
    const { http, card } = this.#options;
    const body = {
      ...card,
      handlers: [...card.handlers],
      worker_id: this.#workerId ?? card.worker_id,
      boot_id: this.#bootId,
    };
    const { worker_id } = await http.call(ROUTES.workers.register, { body });
    this.#workerId = worker_id;
    return worker_id;
  }

  async next(request: {
    readonly limit: number;
    readonly settlements: readonly Settlement[];
    readonly signal: AbortSignal;
  }): Promise<{ results: readonly SettlementResult[]; leases: readonly Lease[] }> {
    const wire = await Promise.all(request.settlements.map((settlement) => this.#send(settlement)));
    const groups = inGroups(wire, CLAIM_MAX);
    const results: SettlementResult[] = [];
    for (const group of groups.slice(0, -1)) results.push(...(await this.#claim(group, 0)).results);
    const last = await this.#claim(groups.at(-1) ?? [], request.limit, request.signal);
    return { results: [...results, ...last.results], leases: last.leases.map(toLease) };
  }

  async extend(heartbeats: readonly Heartbeat[]): Promise<readonly HeartbeatAnswer[]> {
    const leases = heartbeats.map(({ message, ...beat }) => ({
      ...beat,
      ...(message === undefined ? {} : { message: message.slice(0, MESSAGE_CHARS_MAX) }),
    }));
    try {
      const answer = await this.#known((id) =>
        this.#options.http.call(ROUTES.workers.heartbeat, { params: { id }, body: { leases } }),
      );
      if (answer.drain) this.#options.onDrain();
      return answer.leases;
    } catch (error) {
      if (!isRefused(error)) throw error;
      return this.#extendApart(heartbeats, error);
    }
  }

  /** A checkpoint that the server does not take must not cost this lease, and still less the others. */
  async #extendApart(
    heartbeats: readonly Heartbeat[],
    error: RelayError,
  ): Promise<readonly HeartbeatAnswer[]> {
    const [only] = heartbeats;
    if (heartbeats.length === 1 && only !== undefined) {
      const { checkpoint, ...rest } = only;
      if (checkpoint === undefined) throw error;
      const { lease_id } = only;
      this.#options.logger.warn('worker.checkpoint_refused', { lease_id, code: error.code });
      return this.extend([rest]);
    }
    const half = Math.ceil(heartbeats.length / 2);
    const first = await this.extend(heartbeats.slice(0, half));
    return [...first, ...(await this.extend(heartbeats.slice(half)))];
  }

  async log(chunks: readonly LogChunk[]): Promise<void> {
    for (const group of inGroups(chunks, LOG_CHUNKS_MAX)) {
      if (group.length === 0) continue;
      const body = { chunks: [...group] };
      await this.#known((id) => this.#options.http.call(ROUTES.workers.logs, { params: { id }, body }));
    }
  }

  /** Leaves; the server releases what is still held. */
  async close(): Promise<void> {
    const id = this.#workerId;
    if (id === null) return;
    await this.#options.http.call(ROUTES.workers.deregister, { params: { id } });
  }

  async #claim(
    settlements: readonly WireSettlement[],
    limit: number,
    signal?: AbortSignal,
  ): Promise<Claimed> {
    const { http, waitS = WAIT_S, onDrain } = this.#options;
    const isPolling = settlements.length === 0 && limit > 0;
    const wait_s = isPolling && signal?.aborted !== true ? waitS : 0;
    if (limit > 0) this.#claimId ??= randomUUID();
    const body = {
      limit,
      wait_s,
      ...(limit > 0 ? { claim_id: this.#claimId ?? randomUUID() } : {}),
      settlements: [...settlements],
    };
    try {
      const answer = await this.#known((id) =>
        http.call(ROUTES.workers.claim, {
          params: { id },
          body,
          waitMs: wait_s * 1_000,
          ...(isPolling ? { signal } : {}),
        }),
      );
      if (limit > 0) this.#claimId = null;
      if (answer.drain) onDrain();
      return answer;
    } catch (error) {
      // The claim stays open: what the server has handed out meanwhile comes with its repetition.
      if (isPolling && signal?.aborted === true) return { results: [], leases: [], drain: false };
      if (settlements.length > 0 && isRefused(error)) return this.#settleApart(settlements, error);
      throw error;
    }
  }

  /** One settlement that the server cannot take must not hold up the others. */
  async #settleApart(settlements: readonly WireSettlement[], error: RelayError): Promise<Claimed> {
    const [only] = settlements;
    if (settlements.length === 1 && only !== undefined) {
      const { code, message } = error;
      return { results: [{ lease_id: only.lease_id, ok: false, code, message }], leases: [], drain: false };
    }
    const results: SettlementResult[] = [];
    for (const settlement of settlements) results.push(...(await this.#claim([settlement], 0)).results);
    return { results, leases: [], drain: false };
  }

  /** Calls in the worker's name; a server that does not know it is told again. */
  async #known<T>(call: (id: string) => Promise<T>): Promise<T> {
    const id = this.#workerId ?? (await this.register());
    try {
      return await call(id);
    } catch (error) {
      if (!(error instanceof RelayError) || error.code !== 'NOT_FOUND') throw error;
      this.#options.logger.warn('worker.registered_again', { worker: id });
      return call(await this.register());
    }
  }

  /** A settlement as it travels; files and large outputs are sent ahead. */
  async #send(settlement: Settlement): Promise<WireSettlement> {
    if (settlement.kind === 'fail') {
      const { retryAfterMs, ...failure } = settlement.failure;
      const { artifacts, ...rest } = settlement;
      const wait = retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs };
      const files = await this.#sendFiles(settlement.lease_id, artifacts).catch(withoutFiles);
      return { ...rest, failure: { ...failure, ...wait }, ...files };
    }
    if (settlement.kind !== 'complete') return settlement;
    const { artifacts, output, context, ...rest } = settlement;
    const text = JSON.stringify(output ?? null);
    const isLarge = text.length > INLINE_CHARS_MAX;
    try {
      const files = await this.#sendFiles(settlement.lease_id, artifacts);
      const content = isLarge
        ? { output_sha256: await this.#putBlob(settlement.lease_id, Buffer.from(text)) }
        : { output };
      return {
        ...rest,
        ...content,
        ...files,
        ...(context === undefined ? {} : { context: [...context] }),
      } as WireSettlement;
    } catch (error) {
      if (isRefused(error)) return refusedContent(settlement, error);
      if (!(error instanceof RelayError) || error.code !== 'STALE_LEASE') throw error;
      // The lease is over and so is the content; the settlement still says what was used, and may repeat an answer.
      return { kind: 'complete', lease_id: settlement.lease_id, output: null, ...usageOf(settlement) };
    }
  }

  async #sendFiles(
    lease_id: string,
    artifacts: readonly (NewArtifact | SentArtifact)[] | undefined,
  ): Promise<{ artifacts?: { name: string; content_type: string; sha256: string }[] }> {
    if (artifacts === undefined) return {};
    const sent = artifacts.map(async (artifact) => ({
      name: artifact.name,
      content_type: artifact.content_type,
      sha256: 'sha256' in artifact ? artifact.sha256 : await this.#putBlob(lease_id, artifact.bytes),
    }));
    return { artifacts: await Promise.all(sent) };
  }

  async #putBlob(lease_id: string, bytes: Uint8Array): Promise<string> {
    const key = createHash('sha256').update(bytes).digest('hex');
    const waitMs = bytes.length / BYTES_PER_MS_MIN;
    await this.#options.http.call(ROUTES.leases.putBlob, { params: { lease_id, key }, bytes, waitMs });
    return key;
  }
}

/** The lease is over, or the server does not take the files; the failure is still said. */
function withoutFiles(error: unknown): { artifacts?: never } {
  if (error instanceof RelayError && (error.code === 'STALE_LEASE' || isRefused(error))) return {};
  throw error;
}

function usageOf({ usage }: Settlement): Pick<Settlement, 'usage'> {
  return usage === undefined ? {} : { usage };
}

/** A folder of the server's machine is of use only where it exists. */
function toLease(lease: Claimed['leases'][number]): Lease {
  const { workdir, checkpoint, output } = lease;
  return {
    ...lease,
    output: output as OutputSpec | null,
    checkpoint: checkpoint ?? undefined,
    workdir: workdir !== null && existsSync(workdir) ? workdir : null,
  };
}

/** What is to be sent in calls of bounded size; at least one call, even with nothing. */
function inGroups<Item>(items: readonly Item[], countMax: number): readonly (readonly Item[])[] {
  let group: Item[] = [];
  const groups = [group];
  let bytes = 0;
  for (const item of items) {
    const size = Buffer.byteLength(JSON.stringify(item));
    if (group.length > 0 && (bytes + size > CALL_BYTES_MAX || group.length === countMax)) {
      group = [];
      groups.push(group);
      bytes = 0;
    }
    group.push(item);
    bytes += size;
  }
  return groups;
}

/** Content that the server will never take is a failure of the attempt; sending it again would hold up all others. */
function refusedContent(settlement: Settlement, { code, message }: RelayError): WireSettlement {
  const failure = { class: 'output', code, message } as const;
  return { kind: 'fail', lease_id: settlement.lease_id, failure, ...usageOf(settlement) };
}

function isRefused(error: unknown): error is RelayError {
  return error instanceof RelayError && REFUSED.has(error.code);
}
