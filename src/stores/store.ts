/**
 * The contract of a store, owned by the engine. `write` is one transaction: all of it commits or nothing does, and writers
 * of the same rows are ordered. Everything takes and returns sets of rows; a store decides nothing (that is the engine's and
 * the domain's work), it makes changes durable and finds rows fast.
 */
import type { Clock } from '../base/clock.ts';
import type {
  ArtifactRow,
  AttemptRow,
  ContextRow,
  CursorRow,
  DeadLetterRow,
  EventRow,
  GrantRow,
  HeldRow,
  IdempotencyRow,
  LimitRow,
  LimitUseRow,
  OutboxListRow,
  OutboxRow,
  OutboxStatsRow,
  RunLogRow,
  RunRow,
  StatsRow,
  TakenMessage,
  TaskRow,
  TimerRow,
  TokenRow,
  WorkerRow,
  WorkflowRow,
} from './rows.ts';

/** An event to append. */
export interface NewEvent {
  readonly run_key: number | null;
  readonly task_key: number | null;
  readonly type: string;
  readonly at: number;
  readonly data: string;
}

/** A row of `claimable`: higher priority is a lower rank. */
export interface ClaimableRow {
  readonly queue_key: number;
  readonly rank: number;
  readonly task_key: number;
  readonly run_key: number;
}

/** A kind of work that only some workers can do. */
export interface QueueRow {
  readonly key: number;
  readonly handler: string;
  /** JSON of the task's `worker` requirements. */
  readonly worker: string;
}

/** Which runs a list wants. */
interface RunFilter {
  readonly status?: string;
  readonly workflow_name?: string;
  readonly label?: readonly [string, string];
  /** Runs older than this key. */
  readonly before?: number;
  readonly limit: number;
}

/** Which events a page wants. */
interface EventFilter {
  /** The cursor of the last event seen; without one, from the beginning. */
  readonly after?: string;
  readonly run_key?: number;
  readonly types?: readonly string[];
  readonly limit: number;
}

/** Where a map is found. */
type MapPlace = Pick<TaskRow, 'key' | 'run_key'>;

/** What became of messages that a daemon had in hand; those that are no longer its own are passed over. */
export interface OutboxOutcome {
  readonly owner: string;
  readonly now: number;
  /** Sent: the row goes, a mark stays until the task is claimed. */
  readonly sent: readonly number[];
  /** To be tried later. */
  readonly deferred: readonly {
    readonly task_key: number;
    readonly available_at: number;
    readonly retries: number;
    readonly last_error: string;
  }[];
  /** Refused too often. */
  readonly dead: readonly {
    readonly task_key: number;
    readonly retries: number;
    readonly last_error: string;
  }[];
  /** Not tried; anybody may take them. */
  readonly released: readonly number[];
  /** Still in hand, until the time. */
  readonly renewed: { readonly keys: readonly number[]; readonly until: number };
}

/** Operations inside one transaction. Reads see the transaction's own writes. */
export interface Tx {
  readonly workflows: {
    latest(name: string): Promise<WorkflowRow | null>;
    get(name: string, version: number): Promise<WorkflowRow | null>;
    insert(row: WorkflowRow): Promise<void>;
    list(): Promise<readonly WorkflowRow[]>;
  };
  readonly runs: {
    /** Run rows, locked for change until the end of the transaction where the dialect has row locks. */
    byKeys(keys: readonly number[]): Promise<RunRow[]>;
    byId(id: string): Promise<RunRow | null>;
    insert(rows: readonly RunRow[]): Promise<number[]>;
    /** Writes rows that this transaction has read or inserted, as far as they have changed. */
    save(rows: readonly RunRow[]): Promise<void>;
    list(filter: RunFilter): Promise<RunRow[]>;
    finishing(limit: number): Promise<RunRow[]>;
    /** Terminal runs that ended before a time, oldest first. */
    prunable(filter: { statuses: readonly string[]; before: number; limit: number }): Promise<RunRow[]>;
    /** Removes runs and everything that belongs to them; returns the blobs they referred to. */
    remove(keys: readonly number[]): Promise<string[]>;
  };
  readonly tasks: {
    byKeys(keys: readonly number[]): Promise<TaskRow[]>;
    byId(id: string): Promise<TaskRow | null>;
    /** Keys by public id; ids that do not exist are left out. */
    keysOf(ids: readonly string[]): Promise<{ id: string; key: number }[]>;
    /** Tasks by name; of a map its own row, without its items. */
    byTaskIds(run_key: number, task_ids: readonly string[]): Promise<TaskRow[]>;
    ofRun(run_key: number, page: { after: number; limit: number }): Promise<TaskRow[]>;
    /** The tasks of a run without the items of its maps. */
    nodesOf(run_key: number, page: { after: number; limit: number }): Promise<TaskRow[]>;
    /** Items of a map in the order of its list. */
    items(map: MapPlace, page: { from: number; limit: number }): Promise<TaskRow[]>;
    /** READY items that wait for a slot of their map, oldest first. */
    held(map: MapPlace, limit: number): Promise<TaskRow[]>;
    insert(rows: readonly TaskRow[]): Promise<number[]>;
    /** Writes rows that this transaction has read or inserted, as far as they have changed. */
    save(rows: readonly TaskRow[]): Promise<void>;
    /** Children of ended tasks with how many of their parents are in `parents`, beyond `after` in key order. */
    childrenOf(
      parents: readonly number[],
      page: { after: number; limit: number },
    ): Promise<{ parent: number; child: number }[]>;
    /** Different priorities among the children of a task, up to so many. */
    prioritiesBelow(parent: number, limit: number): Promise<number[]>;
    parentsOf(children: readonly number[]): Promise<{ parent: number; child: number }[]>;
    /** Adds edges to new tasks, each once. */
    link(edges: readonly (readonly [parent: number, child: number])[]): Promise<void>;
    unfinished(run_key: number, page: { after: number; limit: number }): Promise<TaskRow[]>;
    /** READY tasks that wait for room in their run; not those that wait for a slot of their map. */
    ready(run_key: number, limit: number): Promise<TaskRow[]>;
    undecided(limit: number): Promise<TaskRow[]>;
    expired(now: number, limit: number): Promise<TaskRow[]>;
    leasedBy(worker: string): Promise<TaskRow[]>;
    byClaim(claim_id: string): Promise<TaskRow[]>;
    asking(page: { after: number; limit: number; run_key?: number }): Promise<TaskRow[]>;
    dead(page: { after: number; limit: number; run_key?: number }): Promise<TaskRow[]>;
    /** Rows in no state that anything would ever move (SPEC S3.4). */
    limbo(limit: number): Promise<TaskRow[]>;
  };
  readonly queues: {
    all(): Promise<QueueRow[]>;
    ensure(handler: string, worker: string): Promise<number>;
  };
  readonly claimable: {
    add(rows: readonly ClaimableRow[]): Promise<void>;
    remove(rows: readonly ClaimableRow[]): Promise<void>;
    /** The first rows by rank, then age, of the queues that are not empty. Rows that another transaction holds are passed over. */
    peek(queues: readonly number[] | 'all', limit: number): Promise<ClaimableRow[]>;
    /** The same, of one run only. */
    ofRun(run_key: number, queues: readonly number[] | 'all', limit: number): Promise<ClaimableRow[]>;
    count(): Promise<number>;
  };
  readonly limits: {
    all(): Promise<LimitRow[]>;
    /** Adds limits, or gives them another definition. */
    save(rows: readonly LimitRow[]): Promise<void>;
    /** These limits, nobody else's until the end of the transaction; a reader only looks. */
    lock(names: readonly string[]): Promise<LimitRow[]>;
    /** For each `[limit, since]`: slots taken at `now`, and what was spent after `since`. Locked limits are counted truly. */
    use(asked: readonly (readonly [name: string, since: number])[], now: number): Promise<LimitUseRow[]>;
    grant(rows: readonly GrantRow[]): Promise<void>;
    /** Writes how grants ended; a `spent_at` that was known before stays. */
    settle(rows: readonly GrantRow[]): Promise<void>;
    /** Ends the slots of attempts. */
    free(attempts: readonly (readonly [task_key: number, attempt: number])[]): Promise<void>;
    /** How many grants of a limit hold no slot at `now` and were spent at `before` or earlier; `age` removes them. */
    aged(name: string, now: number, before: number): Promise<number>;
    age(name: string, now: number, before: number): Promise<void>;
  };
  readonly held: {
    add(rows: readonly HeldRow[]): Promise<void>;
    remove(rows: readonly HeldRow[]): Promise<void>;
    /** Names of limits that hold back tasks of these queues. */
    limits(queues: readonly number[] | 'all'): Promise<string[]>;
    /** The first rows of a place by rank, then age. Rows that another transaction holds are passed over. */
    first(place: string, queues: readonly number[] | 'all', limit: number): Promise<HeldRow[]>;
    /** The same, of one run only. */
    ofRun(run_key: number, place: string, limit: number): Promise<HeldRow[]>;
    counts(): Promise<{ place: string; n: number }[]>;
  };
  readonly timers: {
    add(rows: readonly TimerRow[]): Promise<void>;
    remove(rows: readonly TimerRow[]): Promise<void>;
    due(now: number, limit: number): Promise<TimerRow[]>;
    next(): Promise<number | null>;
  };
  readonly cursors: {
    add(rows: readonly Omit<CursorRow, 'key'>[]): Promise<void>;
    /**
     * Unlocks before stops and cancels before expansions, then oldest first; expansions take turns. One with a number as `data` is
     * left out while its run has more tasks than that READY or in the queue, unless the run is stopped or cancelled.
     */
    first(limit: number): Promise<CursorRow[]>;
    ofRun(run_key: number): Promise<CursorRow[]>;
    move(key: number, position: number): Promise<void>;
    remove(keys: readonly number[]): Promise<void>;
  };
  readonly attempts: {
    record(rows: readonly AttemptRow[]): Promise<void>;
    find(keys: readonly (readonly [task_key: number, attempt: number])[]): Promise<AttemptRow[]>;
    ofTask(task_key: number): Promise<AttemptRow[]>;
    /** Notes that the worker of an ended attempt has been heard; usage is kept unless some was recorded. */
    acknowledge(
      rows: readonly (readonly [task_key: number, attempt: number, usage: string | null])[],
    ): Promise<void>;
  };
  readonly artifacts: {
    insert(rows: readonly ArtifactRow[]): Promise<void>;
    find(
      keys: readonly (readonly [task_key: number, attempt: number, ordinal: number])[],
    ): Promise<ArtifactRow[]>;
    ofTask(task_key: number): Promise<ArtifactRow[]>;
    isBlobUsed(ref: string): Promise<boolean>;
  };
  readonly logs: {
    append(
      rows: readonly { task_key: number; attempt: number; at: number; stream: string; text: string }[],
    ): Promise<void>;
    page(
      task_key: number,
      page: { after: number; limit: number },
    ): Promise<{ key: number; attempt: number; at: number; stream: string; text: string }[]>;
    pageOfRun(run_key: number, page: { after: number; limit: number }): Promise<RunLogRow[]>;
  };
  readonly events: {
    append(rows: readonly NewEvent[]): Promise<void>;
    /** Never passes over an event that is committed later (SPEC S12.2). A text that is no cursor of this store is USAGE. */
    page(filter: EventFilter): Promise<EventRow[]>;
    /** Whether events after a cursor have been pruned with everything before it. */
    isExpired(cursor: string): Promise<boolean>;
    /** The cursor behind which everything is yet to come; `0` is the beginning. */
    newest(): Promise<string>;
    /** About how many there are; cheap, and too high where some have been pruned. */
    estimate(): Promise<number>;
  };
  readonly contexts: {
    insert(
      row: Omit<ContextRow, 'run_id' | 'task_run_id'> & { run_key: number; task_key: number | null },
    ): Promise<void>;
    ofRun(run_key: number): Promise<ContextRow[]>;
  };
  readonly idempotency: {
    find(scope: string, idempotency_key: string): Promise<IdempotencyRow | null>;
    record(row: IdempotencyRow): Promise<void>;
    expire(before: number): Promise<void>;
  };
  readonly workers: {
    save(row: WorkerRow): Promise<void>;
    list(): Promise<WorkerRow[]>;
    remove(id: string): Promise<void>;
  };
  readonly tokens: {
    insert(row: TokenRow): Promise<void>;
    byHash(hash: string): Promise<TokenRow | null>;
    list(): Promise<TokenRow[]>;
    /** Ends a token; one that has ended already stays as it is. */
    revoke(id: string, at: number): Promise<void>;
    touch(id: string, at: number): Promise<void>;
  };
  readonly outbox: {
    /** The name of this store on a broker; `draft` becomes it if there is none yet. */
    home(draft: string): Promise<string>;
    /** A message takes the place of an older one of its task. */
    add(rows: readonly OutboxRow[]): Promise<void>;
    remove(task_keys: readonly number[]): Promise<void>;
    /** Whether something is due, and when the next delayed message will be. */
    peek(): Promise<{ due: number; next_at: number | null }>;
    /** Makes delayed messages due whose time has come. */
    wake(now: number, limit: number): Promise<void>;
    /**
     * The first by rank, then age, that nobody has in hand; they are the owner's until the time. Together with those that were sent
     * and are not claimed yet they are no more than `window`.
     */
    take(request: {
      now: number;
      owner: string;
      until: number;
      limit: number;
      window: number;
    }): Promise<TakenMessage[]>;
    /** Records what became of messages; returns the keys that were still the owner's. */
    settle(outcome: OutboxOutcome): Promise<number[]>;
    /** Whether `tidy` would do something. */
    isUntidy(now: number): Promise<boolean>;
    /** Drops messages of tasks that have moved on, and adds those that processes without a broker did not write. */
    tidy(now: number, limit: number): Promise<void>;
    stats(now: number): Promise<OutboxStatsRow>;
    list(page: { after: number; limit: number }): Promise<OutboxListRow[]>;
    deadLetters(page: { after: number; limit: number }): Promise<DeadLetterRow[]>;
    /** Takes dead letters off the list and sends those again that their tasks still wait for; returns the keys of these tasks. */
    replay(keys: readonly number[], now: number): Promise<number[]>;
    purge(keys: readonly number[]): Promise<void>;
  };
  readonly stats: {
    handOut(now: number): Promise<StatsRow>;
    /** Runs by status. */
    runs(): Promise<{ status: string; n: number }[]>;
  };
}

/** A durable home for runs. */
export interface Store {
  /** `sqlite:/path` or a URL without its password, for messages. */
  readonly description: string;
  /** The time that all processes on this store agree on: leases and timers are reckoned by it. */
  readonly clock: Clock;
  /** Brings the schema up to date; refuses one that this build does not understand. */
  migrate(): Promise<{ applied: readonly string[] }>;
  /** One transaction. Transactions of one store run one after another within a process. */
  write<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** A consistent view without the right to change anything. */
  read<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Changes whenever some process has committed; a cheap way to notice others. */
  changeMark(): Promise<number>;
  /** Tells other processes that there are messages to send. Best effort: they also look by themselves. */
  announce(): void;
  /** Calls back when another process has announced something; returns how to stop. */
  listen(onAnnounced: () => void): () => Promise<void>;
  /** Another way into the same store, for a loop that is not to wait for the others; it may be this one. */
  sibling(): Store;
  /** Copies a live store to a file. */
  backup(path: string): Promise<void>;
  close(): Promise<void>;
}
