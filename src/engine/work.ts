/**
 * The rows that one transaction touches, and every change to them. A move is checked against the transition table, counted in
 * its run, and noted as one event per task (I4); `flush` writes it all with a few set-based statements. Work decides nothing:
 * the functions around it do, and nothing reaches the store before `flush`, so a refused operation leaves no trace.
 */
import { invariant } from '../base/invariant.ts';
import type { EventType } from '../domain/event-types.ts';
import type { Amount } from '../domain/limits.ts';
import { isTerminal, type TaskStatus } from '../domain/states.ts';
import { assertMove } from '../domain/transitions.ts';
import type { ArtifactRow, AttemptRow, CursorRow, RunRow, TaskRow, TimerRow } from '../stores/rows.ts';
import type { ClaimableRow, NewEvent, Tx } from '../stores/store.ts';
import type { LimitBook } from './limit-book.ts';
import { LimitChanges } from './limit-changes.ts';
import { LimitLedger } from './limit-ledger.ts';
import { OutboxChanges } from './outbox-changes.ts';
import { countActiveTime, counterOf, hasFew, statusOf } from './run-counters.ts';
import { runSettings } from './run-settings.ts';
import { type Cause, TaskEvents } from './task-events.ts';
import { AT_BUDGET, isHeldBack, type NewShare, readLimits, TO_ESTIMATE } from './task-limits.ts';

/** What an engine does after the commit. */
export interface Aftermath {
  /** Tasks became claimable and were not taken. */
  hasQueued: boolean;
  /** Tasks were claimed. */
  hasClaimed: boolean;
  /** Tasks whose `if`, gate, `for_each` or `wait` is to be worked out. */
  hasUndecided: boolean;
  /** Runs whose `outputs` are to be worked out. */
  hasFinishing: boolean;
  hasCursors: boolean;
  /** Limits have more room than before. */
  hasRoom: boolean;
  hasTimers: boolean;
  hasEvents: boolean;
  /** Runs that ended. */
  readonly finishedRuns: string[];
}

/** The rows, moves and events of one transaction. */
export class Work {
  readonly tx: Tx;
  readonly now: number;
  /** What is known of limits without asking. */
  readonly book: LimitBook;
  readonly aftermath: Aftermath = {
    hasQueued: false,
    hasClaimed: false,
    hasUndecided: false,
    hasFinishing: false,
    hasCursors: false,
    hasRoom: false,
    hasTimers: false,
    hasEvents: false,
    finishedRuns: [],
  };
  /** Ended tasks whose children have not been told yet. */
  ended: TaskRow[] = [];
  /** Runs in which a task failed without being tolerated; their policy is applied after the results. */
  readonly failedRuns = new Set<number>();
  /** Maps in which slots became free: items that wait for one may go on. */
  readonly freedMaps = new Set<TaskRow>();
  /** Runs whose budget has more room than before. */
  readonly freedBudgets = new Set<RunRow>();
  readonly #tasks = new Map<number, TaskRow>();
  readonly #runs = new Map<number, RunRow>();
  readonly #changed = new Set<TaskRow>();
  readonly #changedRuns = new Set<RunRow>();
  /** How many tasks are found where they no longer stand: by run for those that wait for room, by map for those that wait for a slot. */
  readonly #leftReady = new Map<number, number>();
  readonly #leftHeld = new Map<number, number>();
  readonly #taskEvents = new TaskEvents();
  readonly #events: NewEvent[] = [];
  readonly #attempts: AttemptRow[] = [];
  readonly #acknowledged: (readonly [number, number, string | null])[] = [];
  readonly #artifacts: ArtifactRow[] = [];
  readonly #queueAdds = new Map<TaskRow, ClaimableRow>();
  readonly #queueRemovals: ClaimableRow[] = [];
  readonly #timers: TimerRow[] = [];
  readonly #timerRemovals: TimerRow[] = [];
  readonly #cursors: Omit<CursorRow, 'key'>[] = [];
  #limits: LimitChanges | null = null;
  #ledger: LimitLedger | null = null;
  /** What a broker is to be told; null where there is none, and then nothing about it is written. */
  readonly outbox: OutboxChanges | null;
  #isFlushed = false;

  constructor(
    tx: Tx,
    now: number,
    { book, hasBroker }: { readonly book: LimitBook; readonly hasBroker: boolean },
  ) {
    this.tx = tx;
    this.now = now;
    this.book = book;
    this.outbox = hasBroker ? new OutboxChanges() : null;
  }

  // ── Loading ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Task rows by key, with their runs. A row that is here already is not read again: this work's changes are in it. */
  async tasks(keys: Iterable<number>): Promise<TaskRow[]> {
    const wanted = new Set(keys);
    const missing: number[] = [];
    for (const key of wanted) if (!this.#tasks.has(key)) missing.push(key);
    if (missing.length > 0) await this.#take(await this.tx.tasks.byKeys(missing));
    const rows: TaskRow[] = [];
    for (const key of wanted) {
      const row = this.#tasks.get(key);
      if (row !== undefined) rows.push(row);
    }
    return rows;
  }

  /** Takes rows that a query returned into the work, items with their maps; rows known already win over what was read. */
  async adopt(rows: readonly TaskRow[]): Promise<TaskRow[]> {
    await this.#take(rows);
    return rows.map((row) => this.#tasks.get(row.key) ?? row);
  }

  async #take(rows: readonly TaskRow[]): Promise<void> {
    const runs = new Set<number>();
    const maps: number[] = [];
    for (const row of rows) {
      if (!this.#tasks.has(row.key)) this.#tasks.set(row.key, row);
      if (!this.#runs.has(row.run_key)) runs.add(row.run_key);
      if (row.map_key !== null && !this.#tasks.has(row.map_key)) maps.push(row.map_key);
    }
    if (runs.size > 0) await this.runs(runs);
    if (maps.length > 0) await this.tasks(maps);
  }

  /** A task that was loaded; undefined when there is none of this key. */
  taskAt(key: number): TaskRow | undefined {
    return this.#tasks.get(key);
  }

  async runs(keys: Iterable<number>): Promise<RunRow[]> {
    const wanted = [...new Set(keys)];
    const missing = wanted.filter((key) => !this.#runs.has(key));
    if (missing.length > 0)
      for (const row of await this.tx.runs.byKeys(missing)) this.#runs.set(row.key, row);
    return wanted.flatMap((key) => this.#runs.get(key) ?? []);
  }

  /** The run of a loaded task. */
  runOf(task: TaskRow): RunRow {
    const run = this.#runs.get(task.run_key);
    invariant(run !== undefined, 'the run of a task is loaded with it');
    return run;
  }

  /** The map of a loaded item. */
  mapOf(item: TaskRow): TaskRow {
    const map = this.#tasks.get(item.map_key ?? 0);
    invariant(map !== undefined, 'the map of an item is loaded with it');
    return map;
  }

  loadedRuns(): Iterable<RunRow> {
    return this.#runs.values();
  }

  loadedTasks(): Iterable<TaskRow> {
    return this.#tasks.values();
  }

  // ── New rows ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Adds rows that were just inserted; they are counted in their run. From here on the work cannot be dropped silently. */
  created(run: RunRow, tasks: readonly TaskRow[]): void {
    this.#isFlushed = true;
    this.#runs.set(run.key, run);
    this.#changedRuns.add(run);
    for (const task of tasks) {
      this.#tasks.set(task.key, task);
      run[counterOf(task)] += 1;
    }
  }

  // ── Changes ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Moves a task. The caller has checked the guard; the table has the last word on the pair. */
  move(task: TaskRow, to: TaskStatus, cause: Cause): void {
    const from = task.status;
    assertMove(from, to, cause.by);
    const run = this.runOf(task);
    this.#leave(task, run, to);
    const counter = counterOf(task);
    task.status = to;
    task.reason = cause.reason ?? null;
    if (counterOf(task) !== counter) {
      run[counter] -= 1;
      run[counterOf(task)] += 1;
    }
    this.#enter(task, run);
    this.#changedRuns.add(run);
    this.#note(task, from, cause);
  }

  /** Puts a task into the queue: at once, or when its time comes. */
  enqueue(
    task: TaskRow,
    cause: Cause,
    at?: { readonly notBefore: number; readonly kind: 'retry' | 'wait' },
  ): void {
    this.move(task, 'QUEUED', cause);
    if (at !== undefined && at.notBefore > this.now) {
      task.not_before = at.notBefore;
      task.waiting_for = 'time';
      this.#giveSlot(task);
      this.addTimer({ due_at: at.notBefore, kind: at.kind, subject: task.key });
    } else this.makeClaimable(task);
    // A wait ends by itself and needs no worker.
    if (at?.kind !== 'wait') this.outbox?.enter(task, this.now);
  }

  /** A QUEUED task can be claimed from now on. */
  makeClaimable(task: TaskRow): void {
    const run = this.runOf(task);
    const hasSlot = this.#takeSlot(task);
    invariant(hasSlot, 'an item is handed out with a slot of its map');
    task.in_queue = 1;
    task.waiting_for = 'pool';
    run.n_queued += 1;
    this.#queueAdds.set(task, claimableRow(task));
    this.change(task);
    this.#changedRuns.add(run);
  }

  // ── Limits ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** How much room limits have. */
  get ledger(): LimitLedger {
    this.#ledger ??= new LimitLedger(this.tx, this.now, (name) => this.#limits?.endsOf(name) ?? []);
    return this.#ledger;
  }

  /** How many tasks this work holds back. */
  get heldAdditions(): number {
    return this.#limits?.additions ?? 0;
  }

  /** How many rows of held tasks this work takes out. */
  get heldRemovals(): number {
    return this.#limits?.removals ?? 0;
  }

  /** Keeps a task back as READY until there is room at a place, out of the way of others (TRANSITIONS 15). */
  hold(task: TaskRow, place: string): void {
    const isLimit = place !== TO_ESTIMATE && place !== AT_BUDGET;
    const run = this.runOf(task);
    const isBudget = place === AT_BUDGET || (!isLimit && (runSettings(run).budget ?? null) !== null);
    const waiting_for = isBudget ? 'budget' : 'limit';
    const reason = isLimit ? `limit ${place}` : waiting_for;
    if (task.status !== 'READY') this.move(task, 'READY', { event: 'task.ready', reason });
    // A query still finds it among those that wait for room in the run.
    else if (!isHeldBack(task)) this.#countLeft(this.#leftReady, run.key);
    if (!isHeldBack(task)) run.n_ready -= 1;
    task.waiting_for = waiting_for;
    const limits = readLimits(task);
    invariant(limits !== null, `task ${task.id} asks something of limits`);
    this.#changeLimits().hold(task, limits, place);
    this.book.note(place);
    if (place === TO_ESTIMATE) this.aftermath.hasUndecided = true;
    this.change(task);
    this.#changedRuns.add(run);
  }

  /** A held task waits for nothing but its run any more. */
  letGo(task: TaskRow): void {
    const limits = readLimits(task);
    if (!isHeldBack(task) || limits === null) return;
    const run = this.runOf(task);
    this.#changeLimits().letGo(task, limits);
    run.n_ready += 1;
    task.waiting_for = run.paused === 1 ? 'paused' : 'capacity';
    this.change(task);
    this.#changedRuns.add(run);
  }

  /** The attempt that has just begun takes these shares of limits, and this of its run's budget. */
  grant(
    task: TaskRow,
    granted: { readonly shares: readonly NewShare[]; readonly reserved: Amount | null },
  ): void {
    const run = this.runOf(task);
    this.#changeLimits().grant(task, run, { ...granted, now: this.now });
    this.#changedRuns.add(run);
  }

  /** The worker of a cancelled attempt has stopped: its slots are free. */
  freeSlots(task_key: number, attempt: number): void {
    this.#changeLimits().free(task_key, attempt);
  }

  #changeLimits(): LimitChanges {
    this.#limits ??= new LimitChanges();
    return this.#limits;
  }

  // ── Queue ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** How many rows of the queue table this work takes out. */
  get queueRemovals(): number {
    return this.#queueRemovals.length;
  }

  /** How many tasks of a run this work has moved on from READY; a query still finds them there. */
  leftReady(run: RunRow): number {
    return this.#leftReady.get(run.key) ?? 0;
  }

  /** How many items of a map no longer wait for a slot because of this work; a query still finds them. */
  leftHeld(map: TaskRow): number {
    return this.#leftHeld.get(map.key) ?? 0;
  }

  /** Whether the `max_parallel` of a task's map, if there is one, lets it be handed out. */
  hasSlot(task: TaskRow): boolean {
    return !isSlotless(task) || (this.mapOf(task).map_slots ?? 0) > 0;
  }

  /** A READY item that waited for a slot of its map gets one, and waits for room in its run like any other task. */
  letIn(item: TaskRow): void {
    const hasSlot = this.#takeSlot(item);
    invariant(hasSlot, `there is a slot for item ${item.id}`);
    this.#countLeft(this.#leftHeld, item.map_key ?? 0);
    this.runOf(item).n_ready += 1;
    this.#changedRuns.add(this.runOf(item));
  }

  /** Tasks that became claimable in this work. */
  newlyClaimable(): readonly TaskRow[] {
    return [...this.#queueAdds.keys()];
  }

  /** Marks a row as changed without an event: bookkeeping that no status shows. */
  change(task: TaskRow): void {
    this.#changed.add(task);
  }

  changeRun(run: RunRow): void {
    this.#changedRuns.add(run);
  }

  /** An event that comes with no move of its own, such as a checkpoint. */
  note(task: TaskRow, cause: Cause): void {
    this.#note(task, task.status, cause);
  }

  runEvent(run: RunRow, type: EventType, data: Readonly<Record<string, unknown>> = {}): void {
    run.version += 1;
    this.#changedRuns.add(run);
    const told = JSON.stringify(data).slice(1, -1);
    const text = `{${told}${told === '' ? '' : ','}"version":${run.version}}`;
    this.#events.push({ run_key: run.key, task_key: null, type, at: this.now, data: text });
  }

  /** Records how the current attempt of a leased task ended. Must come before the move that takes the lease away. */
  endAttempt(
    task: TaskRow,
    end: Pick<AttemptRow, 'outcome'> & Partial<Pick<AttemptRow, 'digest' | 'answer' | 'error' | 'usage'>>,
  ): void {
    invariant(task.lease_id !== null, 'a task whose attempt ends has a lease');
    if (task.limits !== null) {
      const run = this.runOf(task);
      const { outcome, usage = null, error = null } = end;
      if (this.#changeLimits().end(task, run, { outcome, usage, error, now: this.now }))
        this.freedBudgets.add(run);
    }
    // Written out: a spread would make every record a slow, one-off kind of object.
    this.#attempts.push({
      task_key: task.key,
      attempt: task.attempt,
      lease_id: task.lease_id,
      outcome: end.outcome,
      digest: end.digest ?? null,
      answer: end.answer ?? null,
      error: end.error ?? null,
      usage: end.usage ?? null,
      leased_by: task.leased_by,
      started_at: task.started_at,
      finished_at: this.now,
      acknowledged: 0,
    });
  }

  /** The worker of an ended attempt has been heard. */
  acknowledge(row: readonly [task_key: number, attempt: number, usage: string | null]): void {
    this.#acknowledged.push(row);
  }

  /** Whether the worker of an ended attempt was heard in this work. */
  isAcknowledged(task_key: number, attempt: number): boolean {
    return this.#acknowledged.some((row) => row[0] === task_key && row[1] === attempt);
  }

  /** Attempts that ended in this work and are not in the store yet. */
  endedAttempt(task_key: number, attempt: number): AttemptRow | undefined {
    return this.#attempts.find((row) => row.task_key === task_key && row.attempt === attempt);
  }

  /** Stores what an attempt leaves, the current one unless it says another; number 0 is the output of the task. */
  addArtifact(
    task: TaskRow,
    artifact: Omit<ArtifactRow, 'task_key' | 'attempt' | 'created_at'> & { readonly attempt?: number },
  ): void {
    this.#artifacts.push({
      task_key: task.key,
      attempt: artifact.attempt ?? task.attempt,
      ordinal: artifact.ordinal,
      kind: artifact.kind,
      name: artifact.name,
      content_type: artifact.content_type,
      bytes: artifact.bytes,
      inline: artifact.inline,
      blob_ref: artifact.blob_ref,
      created_at: this.now,
    });
    if (artifact.ordinal === 0) task.output_attempt = task.attempt;
  }

  addTimer(timer: TimerRow): void {
    this.#timers.push(timer);
    this.aftermath.hasTimers = true;
  }

  removeTimer(timer: TimerRow): void {
    this.#timerRemovals.push(timer);
  }

  addCursor(cursor: Omit<CursorRow, 'key'>): void {
    this.#cursors.push(cursor);
    const run = this.#runs.get(cursor.run_key);
    invariant(run !== undefined, 'the run of a cursor is loaded');
    run.n_cursors += 1;
    this.#changedRuns.add(run);
    if (cursor.data === null) this.aftermath.hasCursors = true;
  }

  /** True once something may have reached the store. */
  get isFlushed(): boolean {
    return this.#isFlushed;
  }

  // ── Writing ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Writes everything. The work must not be used afterwards. */
  async flush(): Promise<void> {
    this.#isFlushed = true;
    for (const run of this.#changedRuns) {
      this.#updateRunStatus(run);
      // A broker is sent what is in the queue; whoever claims without one goes on with an unlock himself.
      if (this.outbox !== null && run.n_cursors > 0 && hasFew(run)) this.aftermath.hasCursors = true;
    }
    const { tx } = this;
    await tx.artifacts.insert(this.#artifacts);
    this.#events.push(...this.#taskEvents.collect(this.now));
    for (const task of this.#changed) if (task.undecided === 1) this.aftermath.hasUndecided = true;
    await tx.tasks.save([...this.#changed]);
    await tx.attempts.record(this.#attempts);
    await tx.attempts.acknowledge(this.#acknowledged);
    await tx.claimable.remove(this.#queueRemovals);
    await tx.claimable.add([...this.#queueAdds.values()]);
    if (this.#limits !== null) {
      await this.#limits.flush(tx);
      this.aftermath.hasRoom = this.#limits.hasRoom;
    }
    await this.outbox?.flush(tx);
    await tx.timers.remove(this.#timerRemovals);
    await tx.timers.add(this.#timers);
    await tx.cursors.add(this.#cursors);
    await tx.runs.save([...this.#changedRuns]);
    await tx.events.append(this.#events);
    this.aftermath.hasEvents = this.#events.length > 0;
    if (this.#queueAdds.size > 0) this.aftermath.hasQueued = true;
  }

  #leave(task: TaskRow, run: RunRow, to: TaskStatus): void {
    // A start keeps its lease.
    if (task.status === 'LEASED' && to === 'RUNNING') return;
    if (task.status === 'QUEUED') this.outbox?.leave(task);
    if (isHeldBack(task)) {
      const limits = readLimits(task);
      if (limits !== null) this.#changeLimits().letGo(task, limits);
    } else if (isHeld(task)) this.#countLeft(this.#leftHeld, task.map_key ?? 0);
    else if (task.status === 'READY') {
      run.n_ready -= 1;
      this.#countLeft(this.#leftReady, run.key);
    } else if (task.lease_id !== null) {
      run.n_leased -= 1;
      task.lease_id = null;
      task.leased_by = null;
      task.lease_expires_at = null;
      task.lease_ms = null;
      task.claim_id = null;
      task.deadline_at = null;
    } else if (task.in_queue === 1) {
      task.in_queue = 0;
      run.n_queued -= 1;
      if (!this.#queueAdds.delete(task)) this.#queueRemovals.push(claimableRow(task));
    }
    task.undecided = 0;
    task.waiting_for = null;
  }

  #enter(task: TaskRow, run: RunRow): void {
    this.#changed.add(task);
    if (task.status === 'READY') run.n_ready += this.#takeSlot(task) ? 1 : 0;
    else if (task.map_key !== null && !KEEPS_SLOT.has(task.status)) this.#giveSlot(task);
    if (task.status === 'BLOCKED' || task.status === 'WAITING_INPUT') task.waiting_for = 'person';
    else if (task.status === 'PENDING') task.waiting_for = 'dependency';
    else if (isTerminal(task.status)) {
      task.finished_at = this.now;
      this.ended.push(task);
      if (task.status === 'FAILED' && task.is_tolerated === 0) this.failedRuns.add(task.run_key);
    }
  }

  /** Items of a map with `max_parallel` hold a slot from READY until they end, wait for a person, or wait for a time. */
  #takeSlot(task: TaskRow): boolean {
    if (!isSlotless(task)) return true;
    const map = this.mapOf(task);
    if (map.map_slots === null || map.map_slots === 0) return false;
    map.map_slots -= 1;
    task.map_slots = 1;
    this.#changed.add(map).add(task);
    return true;
  }

  #giveSlot(task: TaskRow): void {
    if (task.map_key === null || task.map_slots === null) return;
    if (task.map_slots === 1) {
      const map = this.mapOf(task);
      map.map_slots = (map.map_slots ?? 0) + 1;
      this.#changed.add(map);
      this.freedMaps.add(map);
    }
    task.map_slots = isTerminal(task.status) ? null : 0;
    this.#changed.add(task);
  }

  #countLeft(counts: Map<number, number>, key: number): void {
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }

  #note(task: TaskRow, from: TaskStatus, cause: Cause): void {
    this.#taskEvents.note(task, from, cause);
    this.#changed.add(task);
  }

  /** Stored and derived in the same transaction, from the counters alone (SPEC S3.3). */
  #updateRunStatus(run: RunRow): void {
    const before = run.status;
    let status = statusOf(run);
    if (
      isTerminal(status) &&
      status !== 'CANCELLED' &&
      run.outputs === null &&
      runSettings(run).has_outputs
    ) {
      run.finishing = 1;
      this.aftermath.hasFinishing = true;
      status = 'RUNNING';
    } else run.finishing = 0;
    if (status === before) return;
    const timer = countActiveTime(run, this.now, status === 'RUNNING');
    if (timer !== null) this.addTimer(timer);
    run.status = status;
    run.finished_at = isTerminal(status) ? this.now : null;
    if (run.finished_at !== null) this.aftermath.finishedRuns.push(run.id);
    this.runEvent(run, 'run.status.changed', {
      from: before,
      to: status,
      ...(run.stop_reason === null ? {} : { reason: run.stop_reason }),
    });
  }
}

const KEEPS_SLOT: ReadonlySet<TaskStatus> = new Set(['QUEUED', 'LEASED', 'RUNNING']);

/** Whether a task is an item of a map with `max_parallel` and holds none of its slots. */
function isSlotless(task: TaskRow): boolean {
  return task.map_key !== null && task.map_slots === 0;
}

/** Whether a READY task is an item that waits for a slot of its map. */
export function isHeld(task: TaskRow): boolean {
  return isSlotless(task) && task.status === 'READY';
}

function claimableRow(task: TaskRow): ClaimableRow {
  return { queue_key: task.queue_key, rank: -task.priority, task_key: task.key, run_key: task.run_key };
}
