/** The names of events, once (SPEC S12.1). What an event carries belongs to the store and the wire. */

/** Every event name that SPEC S12.1 spells out. */
export const EVENT_TYPES = Object.freeze([
  'run.created',
  'run.status.changed',
  'run.paused',
  'run.resumed',
  'run.retried',
  'run.cancelled',
  'task.enqueued',
  'task.expanded',
  'task.ready',
  'task.queued',
  'task.claimed',
  'task.running',
  'task.released',
  'task.completed',
  'task.failed',
  'task.retry_scheduled',
  'task.skipped',
  'task.cancelled',
  'task.cancel_acknowledged',
  'task.blocked',
  'task.paused',
  'task.resumed',
  'task.approved',
  'task.rejected',
  'task.lease_expired',
  'task.heartbeat',
  'task.checkpointed',
  'task.replayed',
  'context_snapshot.appended',
  // Members of a family that a store holds; the others are the logger's.
  'outbox.dead_lettered',
  'outbox.replayed',
] as const);

/** The families whose members SPEC S12.1 leaves to their rooms (`worker.*`, `outbox.*`). */
const EVENT_FAMILIES = Object.freeze(['worker', 'outbox'] as const);

/** The name of an event: a listed one, or a member of a family. */
export type EventType = (typeof EVENT_TYPES)[number] | `${(typeof EVENT_FAMILIES)[number]}.${string}`;
