/**
 * The promises of DESIGN (I1–I8, I15) as a naive recount: everything is worked out again from rows, edges and events, with
 * no help from the engine, and compared with what the store says. Works on every store: it uses the contract only.
 */
import type {
  ArtifactRow,
  AttemptRow,
  CursorRow,
  EventRow,
  RunRow,
  TaskRow,
  TimerRow,
} from '../../src/stores/rows.ts';
import type { ClaimableRow, Store, Tx } from '../../src/stores/store.ts';
import { brokenHolds, isHeldBack } from './limit-invariants.ts';
import { checkMap, isExpanded, isHeld } from './map-invariants.ts';

const EVERYTHING = 1_000_000;
const TERMINAL = new Set(['SUCCESS', 'FAILED', 'CANCELLED', 'SKIPPED']);
const LEASED = new Set(['LEASED', 'RUNNING']);
const MOVING = new Set(['READY', 'QUEUED', 'LEASED', 'RUNNING']);
const ASKING = new Set(['BLOCKED', 'WAITING_INPUT']);

/** Everything that the store knows about one run. */
export interface Picture {
  readonly run: RunRow;
  readonly tasks: readonly TaskRow[];
  readonly parents: ReadonlyMap<number, readonly TaskRow[]>;
  readonly claimable: readonly ClaimableRow[];
  readonly timers: readonly TimerRow[];
  readonly cursors: readonly CursorRow[];
  readonly attempts: ReadonlyMap<number, readonly AttemptRow[]>;
  readonly artifacts: ReadonlyMap<number, readonly ArtifactRow[]>;
  readonly events: readonly EventRow[];
  /** `max_parallel` of the tasks that have one, by task id. */
  readonly maxParallel: ReadonlyMap<string, number>;
}

/** Everything that is wrong with a run, in words; nothing when all is well. */
export async function brokenPromises(store: Store, run_id: string): Promise<string[]> {
  return store.read(async (tx) => {
    const run = await tx.runs.byId(run_id);
    if (run === null) return [`there is no run ${run_id}`];
    const picture = await paint(tx, run);
    const limbo = (await tx.tasks.limbo(10)).filter((task) => task.run_key === run.key);
    return [
      ...limbo.map((task) => `I6 ${show(task)} is in limbo`),
      ...checkCounters(picture),
      ...checkStatus(picture),
      ...picture.tasks.flatMap((task) => [
        ...checkLease(task),
        ...checkQueue(picture, task),
        ...checkParents(picture, task),
        ...checkOutput(picture, task),
        ...checkAttempts(picture, task),
        ...checkEvents(picture, task),
        ...checkMap(picture, task),
      ]),
      ...(await brokenHolds(tx, run, picture.tasks)),
      ...checkRunEvents(picture),
      ...checkUsage(picture),
    ];
  });
}

/** With a broker to which nothing is sent: a message for every QUEUED task that a worker is to do, and for no other (I9). */
export async function brokenMessages(store: Store, run_id: string): Promise<string[]> {
  return store.read(async (tx) => {
    const run = await tx.runs.byId(run_id);
    const tasks = run === null ? [] : await tx.tasks.ofRun(run.key, { after: 0, limit: EVERYTHING });
    const messages = (await tx.outbox.list({ after: 0, limit: EVERYTHING })).filter(
      (message) => message.run_id === run_id,
    );
    return tasks.flatMap((task) => {
      const message = messages.find(({ task_run_id }) => task_run_id === task.id);
      if (task.status !== 'QUEUED')
        return message === undefined ? [] : [`I9 ${show(task)} is told of and not QUEUED`];
      // A wait is QUEUED until its time and needs no worker.
      if (message === undefined) return task.in_queue === 0 ? [] : [`I9 ${show(task)} is not told of`];
      const isRight = message.attempt === task.attempt + 1;
      return isRight ? [] : [`I9 ${show(task)} is told of for attempt ${message.attempt}`];
    });
  });
}

async function paint(tx: Tx, run: RunRow): Promise<Picture> {
  const tasks = await tx.tasks.ofRun(run.key, { after: 0, limit: EVERYTHING });
  const byKey = new Map(tasks.map((task) => [task.key, task]));
  const edges = await tx.tasks.parentsOf(tasks.map((task) => task.key));
  const parents = new Map<number, TaskRow[]>(tasks.map((task) => [task.key, []]));
  for (const { parent, child } of edges) parents.get(child)?.push(...[byKey.get(parent) ?? []].flat());
  const attempts = new Map<number, AttemptRow[]>();
  const artifacts = new Map<number, ArtifactRow[]>();
  for (const { key } of tasks) {
    attempts.set(key, await tx.attempts.ofTask(key));
    artifacts.set(key, await tx.artifacts.ofTask(key));
  }
  return {
    run,
    tasks,
    parents,
    attempts,
    artifacts,
    claimable: (await tx.claimable.peek('all', EVERYTHING)).filter((row) => row.run_key === run.key),
    timers: (await tx.timers.due(Number.MAX_SAFE_INTEGER, EVERYTHING)).filter(
      (row) => row.kind === 'run_timeout' || byKey.has(row.subject),
    ),
    cursors: await tx.cursors.ofRun(run.key),
    events: await tx.events.page({ run_key: run.key, limit: EVERYTHING }),
    maxParallel: await readMaxParallel(tx, run),
  };
}

async function readMaxParallel(tx: Tx, run: RunRow): Promise<Map<string, number>> {
  if (run.workflow_name === null || run.workflow_version === null) return new Map();
  const row = await tx.workflows.get(run.workflow_name, run.workflow_version);
  const { tasks } = JSON.parse(row?.definition ?? '{"tasks":{}}') as {
    tasks: Record<string, { max_parallel?: number }>;
  };
  return new Map(
    Object.entries(tasks).flatMap(([id, task]) => (task.max_parallel ? [[id, task.max_parallel]] : [])),
  );
}

function checkCounters({ run, tasks, claimable, cursors }: Picture): string[] {
  const count = (fits: (task: TaskRow) => boolean): number => tasks.filter(fits).length;
  const is = (...statuses: string[]) => count((task) => statuses.includes(task.status));
  const recount = {
    n_pending: is('PENDING'),
    n_moving: count((task) => MOVING.has(task.status)),
    n_waiting: count((task) => ASKING.has(task.status)),
    n_success: is('SUCCESS'),
    n_failed: count((task) => task.status === 'FAILED' && task.is_tolerated === 0),
    n_tolerated: count((task) => task.status === 'FAILED' && task.is_tolerated === 1),
    n_cancelled: is('CANCELLED'),
    n_skipped: is('SKIPPED'),
    n_ready: count((task) => task.status === 'READY' && !isHeld(task) && !isHeldBack(task)),
    n_queued: claimable.length,
    n_leased: count((task) => LEASED.has(task.status)),
    n_cursors: cursors.length,
  };
  return Object.entries(recount)
    .filter(([name, value]) => run[name as keyof typeof recount] !== value)
    .map(([name, value]) => `counter ${name} is ${run[name as keyof typeof recount]}, recounted ${value}`);
}

function checkStatus({ run, tasks, cursors }: Picture): string[] {
  const expected = naiveStatus(run, tasks, cursors.length);
  const hasOutputs = (JSON.parse(run.settings) as { has_outputs: boolean }).has_outputs;
  const isOver = TERMINAL.has(expected);
  const mustFinish = isOver && expected !== 'CANCELLED' && hasOutputs && run.outputs === null;
  const status = mustFinish ? 'RUNNING' : expected;
  return [
    ...(run.status === status ? [] : [`run status is ${run.status}, recounted ${status}`]),
    ...(run.finishing === (mustFinish ? 1 : 0) ? [] : [`run finishing is ${run.finishing}`]),
    ...(TERMINAL.has(run.status) === (run.finished_at !== null)
      ? []
      : ['finished_at does not fit the status']),
    ...((run.status === 'RUNNING') === (run.active_since !== null)
      ? []
      : ['active_since does not fit the status']),
  ];
}

/** SPEC S3.3, written once more from the text. */
function naiveStatus(run: RunRow, tasks: readonly TaskRow[], cursors: number): string {
  const has = (statuses: ReadonlySet<string>) => tasks.some((task) => statuses.has(task.status));
  if (cursors > 0 || tasks.some((task) => !TERMINAL.has(task.status))) {
    if (run.paused === 1 && !has(LEASED)) return 'WAITING';
    if (has(MOVING) || cursors > 0) return 'RUNNING';
    return has(ASKING) ? 'WAITING' : 'RUNNING';
  }
  if (run.cancelled === 1) return 'CANCELLED';
  if (run.stop_reason !== null) return 'FAILED';
  if (tasks.length === 0) return 'PENDING';
  if (run.is_open === 1) return 'WAITING';
  if (tasks.some((task) => task.status === 'FAILED' && task.is_tolerated === 0)) return 'FAILED';
  return tasks.every((task) => task.status === 'CANCELLED') ? 'CANCELLED' : 'SUCCESS';
}

function checkLease(task: TaskRow): string[] {
  const columns = [task.lease_id, task.leased_by, task.lease_expires_at, task.lease_ms, task.deadline_at];
  const set = columns.filter((value) => value !== null).length;
  const isRight = LEASED.has(task.status) ? set === columns.length : set === 0 && task.claim_id === null;
  return isRight ? [] : [`I1 ${show(task)} has the lease columns ${JSON.stringify(columns)}`];
}

function checkQueue({ run, claimable, timers }: Picture, task: TaskRow): string[] {
  const rows = claimable.filter((row) => row.task_key === task.key);
  const problems: string[] = [];
  const isIn = task.status === 'QUEUED' && task.in_queue === 1;
  if (rows.length !== (isIn ? 1 : 0)) problems.push(`${show(task)} stands ${rows.length} times in claimable`);
  if (task.in_queue === 1 && task.status !== 'QUEUED')
    problems.push(`${show(task)} is marked as in the queue`);
  if (rows.some((row) => row.rank !== -task.priority || row.queue_key !== task.queue_key))
    problems.push(`${show(task)} stands in claimable with another place`);
  if (task.status === 'QUEUED' && task.in_queue === 0) {
    const has = timers.some(
      ({ subject, due_at, kind }) =>
        subject === task.key && due_at === task.not_before && (kind === 'retry' || kind === 'wait'),
    );
    if (!has) problems.push(`I6 ${show(task)} is delayed without a timer`);
  }
  if (ASKING.has(task.status) !== (task.question_id !== null))
    problems.push(`${show(task)} has the question ${task.question_id}`);
  if (ASKING.has(task.status)) {
    const { timeout_at = null } = JSON.parse(task.question ?? '{}') as { timeout_at?: number | null };
    const has = timers.some(
      ({ subject, due_at, kind }) => subject === task.key && due_at === timeout_at && kind === 'question',
    );
    if (timeout_at !== null && !has)
      problems.push(`I6 ${show(task)} asks with a timeout but without a timer`);
  }
  const { max_parallel, window } = JSON.parse(run.settings) as {
    max_parallel: number | null;
    window: number;
  };
  const isFull =
    run.n_queued >= window || (max_parallel !== null && run.n_queued + run.n_leased >= max_parallel);
  if (task.status === 'READY' && !isHeld(task) && !isHeldBack(task) && run.paused === 0 && !isFull)
    problems.push(`I6 ${show(task)} waits although there is room`);
  if (max_parallel !== null && run.n_queued + run.n_leased > max_parallel)
    problems.push(`max_parallel ${max_parallel} is exceeded: ${run.n_queued} queued, ${run.n_leased} leased`);
  if (!TERMINAL.has(task.status) && !LEASED.has(task.status) && task.waiting_for === null)
    problems.push(`S3.5 ${show(task)} does not say what it waits for`);
  return problems;
}

function checkParents({ parents, cursors }: Picture, task: TaskRow): string[] {
  if (task.status !== 'PENDING') return task.undecided === 0 ? [] : [`${show(task)} is undecided`];
  if (isExpanded(task)) return [];
  const own = parents.get(task.key) ?? [];
  const told = own.filter(
    (parent) =>
      TERMINAL.has(parent.status) &&
      !cursors.some(
        ({ kind, subject, position }) => kind === 'unlock' && subject === parent.key && position < task.key,
      ),
  );
  const problems: string[] = [];
  const left = own.length - told.length;
  if (task.deps_remaining !== left)
    problems.push(`I15 ${show(task)} waits for ${task.deps_remaining} parents, recounted ${left}`);
  const ok = told.filter((parent) => parent.status === 'SUCCESS').length;
  if (task.deps_ok !== ok)
    problems.push(`I15 ${show(task)} has ${task.deps_ok} good parents, recounted ${ok}`);
  if ((task.undecided === 1) !== (left === 0))
    problems.push(`I6 ${show(task)} undecided is ${task.undecided}`);
  if (task.is_finally === 0 && told.some(endedBadly))
    problems.push(`I6 ${show(task)} has a parent that ended badly`);
  return problems;
}

function endedBadly({ status, reason, is_tolerated }: TaskRow): boolean {
  if (status === 'FAILED') return is_tolerated === 0;
  return (
    status === 'CANCELLED' || (status === 'SKIPPED' && /^upstream_(failed|cancelled)$/.test(reason ?? ''))
  );
}

function checkOutput({ artifacts }: Picture, task: TaskRow): string[] {
  if (task.status !== 'SUCCESS')
    return task.output_attempt === null ? [] : [`I3 ${show(task)} has an output`];
  const found = (artifacts.get(task.key) ?? []).filter(
    (row) => row.ordinal === 0 && row.attempt === task.output_attempt,
  );
  return found.length === 1 ? [] : [`I3 ${show(task)} has ${found.length} outputs`];
}

function checkAttempts({ attempts }: Picture, task: TaskRow): string[] {
  const rows = attempts.get(task.key) ?? [];
  const problems: string[] = [];
  const numbers = rows.map((row) => row.attempt);
  const ended = LEASED.has(task.status) ? task.attempt - 1 : task.attempt;
  if (rows.length > 0 && numbers.join() !== Array.from({ length: ended }, (_, index) => index + 1).join())
    problems.push(`I8 ${show(task)} at attempt ${task.attempt} has recorded ${numbers.join()}`);
  const count = (outcome: string) => rows.filter((row) => row.outcome === outcome).length;
  if (task.attempts_spent > count('fail'))
    problems.push(`I8 ${show(task)} spent ${task.attempts_spent} attempts`);
  if (task.losses > count('expired')) problems.push(`I8 ${show(task)} has ${task.losses} losses`);
  return problems;
}

/** One event per version, without a gap; each goes on where the last one stopped (I2, I4). */
function checkEvents({ events }: Picture, task: TaskRow): string[] {
  const problems: string[] = [];
  let status = 'PENDING';
  let version = 0;
  for (const event of events) {
    if (event.task_run_id !== task.id) continue;
    const data = JSON.parse(event.data) as { from: string; to: string; via?: string[]; version: number };
    version += 1;
    if (data.version !== version)
      problems.push(`I4 ${show(task)} has event ${event.type} ${data.version}, not ${version}`);
    if (data.from !== status)
      problems.push(`I4 ${show(task)}: ${event.type} goes on from ${data.from}, not ${status}`);
    if (
      TERMINAL.has(data.from) &&
      data.to !== data.from &&
      ![...(data.via ?? []), data.to].includes('PENDING')
    )
      problems.push(`I2 ${show(task)}: ${event.type} leaves ${data.from} for ${data.to}`);
    status = data.to;
  }
  if (task.version !== version)
    problems.push(`I4 ${show(task)} is at version ${task.version} with ${version} events`);
  if (task.status !== status)
    problems.push(`I4 ${show(task)} is ${task.status}, its events end at ${status}`);
  return problems;
}

function checkRunEvents({ run, events }: Picture): string[] {
  const own = events
    .filter((event) => event.task_run_id === null)
    .map(({ type, data }) => ({
      type,
      data: JSON.parse(data) as { version: number; to?: string },
    }));
  const versions = own.map(({ data }) => data.version).join();
  const expected = Array.from({ length: run.version }, (_, index) => index + 1).join();
  const created = own.filter(({ type }) => type === 'run.created').length;
  const last = own.findLast(({ type }) => type === 'run.status.changed')?.data.to ?? 'PENDING';
  return [
    ...(versions === expected ? [] : [`I4 the run at version ${run.version} has events ${versions}`]),
    ...(created === 1 ? [] : [`run.created was said ${created} times`]),
    ...(last === run.status ? [] : [`the run is ${run.status}, its events end at ${last}`]),
  ];
}

/** What attempts used is in the sum once, however often it was reported (SPEC S4.5). */
function checkUsage({ run, attempts }: Picture): string[] {
  const tokens = (usage: string | null): number =>
    usage === null ? 0 : ((JSON.parse(usage) as { tokens_in?: number }).tokens_in ?? 0);
  const sum = [...attempts.values()].flat().reduce((total, row) => total + tokens(row.usage), 0);
  return tokens(run.usage) === sum ? [] : [`the run used ${tokens(run.usage)} tokens, its attempts ${sum}`];
}

function show(task: TaskRow): string {
  return `${task.task_id} (${task.status}${task.reason === null ? '' : ` ${task.reason}`})`;
}
