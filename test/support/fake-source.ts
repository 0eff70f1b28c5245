/** A WorkSource that is only the contract: a list of leases, a record of what came back, and knobs for a bad day. */
import type {
  Heartbeat,
  HeartbeatAnswer,
  Lease,
  LogChunk,
  Settlement,
  SettlementResult,
  WorkSource,
} from '../../src/worker/work-source.ts';

type NextRequest = Parameters<WorkSource['next']>[0];
type NextAnswer = Awaited<ReturnType<WorkSource['next']>>;

/** A lease with ordinary values; tests say what matters to them. */
export function makeLease(lease: Partial<Lease> & { readonly lease_id: string }): Lease {
  return {
    run_id: 'run-1',
    task_run_id: `task-run-${lease.lease_id}`,
    task_id: 'task',
    map_index: null,
    attempt: 1,
    handler: 'work',
    config: {},
    output: null,
    lease_ms: 30_000,
    timeout_ms: 3_600_000,
    checkpoint: undefined,
    answers: {},
    workdir: null,
    trace: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' },
    ...lease,
  };
}

/** Hands out its leases in order and takes every settlement. */
export class FakeSource implements WorkSource {
  /** The settlements of every call that carried some. */
  readonly batches: (readonly Settlement[])[] = [];
  readonly limits: number[] = [];
  readonly beats: (readonly Heartbeat[])[] = [];
  readonly chunks: LogChunk[] = [];
  /** What happened, in order: `log`, `extend`, `settle`. */
  readonly journal: string[] = [];
  readonly orders = new Map<string, HeartbeatAnswer['order']>();
  readonly refusals = new Map<string, string>();
  isAway = false;
  calls = 0;
  #leases: Lease[];
  #wake: (() => void) | null = null;

  constructor(leases: readonly Lease[] = []) {
    this.#leases = [...leases];
  }

  get settled(): readonly Settlement[] {
    return this.batches.flat();
  }

  push(...leases: readonly Lease[]): void {
    this.#leases.push(...leases);
    this.#wake?.();
  }

  async next({ limit, settlements, signal }: NextRequest): Promise<NextAnswer> {
    this.calls += 1;
    this.#refuseWhenAway();
    this.limits.push(limit);
    if (settlements.length > 0) {
      this.batches.push(settlements);
      this.journal.push('settle');
    } else if (this.#leases.length === 0) await this.#moreWork(signal);
    return { results: settlements.map((one) => this.#answer(one)), leases: this.#leases.splice(0, limit) };
  }

  async extend(heartbeats: readonly Heartbeat[]): Promise<readonly HeartbeatAnswer[]> {
    this.#refuseWhenAway();
    this.beats.push(heartbeats);
    this.journal.push('extend');
    return heartbeats.map(({ lease_id }) => ({
      lease_id,
      order: this.orders.get(lease_id) ?? 'continue',
      expires_in_ms: 30_000,
    }));
  }

  async log(chunks: readonly LogChunk[]): Promise<void> {
    this.#refuseWhenAway();
    this.chunks.push(...chunks);
    this.journal.push('log');
  }

  /** The logged text of a lease, of one stream or all. */
  textOf(leaseId: string, stream?: LogChunk['stream']): string {
    return this.chunks
      .filter((chunk) => chunk.lease_id === leaseId && (stream ?? chunk.stream) === chunk.stream)
      .map(({ text }) => text)
      .join('');
  }

  #answer({ lease_id }: Settlement): SettlementResult {
    const code = this.refusals.get(lease_id);
    if (code === undefined) return { lease_id, ok: true, status: 'SUCCESS', not_before: null };
    this.refusals.delete(lease_id);
    return { lease_id, ok: false, code, message: `refused with ${code}` };
  }

  #moreWork(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  #refuseWhenAway(): void {
    if (this.isAway) throw new TypeError('the store is away');
  }
}
