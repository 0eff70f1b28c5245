/** The contract between a worker and whoever hands out work: the engine in this process, a broker, or a server over HTTP. */
import type { TraceContext } from '../base/trace.ts';
import type { TaskFailure } from '../domain/failure.ts';
import type { ModelUses } from '../domain/model-use.ts';

/** What an attempt used, as far as the handler knows. */
export interface Usage {
  readonly tokens_in?: number;
  readonly tokens_out?: number;
  readonly tokens_cached?: number;
  readonly cost_usd?: number | null;
  readonly model?: string;
  readonly provider?: string;
  /** Time spent in calls of the model. */
  readonly latency_ms?: number;
  /** SHA-256 of what the model was asked. */
  readonly prompt_hash?: string;
  /** Why the model stopped. */
  readonly finish?: string;
  /** The same by model, as one attempt may ask several. */
  readonly models?: ModelUses;
}

/** The right to one attempt, with everything needed to make it. */
export interface Lease {
  readonly lease_id: string;
  readonly run_id: string;
  readonly task_run_id: string;
  readonly task_id: string;
  readonly map_index: number | null;
  readonly attempt: number;
  readonly handler: string;
  /** `with` after rendering. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly output: OutputSpec | null;
  /** Secrets that were put into `config`, so that a worker can mask what it keeps. */
  readonly secrets?: readonly string[];
  /** How long the lease lasts without a heartbeat, and the attempt at most. */
  readonly lease_ms: number;
  readonly timeout_ms: number;
  /** What an earlier attempt left for this one. */
  readonly checkpoint: unknown;
  /** Answers to questions that earlier attempts asked, by question key. */
  readonly answers: Readonly<Record<string, unknown>>;
  /** The folder of the workflow file, where `shell` and `script` work; null when the run did not come from one. */
  readonly workdir: string | null;
  /** Where the run stands in the trace of whoever started it, or in its own. */
  readonly trace: TraceContext;
}

/** What the task says about its output (SPEC S1.2 `output`). */
export interface OutputSpec {
  readonly format?: 'text' | 'json';
  readonly schema?: unknown;
  readonly repair?: number;
  readonly max_chars?: number;
  readonly allow_empty?: boolean;
  readonly allow_truncated?: boolean;
}

/** A file or text that an attempt leaves beside its output. */
export interface NewArtifact {
  readonly name: string;
  readonly content_type: string;
  readonly bytes: Uint8Array;
}

/** A file whose content was stored before the settlement that names it. */
export interface SentArtifact {
  readonly name: string;
  readonly content_type: string;
  readonly sha256: string;
  readonly bytes: number;
}

/** A context snapshot that an attempt leaves. */
interface NewNote {
  readonly data: unknown;
  readonly label?: string;
  /** The snapshot that this one follows. */
  readonly parent_id?: string;
}

/** How an attempt ended, as the worker reports it. */
export type Settlement =
  | {
      readonly kind: 'complete';
      readonly lease_id: string;
      readonly output: unknown;
      readonly usage?: Usage;
      readonly artifacts?: readonly (NewArtifact | SentArtifact)[];
      /** Tasks for the run, by id, added in the same transaction (SPEC S4.10). */
      readonly enqueue?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
      /** Notes on the task, appended in the same transaction (SPEC S12.4). */
      readonly context?: readonly NewNote[];
    }
  | {
      readonly kind: 'fail';
      readonly lease_id: string;
      readonly failure: TaskFailure;
      readonly usage?: Usage;
      readonly artifacts?: readonly (NewArtifact | SentArtifact)[];
    }
  | {
      readonly kind: 'release';
      readonly lease_id: string;
      readonly delay_ms?: number;
      readonly usage?: Usage;
    }
  | {
      readonly kind: 'pause';
      readonly lease_id: string;
      readonly status: 'BLOCKED' | 'WAITING_INPUT';
      readonly question: Question;
      readonly usage?: Usage;
    };

/** What a worker asks a person. */
export interface Question {
  /** Names the question within the task, so that the answer finds it in the next attempt. */
  readonly key: string;
  readonly message: string;
  readonly schema?: unknown;
  /** How long to wait for an answer, such as 24h; then the task is FAILED as rejected. Without it, for ever. */
  readonly timeout?: string;
}

/** What became of a settlement: the task's new status, or why nothing was changed. */
export type SettlementResult =
  | {
      readonly lease_id: string;
      readonly ok: true;
      readonly status: string;
      readonly not_before: string | null;
    }
  | { readonly lease_id: string; readonly ok: false; readonly code: string; readonly message: string };

/** A sign of life for one lease. */
export interface Heartbeat {
  readonly lease_id: string;
  /** 0 to 1. */
  readonly progress?: number;
  readonly message?: string;
  readonly checkpoint?: unknown;
}

/** What a worker must do about a lease (SPEC S6.1). */
export interface HeartbeatAnswer {
  readonly lease_id: string;
  readonly order: 'continue' | 'cancel' | 'lost';
  /** Milliseconds until the lease ends, counted from the answer. */
  readonly expires_in_ms: number;
}

/** A stretch of an attempt's output. */
export interface LogChunk {
  readonly lease_id: string;
  readonly stream: 'stdout' | 'stderr' | 'log' | 'token';
  readonly text: string;
}

/** Hands out work and takes results. Every call may be repeated: results are recorded once. */
export interface WorkSource {
  /**
   * Hands over what has finished and takes up to `limit` new leases, in one step; one result per settlement. Never waits when there are
   * settlements; without any it may wait for work until `signal`, and then answers at once. Leases taken are always handed over.
   */
  next(request: {
    readonly limit: number;
    readonly settlements: readonly Settlement[];
    readonly signal: AbortSignal;
  }): Promise<{ readonly results: readonly SettlementResult[]; readonly leases: readonly Lease[] }>;
  extend(heartbeats: readonly Heartbeat[]): Promise<readonly HeartbeatAnswer[]>;
  log(chunks: readonly LogChunk[]): Promise<void>;
}
