/** An engine that moves only when a test says so: manual clock, seeded chance, no loops, a worker played by the test. */
import { join } from 'node:path';
import { ManualClock } from '../../src/base/clock.ts';
import { createLogger, type Logger } from '../../src/base/logger.ts';
import { checkWorkflowText, checkWorkflowValue, requireWorkflow } from '../../src/definition/load.ts';
import type { Workflow } from '../../src/definition/workflow.ts';
import type { TaskFailure } from '../../src/domain/failure.ts';
import type { LimitDefinition } from '../../src/domain/limits.ts';
import type { ClaimRequest } from '../../src/engine/claim.ts';
import { Engine, type StartRun } from '../../src/engine/engine.ts';
import type { EngineSource } from '../../src/engine/engine-source.ts';
import { BUILT_IN_HANDLERS } from '../../src/handlers/registry.ts';
import { FileBlobStore } from '../../src/stores/blobs/file-blob-store.ts';
import type { EventRow, RunRow, TaskRow } from '../../src/stores/rows.ts';
import type { Store } from '../../src/stores/store.ts';
import type { Lease, Question, Settlement, SettlementResult, Usage } from '../../src/worker/work-source.ts';
import type { OpenedStore, StoreKind } from '../conformance/stores.ts';

/** How long a lease lasts in tests, unless they say otherwise. */
export const LEASE_MS = 30_000;
const STEP_MS = 5_000;
const IDLE_TURNS_MAX = 5_000;
const EVERYTHING = 100_000;
const CALLER = { caller: 'test' } as const;

/** A failure that is worth another try. */
export const CRASHED: TaskFailure = { class: 'handler', code: 'HANDLER_THREW', message: 'it broke' };
/** A failure that is not. */
export const HOPELESS: TaskFailure = { class: 'handler', code: 'HANDLER_TERMINAL', message: 'no use' };

/** An event with its data read. */
export interface ReadEvent extends Omit<EventRow, 'data'> {
  readonly data: Readonly<Record<string, unknown>>;
}

/** What an engine under test is made with. */
export interface HarnessOptions {
  readonly clock?: ManualClock;
  readonly seed?: number;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly retentionMs?: number;
  readonly itemsChunk?: number;
  readonly itemsMax?: number;
  readonly limits?: Readonly<Record<string, LimitDefinition>>;
  readonly log?: (line: string) => void;
  /** A broker is configured: messages are written. */
  readonly hasBroker?: boolean;
}

export class Harness {
  readonly opened: OpenedStore;
  readonly clock: ManualClock;
  readonly blobs: FileBlobStore;
  readonly #options: HarnessOptions;
  store: Store;
  engine: Engine;
  source!: EngineSource;

  constructor(opened: OpenedStore, options: HarnessOptions = {}) {
    this.opened = opened;
    this.#options = options;
    this.clock = options.clock ?? new ManualClock();
    this.blobs = new FileBlobStore(join(opened.folder, 'blobs'));
    this.store = opened.store;
    this.engine = this.#newEngine();
  }

  /** A fresh store with an engine on it. */
  static async on(
    kind: StoreKind,
    options: HarnessOptions & { onStatement?: (name: string) => void; parent?: string } = {},
  ): Promise<Harness> {
    const { onStatement, parent } = options;
    const opened = await kind.open({
      ...(onStatement === undefined ? {} : { onStatement }),
      ...(parent === undefined ? {} : { parent }),
    });
    const harness = new Harness(opened, options);
    await harness.connect();
    return harness;
  }

  /** A worker of this process connects. */
  async connect(): Promise<void> {
    await this.engine.configureLimits();
    this.source = await this.newSource();
  }

  async newSource(
    options: { worker?: string; handlers?: readonly string[]; lease_ms?: number; run_key?: number } = {},
  ): Promise<EngineSource> {
    const handlers = ['transform', 'shell', 'http', 'llm', 'script'];
    return (await this.engine.source({ handlers, ...options })).source;
  }

  /** The process dies and another one takes over the store. */
  async restart(): Promise<void> {
    this.store = await this.opened.reopen();
    this.engine = this.#newEngine();
    await this.connect();
  }

  /** Another process on the same store, with the same clock. */
  async another(): Promise<Harness> {
    const store = await this.opened.another?.();
    if (store === undefined) throw new Error('this store cannot be opened twice');
    const other = new Harness({ ...this.opened, store }, { ...this.#options, clock: this.clock });
    await other.connect();
    return other;
  }

  close(): Promise<void> {
    return this.opened.close();
  }

  // ── Starting ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Starts a run of these tasks; `transform` is what a task uses unless it says otherwise. */
  async start(
    tasks: Readonly<Record<string, object>>,
    rest: Readonly<Record<string, unknown>> = {},
    start: Omit<StartRun, 'workflow'> = {},
  ): Promise<string> {
    const workflow = await canonical({ name: 'test', ...rest, tasks });
    return (await this.engine.startRun({ workflow, ...start }, CALLER)).id;
  }

  async startYaml(text: string, start: Omit<StartRun, 'workflow'> = {}): Promise<string> {
    const workflow = requireWorkflow(await checkWorkflowText(text, { handlers: BUILT_IN_HANDLERS }));
    return (await this.engine.startRun({ workflow, ...start }, CALLER)).id;
  }

  // ── Working ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Takes up to `limit` leases; never waits. */
  async claim(limit = 1, source: EngineSource = this.source): Promise<readonly Lease[]> {
    return (await source.next({ limit, settlements: [], signal: AbortSignal.abort() })).leases;
  }

  /** The one task that can be claimed, by name. */
  async claimOne(task_id?: string): Promise<Lease> {
    const [lease] = await this.claim(1);
    if (lease === undefined) throw new Error('nothing can be claimed');
    if (task_id !== undefined && lease.task_id !== task_id)
      throw new Error(`${lease.task_id} was claimed, not ${task_id}`);
    return lease;
  }

  /** Exactly `count` leases. */
  async claimAll<Count extends 1 | 2 | 3 | 4>(count: Count): Promise<Tuple<Count>> {
    const leases = await this.claim(count);
    if (leases.length !== count) throw new Error(`${leases.length} tasks could be claimed, not ${count}`);
    return leases as unknown as Tuple<Count>;
  }

  /** Claims without starting or with an id, which workers behind a server do. */
  async claimRows(
    request: Partial<ClaimRequest> & { settlements?: never } = {},
  ): Promise<readonly TaskRow[]> {
    const claim: ClaimRequest = {
      worker: 'far',
      limit: 1,
      queues: 'all',
      lease_ms: LEASE_MS,
      start: false,
      claim_id: null,
      run_key: null,
      probes: true,
      ...request,
    };
    const { leased } = await this.engine.context.committer.tick({ settlements: [], claim });
    return leased.map(({ task }) => ({ ...task }));
  }

  async settle(...settlements: readonly Settlement[]): Promise<readonly SettlementResult[]> {
    return (await this.source.next({ limit: 0, settlements, signal: AbortSignal.abort() })).results;
  }

  complete(lease: HasLease, output: unknown = 1, usage?: Usage): Promise<SettlementResult> {
    return this.#one({ kind: 'complete', lease_id: idOf(lease), output, ...(usage && { usage }) });
  }

  fail(lease: HasLease, failure: TaskFailure = CRASHED, usage?: Usage): Promise<SettlementResult> {
    return this.#one({ kind: 'fail', lease_id: idOf(lease), failure, ...(usage && { usage }) });
  }

  release(lease: HasLease, delay_ms?: number): Promise<SettlementResult> {
    return this.#one({ kind: 'release', lease_id: idOf(lease), ...(delay_ms !== undefined && { delay_ms }) });
  }

  pause(
    lease: HasLease,
    question: Question = { key: 'q', message: 'what now?' },
    status: 'BLOCKED' | 'WAITING_INPUT' = 'WAITING_INPUT',
  ): Promise<SettlementResult> {
    return this.#one({ kind: 'pause', lease_id: idOf(lease), status, question });
  }

  async beat(lease: HasLease, more: { progress?: number; message?: string; checkpoint?: unknown } = {}) {
    const [answer] = await this.source.extend([{ lease_id: idOf(lease), ...more }]);
    if (answer === undefined) throw new Error('a heartbeat has an answer');
    return answer;
  }

  // ── Time ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Turns the loops until they have nothing to do. */
  async idle(): Promise<void> {
    for (let turn = 0; turn < IDLE_TURNS_MAX; turn++) if ((await this.engine.runOnce()) === 0) return;
    throw new Error(`the engine is still busy after ${IDLE_TURNS_MAX} turns`);
  }

  /** Time passes while the loops turn, as it does in a healthy process. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= STEP_MS) {
      this.clock.advance(Math.min(left, STEP_MS));
      await this.idle();
    }
  }

  /** Time passes while nothing runs. */
  async leap(ms: number): Promise<void> {
    this.clock.advance(ms);
    await this.idle();
  }

  /** Completes whatever can be claimed until the run is over or stands still. */
  async finish(run_id: string, output: unknown = 1): Promise<RunRow> {
    for (let turn = 0; turn < EVERYTHING; turn++) {
      await this.idle();
      const leases = await this.claim(200);
      if (leases.length === 0) return this.run(run_id);
      await this.settle(...leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output }) as const));
    }
    throw new Error(`run ${run_id} does not end`);
  }

  // ── Looking ────────────────────────────────────────────────────────────────────────────────────────────────

  run(run_id: string): Promise<RunRow> {
    return this.store.read(async (tx) => {
      const run = await tx.runs.byId(run_id);
      if (run === null) throw new Error(`there is no run ${run_id}`);
      return run;
    });
  }

  tasks(run_id: string): Promise<TaskRow[]> {
    return this.store.read(async (tx) => {
      const run = await tx.runs.byId(run_id);
      return run === null ? [] : tx.tasks.ofRun(run.key, { after: 0, limit: EVERYTHING });
    });
  }

  async task(run_id: string, task_id: string): Promise<TaskRow> {
    const found = (await this.tasks(run_id)).find((task) => task.task_id === task_id);
    if (found === undefined) throw new Error(`run ${run_id} has no task ${task_id}`);
    return found;
  }

  /** Statuses by task id, items as `id[0]`, with the reason where there is one: `SKIPPED condition_false`. */
  async statuses(run_id: string): Promise<Record<string, string>> {
    const rows = await this.tasks(run_id);
    return Object.fromEntries(
      rows.map(({ task_id, map_index, status, reason }) => [
        map_index === null ? task_id : `${task_id}[${map_index}]`,
        reason === null ? status : `${status} ${reason}`,
      ]),
    );
  }

  async events(run_id: string, type?: string): Promise<ReadEvent[]> {
    const { key } = await this.run(run_id);
    const rows = await this.store.read((tx) =>
      tx.events.page({
        run_key: key,
        limit: EVERYTHING,
        ...(type !== undefined && { types: [type] }),
      }),
    );
    return rows.map((row) => ({ ...row, data: JSON.parse(row.data) as ReadEvent['data'] }));
  }

  /** Events of one task, oldest first. */
  async eventsOf(run_id: string, task_id: string): Promise<ReadEvent[]> {
    return (await this.events(run_id)).filter((event) => event.task_id === task_id);
  }

  async attempts(task: TaskRow) {
    return this.store.read((tx) => tx.attempts.ofTask(task.key));
  }

  async output(run_id: string, task_id: string): Promise<unknown> {
    const task = await this.task(run_id, task_id);
    return this.store.read((tx) => this.engine.context.scopes.output(tx, task));
  }

  #newEngine(): Engine {
    const { seed = 1, secrets = {}, log } = this.#options;
    return new Engine({
      store: this.store,
      blobs: this.blobs,
      handlers: BUILT_IN_HANDLERS,
      clock: this.clock,
      random: seededRandom(seed),
      logger: this.#logger(log),
      secret: (name) => secrets[name],
      env: () => undefined,
      leaseMs: LEASE_MS,
      retentionMs: this.#options.retentionMs,
      itemsChunk: this.#options.itemsChunk,
      itemsMax: this.#options.itemsMax,
      limits: this.#options.limits,
      onMessages: this.#options.hasBroker === true ? () => {} : undefined,
    });
  }

  #logger(log?: (line: string) => void): Logger {
    return createLogger({
      level: log === undefined ? 'silent' : 'debug',
      clock: this.clock,
      write: log ?? (() => {}),
    });
  }

  async #one(settlement: Settlement): Promise<SettlementResult> {
    const [result] = await this.settle(settlement);
    if (result === undefined) throw new Error('a settlement has a result');
    return result;
  }
}

type Tuple<Count> = Count extends 1
  ? [Lease]
  : Count extends 2
    ? [Lease, Lease]
    : Count extends 3
      ? [Lease, Lease, Lease]
      : [Lease, Lease, Lease, Lease];

type HasLease = Pick<Lease, 'lease_id'> | Pick<TaskRow, 'lease_id'>;

function idOf({ lease_id }: HasLease): string {
  if (lease_id === null) throw new Error('the task has no lease');
  return lease_id;
}

/** A value as a checked, canonical workflow. */
export async function canonical(value: Readonly<Record<string, unknown>>): Promise<Workflow> {
  const defaults = { uses: 'transform', with: { value: 1 } };
  return requireWorkflow(await checkWorkflowValue({ defaults, ...value }, { handlers: BUILT_IN_HANDLERS }));
}

/** Chance that can be repeated (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
