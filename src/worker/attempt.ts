/** One lease being worked on: its deadlines, why it must stop, and what its handler has said so far. Costs little when idle. */

import { childTrace, type TraceContext } from '../base/trace.ts';
import { addCosts, addModelUses } from '../domain/model-use.ts';
import type { AttemptLog } from './attempt-log.ts';
import type { Heartbeat, Lease, NewArtifact, Question, Usage } from './work-source.ts';

/** Why a handler is told to stop. */
export type StopCause = 'timeout' | 'cancelled' | 'lost' | 'expired' | 'shutdown';

/** A question as a handler asks it. */
export type AskedQuestion = Question & { readonly status?: 'BLOCKED' | 'WAITING_INPUT' };

/** How long a handler that was told to stop may take before it is left behind. */
const ABANDON_AFTER_MS = 10_000;

/** What the next heartbeat has to tell. */
type News = Omit<Heartbeat, 'lease_id'>;

/** The state of one attempt. All times are monotonic milliseconds. */
export class Attempt {
  readonly lease: Lease;
  readonly timeoutAt: number;
  expiresAt: number;
  abandonAt = Number.POSITIVE_INFINITY;
  stopCause: StopCause | null = null;
  /** True when the handler's outcome is decided; nothing it does later counts. */
  isOver = false;
  question: AskedQuestion | null = null;
  usage: Usage | null = null;
  artifacts: NewArtifact[] | null = null;
  log: AttemptLog | null = null;
  #trace: TraceContext | null = null;
  #controller: AbortController | null = null;
  #news: News | null = null;

  constructor(lease: Lease, now: number) {
    this.lease = lease;
    this.timeoutAt = now + lease.timeout_ms;
    this.expiresAt = now + lease.lease_ms;
  }

  /** The attempt's own span in the trace of its run. */
  get trace(): TraceContext {
    this.#trace ??= childTrace(this.lease.trace);
    return this.#trace;
  }

  /** Made when it is first looked at: most handlers never do. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.stopCause !== null) this.#controller.abort(stopReason(this.stopCause));
    }
    return this.#controller.signal;
  }

  /** Tells the handler to stop. The first cause stays, except that a lost lease outranks all others. */
  stop(cause: StopCause, now: number): void {
    if (this.isOver) return;
    if (this.stopCause !== null) {
      if (cause === 'lost' || cause === 'cancelled') this.stopCause = cause;
      return;
    }
    this.stopCause = cause;
    this.abandonAt = now + ABANDON_AFTER_MS;
    this.#controller?.abort(stopReason(cause));
  }

  tell(news: News): void {
    this.#news = { ...this.#news, ...news };
  }

  get hasUnsentCheckpoint(): boolean {
    return this.#news !== null && 'checkpoint' in this.#news;
  }

  /** The heartbeat to send, and what to call once it has arrived. */
  heartbeat(): { readonly beat: Heartbeat; readonly arrived: () => void } {
    const news = this.#news;
    return {
      beat: { lease_id: this.lease.lease_id, ...news },
      arrived: () => {
        if (this.#news === news) this.#news = null;
      },
    };
  }

  addUsage(usage: Usage): void {
    this.usage = this.usage === null ? usage : addUsage(this.usage, usage);
  }

  addArtifact(artifact: NewArtifact): void {
    this.artifacts ??= [];
    this.artifacts.push(artifact);
  }
}

/** What `signal.reason` is; by its name a handler can tell the causes apart. */
function stopReason(cause: StopCause): DOMException {
  return new DOMException(
    `the attempt must end: ${cause}`,
    cause === 'timeout' ? 'TimeoutError' : 'AbortError',
  );
}

const COUNTED = ['tokens_in', 'tokens_out', 'tokens_cached', 'latency_ms'] as const;

/** Counts add up; a cost that is not known once is not known at all; names are those of the last call. */
function addUsage(a: Usage, b: Usage): Usage {
  const sum: Record<string, unknown> = { ...a, ...b };
  for (const key of COUNTED) {
    if (a[key] !== undefined && b[key] !== undefined) sum[key] = a[key] + b[key];
  }
  if (a.cost_usd !== undefined && b.cost_usd !== undefined) sum.cost_usd = addCosts(a.cost_usd, b.cost_usd);
  if (a.models !== undefined && b.models !== undefined) sum.models = addModelUses(a.models, b.models);
  return sum;
}
