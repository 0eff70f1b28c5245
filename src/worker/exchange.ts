/**
 * The calls that hand over settlements and take leases, one at a time. A settlement stays here, in order, until the source has
 * answered for it; a source that is away is asked again with growing patience, one that has nothing is not asked in circles.
 */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Lease, Settlement, SettlementResult, WorkSource } from './work-source.ts';

const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5_000;
const IDLE_MS_MAX = 1_000;
/** An empty answer faster than this did not wait for work. */
const QUICK_ANSWER_MS = 5;
/** Refusals that are final: another wrote first, and that is as it should be. */
const FENCED: ReadonlySet<string> = new Set(['STALE_LEASE', 'IDEMPOTENCY_CONFLICT']);

/** What an exchange needs. */
export interface ExchangeOptions {
  readonly source: Pick<WorkSource, 'next'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called before settlements are sent, with what must arrive ahead of them. Must not reject. */
  readonly beforeSend: (settlements: readonly Settlement[]) => Promise<void>;
  /** Called for every lease whose settlement the source has answered. */
  readonly onSettled: (leaseId: string) => void;
}

/** Settles and claims. */
export class Exchange {
  readonly #options: ExchangeOptions;
  #unsent: Settlement[] = [];
  /** The call under way, and whether it only waits for work. */
  #call: AbortController | null = null;
  #isPolling = false;
  #failures = 0;
  #retryAt = 0;
  #quickAnswers = 0;
  #pollAt = 0;

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  /** Settlements that the source has not answered for. */
  get unsent(): number {
    return this.#unsent.length;
  }

  /** The moment at which time alone makes a call possible. */
  get dueAt(): number {
    return Math.max(this.#retryAt, this.#unsent.length > 0 ? 0 : this.#pollAt);
  }

  add(settlement: Settlement): void {
    this.#unsent.push(settlement);
  }

  /** Ends a call that only waits for work, so that the next one can start. */
  interrupt(): void {
    if (this.#isPolling) this.#call?.abort();
  }

  /** Ends any call: the worker is leaving and will not hear the answer. */
  abandon(): void {
    this.#call?.abort();
  }

  /** Whether a call would be of use now, given room for so many leases. */
  mayCall(room: number): boolean {
    return (this.#unsent.length > 0 || room > 0) && this.#options.clock.monotonic() >= this.dueAt;
  }

  /** Makes one call; the leases it brought, or null when there was no answer. Never rejects. */
  async call(room: number): Promise<readonly Lease[] | null> {
    const { source, clock, beforeSend } = this.#options;
    const settlements = this.#unsent;
    this.#unsent = [];
    const abort = new AbortController();
    this.#call = abort;
    this.#isPolling = settlements.length === 0;
    if (!this.#isPolling) await beforeSend(settlements);
    const sentAt = clock.monotonic();
    try {
      const { results, leases } = await source.next({ limit: room, settlements, signal: abort.signal });
      this.#failures = 0;
      this.#accept(settlements, results);
      const isQuick = clock.monotonic() - sentAt < QUICK_ANSWER_MS && !abort.signal.aborted;
      this.#pace(isQuick && settlements.length === 0 && leases.length === 0);
      return leases;
    } catch (error) {
      this.#unsent = [...settlements, ...this.#unsent];
      if (!abort.signal.aborted) this.#backOff(error);
      return null;
    } finally {
      this.#call = null;
      this.#isPolling = false;
    }
  }

  /** A source that answers "nothing" without waiting is asked less and less often, from the second time on. */
  #pace(isEmptyAndQuick: boolean): void {
    this.#quickAnswers = isEmptyAndQuick ? this.#quickAnswers + 1 : 0;
    if (this.#quickAnswers < 2) return;
    const delayMs = Math.min(2 ** this.#quickAnswers, IDLE_MS_MAX);
    this.#pollAt = this.#options.clock.monotonic() + delayMs;
  }

  #backOff(error: unknown): void {
    const delayMs = Math.min(RETRY_MS_MIN * 2 ** this.#failures, RETRY_MS_MAX);
    this.#failures += 1;
    this.#retryAt = this.#options.clock.monotonic() + delayMs;
    const held = this.#unsent.length;
    this.#options.logger.warn('worker.source_away', { error, held, retry_in_ms: delayMs });
  }

  #accept(settlements: readonly Settlement[], results: readonly SettlementResult[]): void {
    for (const { lease_id } of settlements) this.#options.onSettled(lease_id);
    for (const result of results) if (!result.ok) this.#refused(result, settlements);
  }

  /** A result that cannot be recorded for what is in it becomes a failure, so that the task does not wait for its lease to end. */
  #refused(result: Extract<SettlementResult, { ok: false }>, settlements: readonly Settlement[]): void {
    const { lease_id, code, message } = result;
    const kind = settlements.find((settlement) => settlement.lease_id === lease_id)?.kind;
    this.#options.logger.info('worker.settlement_refused', { lease_id, kind, code, message });
    if (kind !== 'complete' || FENCED.has(code)) return;
    this.add({ kind: 'fail', lease_id, failure: { class: 'output', code, message } });
  }
}
