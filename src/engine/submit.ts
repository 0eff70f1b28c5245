/** Starting runs (SPEC S4.1) and adding tasks to open ones (S4.10): rows, edges and event in one transaction, roots move on at once. */
import { RelayError } from '../base/errors.ts';
import { newRunId, newTaskRunId } from '../base/ids.ts';
import type { TraceContext } from '../base/trace.ts';
import { hashWorkflow, type Task, type Workflow } from '../definition/workflow.ts';
import { isTerminal } from '../domain/states.ts';
import type { RunRow, TaskRow } from '../stores/rows.ts';
import type { Tx } from '../stores/store.ts';
import { advance, badEnd, becomeEligible } from './advance.ts';
import { newRunRow, newTaskRow } from './new-rows.ts';
import type { NamedTask } from './new-tasks.ts';
import type { Plan, PlannedTask } from './plan.ts';
import type { Plans } from './plans.ts';
import { OPEN_RUN_SETTINGS, type RunSettings, settingsOf } from './run-settings.ts';
import type { Work } from './work.ts';

/** What a run is started with, checked already. */
export interface NewRun {
  readonly workflow: Workflow;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly priority: number;
  readonly workdir: string | null;
  readonly cloned_from: string | null;
  /** The trace of whoever started it. */
  readonly trace?: TraceContext | undefined;
}

/** Stores a workflow unless its latest version is the same; gives the version to run. */
export async function storeVersion(tx: Tx, workflow: Workflow, now: number): Promise<number> {
  const hash = hashWorkflow(workflow);
  const latest = await tx.workflows.latest(workflow.name);
  if (latest !== null && latest.hash === hash) return latest.version;
  const version = (latest?.version ?? 0) + 1;
  const definition = JSON.stringify(workflow);
  await tx.workflows.insert({ name: workflow.name, version, hash, definition, created_at: now });
  return version;
}

/** Creates runs with all their tasks: one statement each for runs, tasks and edges, however many runs there are. */
export async function submit(work: Work, starts: readonly NewRun[], plans: Plans): Promise<RunRow[]> {
  const { tx, now } = work;
  const versions = new Map<string, number>();
  const batch: { run: RunRow; plan: Plan; tasks: TaskRow[] }[] = [];
  for (const start of starts) {
    const hash = hashWorkflow(start.workflow);
    const version = versions.get(hash) ?? (await storeVersion(tx, start.workflow, now));
    versions.set(hash, version);
    batch.push({ run: newRun(start, version, now), plan: plans.ensure(version, start.workflow), tasks: [] });
  }
  const keys = await tx.runs.insert(batch.map(({ run }) => run));
  for (const [index, { run }] of batch.entries()) run.key = keys[index] ?? 0;
  await insertTasks(tx, batch);
  for (const { run, tasks } of batch) {
    work.created(run, tasks);
    const { workflow_name: workflow, workflow_version } = run;
    work.runEvent(run, 'run.created', { workflow, workflow_version, tasks: tasks.length });
    for (const task of tasks) if (task.deps_remaining === 0) becomeEligible(work, task, false);
  }
  await advance(work);
  return batch.map(({ run }) => run);
}

function newRun(start: NewRun, version: number, now: number): RunRow {
  return newRunRow({
    id: newRunId(),
    workflow_name: start.workflow.name,
    workflow_version: version,
    settings: withTrace(settingsOf(start.workflow), start),
    inputs: JSON.stringify(start.inputs),
    labels: JSON.stringify({ ...start.workflow.labels, ...start.labels }),
    priority: start.priority,
    workdir: start.workdir,
    cloned_from: start.cloned_from,
    created_at: now,
    is_open: 0,
  });
}

function withTrace(settings: RunSettings, { trace }: Pick<NewRun, 'trace'>): RunSettings {
  return trace === undefined ? settings : { ...settings, trace };
}

async function insertTasks(
  tx: Tx,
  batch: readonly { run: RunRow; plan: Plan; tasks: TaskRow[] }[],
): Promise<void> {
  const queues = new Map<string, number>();
  for (const { run, plan, tasks } of batch) {
    for (const planned of plan.tasks.values()) {
      const queue_key = queues.get(planned.queue) ?? (await queueOf(tx, planned));
      queues.set(planned.queue, queue_key);
      const { needs } = planned.task;
      // Named twice counts once.
      const deps = needs.length < 2 ? needs.length : new Set(needs).size;
      tasks.push(newTaskRow({ id: newTaskRunId(), run, planned, queue_key, deps, spec: null }));
    }
  }
  const keys = await tx.tasks.insert(batch.flatMap(({ tasks }) => tasks));
  const edges: (readonly [number, number])[] = [];
  let index = 0;
  for (const { plan, tasks } of batch) {
    const keyOf = new Map<string, number>();
    for (const task of tasks) {
      task.key = keys[index++] ?? 0;
      keyOf.set(task.task_id, task.key);
    }
    for (const task of tasks) {
      for (const need of new Set(plan.tasks.get(task.task_id)?.task.needs))
        edges.push([keyOf.get(need) ?? 0, task.key]);
    }
  }
  await tx.tasks.link(edges);
}

/** The queue of a task, by handler and what it asks of a worker. */
async function queueOf(tx: Tx, planned: PlannedTask): Promise<number> {
  return tx.queues.ensure(planned.task.uses, JSON.stringify(planned.task.worker ?? {}));
}

/** Creates a run without a workflow, to which tasks are added one by one. */
export async function submitOpen(
  work: Work,
  start: Pick<NewRun, 'inputs' | 'labels' | 'priority' | 'workdir' | 'trace'> & {
    readonly auto_close: boolean;
  },
): Promise<RunRow> {
  const run = newRunRow({
    id: newRunId(),
    workflow_name: null,
    workflow_version: null,
    settings: withTrace(OPEN_RUN_SETTINGS, start),
    inputs: JSON.stringify(start.inputs),
    labels: JSON.stringify(start.labels),
    priority: start.priority,
    workdir: start.workdir,
    cloned_from: null,
    created_at: work.now,
    is_open: start.auto_close ? 0 : 1,
  });
  run.key = (await work.tx.runs.insert([run]))[0] ?? 0;
  work.created(run, []);
  work.runEvent(run, 'run.created', { open: true, auto_close: start.auto_close });
  return run;
}

/** Adds tasks to a run. Dependencies name tasks of the run, or others of the same call that come before. */
export async function enqueueTasks(
  work: Work,
  run: RunRow,
  list: readonly NamedTask[],
  plans: Plans,
): Promise<TaskRow[]> {
  if (isTerminal(run.status)) throw new RelayError('RUN_TERMINAL', `run ${run.id} is ${run.status}`);
  if (run.cancelled === 1) throw new RelayError('RUN_TERMINAL', `run ${run.id} is being cancelled`);
  await checkNewTasks(work, run, list);
  const created = await addTasks(work, run, list, plans);
  await advance(work);
  return created;
}

/** Refuses ids that the run has already and dependencies that it does not have; gives the rows that are named. */
export async function checkNewTasks(
  work: Work,
  run: RunRow,
  list: readonly NamedTask[],
): Promise<Map<string, TaskRow>> {
  const names = [...new Set(list.flatMap(({ id, task }) => [id, ...task.needs]))];
  const rows = await work.adopt(await work.tx.tasks.byTaskIds(run.key, names));
  const known = new Set(rows.map((row) => row.task_id));
  for (const { id, task } of list) {
    if (known.has(id))
      throw new RelayError('USAGE', `the run has a task \`${id}\` already`, { hint: 'choose another id' });
    const missing = task.needs.find((need) => !known.has(need));
    if (missing !== undefined)
      throw new RelayError('USAGE', `\`${id}\` needs \`${missing}\`, which the run does not have`);
    work.book.require(id, task.limits ?? []);
    known.add(id);
  }
  return new Map(rows.map((row) => [row.task_id, row]));
}

/** Adds tasks that were checked; what follows from it is for the caller to advance. */
export async function addTasks(
  work: Work,
  run: RunRow,
  list: readonly NamedTask[],
  plans: Plans,
): Promise<TaskRow[]> {
  // Parents that have still to tell their children will tell new ones too: for these they have not ended yet.
  const telling = run.n_cursors === 0 ? [] : await work.tx.cursors.ofRun(run.key);
  const unlocking = new Set(telling.filter(({ kind }) => kind === 'unlock').map(({ subject }) => subject));
  for (const { key } of work.ended) unlocking.add(key);
  const known = await checkNewTasks(work, run, list);
  const created: TaskRow[] = [];
  for (const { id, task } of list) {
    const parents = [...new Set(task.needs)].flatMap((need) => known.get(need) ?? []);
    const row = await insertOne(work, run, { id, task, parents, unlocking }, plans);
    known.set(id, row);
    created.push(row);
  }
  return created;
}

async function insertOne(
  work: Work,
  run: RunRow,
  entry: { id: string; task: Task; parents: readonly TaskRow[]; unlocking: ReadonlySet<number> },
  plans: Plans,
): Promise<TaskRow> {
  const planned = plans.single(entry.id, entry.task);
  const queue_key = await queueOf(work.tx, planned);
  const isOpen = ({ status, key }: TaskRow): boolean => !isTerminal(status) || entry.unlocking.has(key);
  const open = entry.parents.filter(isOpen);
  const ended = entry.parents.filter((parent) => !isOpen(parent));
  const spec = JSON.stringify(entry.task);
  const row = newTaskRow({ id: newTaskRunId(), run, planned, queue_key, deps: open.length, spec });
  row.deps_ok = ended.filter((parent) => parent.status === 'SUCCESS').length;
  row.key = (await work.tx.tasks.insert([row]))[0] ?? 0;
  await work.tx.tasks.link(entry.parents.map((parent) => [parent.key, row.key] as const));
  work.created(run, [row]);
  work.note(row, { event: 'task.enqueued' });
  const bad = ended.flatMap((parent) => badEnd(parent) ?? [])[0];
  if (bad !== undefined && row.is_finally === 0)
    work.move(row, 'SKIPPED', { event: 'task.skipped', reason: bad });
  else if (open.length === 0) becomeEligible(work, row, entry.parents.length > 0);
  return row;
}
