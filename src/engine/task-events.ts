/**
 * One event per task and transaction, named after the last thing that happened to it (I4). The text is put together by hand: it
 * is written for every move, and most events say the same few things.
 */
import type { EventType } from '../domain/event-types.ts';
import type { TaskStatus } from '../domain/states.ts';
import type { Mover } from '../domain/transitions.ts';
import type { TaskRow } from '../stores/rows.ts';
import type { NewEvent } from '../stores/store.ts';

/** Why a task moves, as its event tells it. */
export interface Cause {
  readonly event: EventType;
  readonly reason?: string | null;
  readonly by?: Mover;
  readonly data?: Readonly<Record<string, unknown>>;
}

interface TaskEvent {
  readonly task: TaskRow;
  readonly from: TaskStatus | null;
  via: readonly TaskStatus[];
  type: EventType;
  reason: string | null;
  data: Readonly<Record<string, unknown>>;
}

const NOTHING: Readonly<Record<string, unknown>> = Object.freeze({});
const NOWHERE: readonly TaskStatus[] = Object.freeze([]);
/** The usual way of a task that is handed out in the transaction that unlocks it; events share it. */
const AT_ONCE: readonly TaskStatus[] = Object.freeze(['READY', 'QUEUED'] as const);
const BY_READY: readonly TaskStatus[] = Object.freeze(['READY'] as const);

function viaWith(via: readonly TaskStatus[], status: TaskStatus): readonly TaskStatus[] {
  if (via === NOWHERE && status === 'READY') return BY_READY;
  if (via === BY_READY && status === 'QUEUED') return AT_ONCE;
  return [...via, status];
}

/** Collects what happens to tasks in one transaction. */
export class TaskEvents {
  readonly #events = new Map<TaskRow, TaskEvent>();

  /** Something happened to a task that was in `from` before. */
  note(task: TaskRow, from: TaskStatus, cause: Cause): void {
    const reason = cause.reason ?? null;
    const known = this.#events.get(task);
    if (known === undefined) {
      const data = cause.data ?? NOTHING;
      this.#events.set(task, { task, from, via: NOWHERE, type: cause.event, reason, data });
      return;
    }
    if (from !== known.from && from !== task.status) known.via = viaWith(known.via, from);
    // Who decided is told even when the task moves on at once.
    if (!isDecision(known.type) || !isHandOut(cause.event)) known.type = cause.event;
    known.reason = reason;
    if (cause.data !== undefined)
      known.data = known.data === NOTHING ? cause.data : { ...known.data, ...cause.data };
  }

  /** The events as rows; the version of every task they tell of grows by one. Neighbours that say the same share their text. */
  collect(at: number): NewEvent[] {
    const rows: NewEvent[] = [];
    let before: TaskEvent | null = null;
    let data = '';
    for (const event of this.#events.values()) {
      const { task } = event;
      task.version += 1;
      if (before === null || !saysTheSame(before, event) || !isAlike(before.task, task)) data = textOf(event);
      before = event;
      rows.push({ run_key: task.run_key, task_key: task.key, type: event.type, at, data });
    }
    return rows;
  }
}

function saysTheSame(one: TaskEvent, other: TaskEvent): boolean {
  return (
    one.type === other.type &&
    one.from === other.from &&
    one.reason === other.reason &&
    one.data === other.data &&
    (one.via === other.via || one.via.join() === other.via.join())
  );
}

function isAlike(one: TaskRow, other: TaskRow): boolean {
  return one.status === other.status && one.attempt === other.attempt && one.version === other.version;
}

/** `{"from","to","via","reason","attempt","version",…}` as JSON. Statuses are words without anything to escape. */
function textOf({ task, from, via, reason, data }: TaskEvent): string {
  const before = from === null ? 'null' : `"${from}"`;
  const passed = via.length === 0 ? '' : `,"via":["${via.join('","')}"]`;
  const why = reason === null ? '' : `,"reason":${JSON.stringify(reason)}`;
  const more = data === NOTHING ? '' : JSON.stringify(data).slice(1, -1);
  const rest = more === '' ? '' : `,${more}`;
  return `{"from":${before},"to":"${task.status}"${passed}${why},"attempt":${task.attempt},"version":${task.version}${rest}}`;
}

function isDecision(type: EventType): boolean {
  return type === 'task.approved' || type === 'task.resumed';
}

function isHandOut(type: EventType): boolean {
  return type === 'task.ready' || type === 'task.queued';
}
