/** The contract of a handler: what a task's `uses` names. A handler is one file and one registry line (SPEC S9.4). */
import type { z } from 'zod';
import type { Clock } from '../base/clock.ts';
import type { TraceContext } from '../base/trace.ts';
import type { HandlerSpec, WantedOutput } from '../definition/handler-spec.ts';
import type { ModelNeed } from '../domain/limits.ts';
import type { NewArtifact, OutputSpec, Question, Usage } from '../worker/work-source.ts';

/** What a handler gets for one attempt. */
export interface HandlerContext<Config> {
  readonly config: Config;
  readonly task: {
    readonly run_id: string;
    readonly task_run_id: string;
    readonly task_id: string;
    readonly map_index: number | null;
    readonly attempt: number;
  };
  /** What the task wants its output to be. */
  readonly output: OutputSpec | null;
  /** Aborted when the attempt must end: cancelled, lease lost, timeout, shutdown. */
  readonly signal: AbortSignal;
  /** Folder of the workflow file, or of the worker when there is none. */
  readonly workdir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** The attempt's span in the trace of its run; what the handler calls gets a child of it (`childTrace`). */
  readonly trace: TraceContext;
  /** The text with `***` in place of secrets, for what is kept or shown. */
  redact(text: string): string;
  log(text: string, stream?: 'stdout' | 'stderr' | 'log' | 'token'): void;
  /** Tells how far the attempt is, 0 to 1, with the next heartbeat. */
  progress(fraction: number, message?: string): void;
  /** Keeps a value for the next attempt, with the next heartbeat. */
  checkpoint(value: unknown): void;
  /** What the last attempt kept, or undefined. */
  readonly lastCheckpoint: unknown;
  /** Answers that people gave to questions of earlier attempts, by key. */
  readonly answers: Readonly<Record<string, unknown>>;
  /** Adds to what the attempt has used so far. */
  usage(usage: Usage): void;
  artifact(artifact: NewArtifact): void;
  /** The answer to a question. Without one yet, the attempt ends here and the task waits for a person. */
  ask(question: Question & { readonly status?: 'BLOCKED' | 'WAITING_INPUT' }): unknown;
}

/** A handler that a worker can run. */
export interface Handler<Config = unknown> extends HandlerSpec {
  readonly config: z.ZodType<Config>;
  run(context: HandlerContext<Config>): Promise<unknown>;
  reserve?(config: Config, output: WantedOutput | null): readonly ModelNeed[];
}

/** Declares a handler; the types of `config` reach `run`. */
export function defineHandler<Config>(handler: Handler<Config>): Handler<Config> {
  return Object.freeze(handler);
}

/** Thrown by a handler's author: trying again would not help. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}

/** Thrown by a handler's author: try again, but not before this much time has passed. */
export class RetryAfter extends Error {
  override readonly name = 'RetryAfter';
  readonly delayMs: number;

  constructor(delayMs: number, message = 'asked to be tried again later') {
    super(message);
    this.delayMs = delayMs;
  }
}
