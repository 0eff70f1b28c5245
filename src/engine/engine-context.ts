/** What the parts of the engine share. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { HandlerCatalog } from '../definition/handler-spec.ts';
import type { Random } from '../domain/retry.ts';
import type { BlobStore } from '../stores/blob-store.ts';
import type { Store } from '../stores/store.ts';
import type { Committer } from './committer.ts';
import type { LimitBook } from './limit-book.ts';
import type { Plans } from './plans.ts';
import type { Scopes } from './scope.ts';
import type { Signal } from './signal.ts';

/** Dependencies, passed as one object. */
export interface EngineContext {
  readonly store: Store;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly handlers: HandlerCatalog;
  readonly plans: Plans;
  readonly scopes: Scopes;
  readonly committer: Committer;
  /** The longest list of a map. */
  readonly itemsMax: number;
  /** Items of a map that one transaction makes. */
  readonly itemsChunk: number;
  /** What is known of named limits. */
  readonly book: LimitBook;
  /** Something may be claimed. */
  readonly queued: Signal;
  /** There may be a queue that was not there before. */
  readonly queues: Signal;
  /** Somebody has written to a log. */
  readonly logged: Signal;
}
