/** The operations of a transaction in Postgres. */
import type { Tx } from '../store.ts';
import type { Access } from './access.ts';
import { claimable, cursors, type EnsureQueue, queues, timers } from './hand-out.ts';
import { held, limits } from './limits.ts';
import { outbox } from './outbox.ts';
import { contexts, events, idempotency, stats, tokens, workers, workflows } from './records.ts';
import { artifacts, attempts, logs } from './results.ts';
import { runs } from './runs.ts';
import { tasks } from './tasks.ts';

/** The transaction's operations. */
export function createTx(access: Access, ensureQueue: EnsureQueue): Tx {
  return {
    workflows: workflows(access),
    runs: runs(access),
    tasks: tasks(access),
    queues: queues(access, ensureQueue),
    claimable: claimable(access),
    limits: limits(access),
    held: held(access),
    timers: timers(access),
    cursors: cursors(access),
    attempts: attempts(access),
    artifacts: artifacts(access),
    logs: logs(access),
    events: events(access),
    contexts: contexts(access),
    idempotency: idempotency(access),
    workers: workers(access),
    tokens: tokens(access),
    outbox: outbox(access),
    stats: stats(access),
  };
}
