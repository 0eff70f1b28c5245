/** An attempt that ends with known facts, as an error: handlers and model providers throw it, the worker classifies it. */
import type { FailureFacts, TaskFailure } from './failure.ts';

/** Ends an attempt with a failure whose facts are known; `extra` adds to what is stored (status, delay asked for, hint). */
export class AttemptFailure extends Error {
  override readonly name = 'AttemptFailure';
  readonly facts: FailureFacts;
  readonly extra: Partial<TaskFailure>;

  constructor(facts: FailureFacts, message: string, extra: Partial<TaskFailure> & { cause?: unknown } = {}) {
    const { cause, ...rest } = extra;
    super(message, cause === undefined ? undefined : { cause });
    this.facts = facts;
    this.extra = rest;
  }
}
