/** Terminal tasks go back to PENDING by a recorded action only: retry of a run, rerun from a task, replay of a dead task (SPEC S5.6, S5.7). */
import { RelayError } from '../base/errors.ts';
import { isTerminal } from '../domain/states.ts';
import type { RunRow, TaskRow } from '../stores/rows.ts';
import { advance, badEnd, becomeEligible } from './advance.ts';
import { beginItem } from './expand.ts';
import { awaitItem, isExpanded, retireItems } from './map-row.ts';
import { resetTask } from './reset-task.ts';
import { type BudgetChange, changeBudget } from './run-settings.ts';
import type { Work } from './work.ts';

const PAGE = 5_000;

/** Everything that did not succeed and was not skipped by its own condition starts again; outputs of the rest are kept. */
export async function retryRun(
  work: Work,
  run: RunRow,
  { by, budget }: { readonly by: string; readonly budget?: BudgetChange | undefined },
): Promise<number> {
  if (!isTerminal(run.status)) throw new RelayError('RUN_ACTIVE', `run ${run.id} is ${run.status}`);
  if (run.status === 'SUCCESS') throw new RelayError('NOT_RETRYABLE', `run ${run.id} has succeeded`);
  const tasks = await allTasks(work, run);
  const again = tasks.filter((task) => task.status !== 'SUCCESS' && !isSkippedByCondition(task));
  if (again.length === 0 && run.stop_reason !== 'outputs') {
    throw new RelayError('NOT_RETRYABLE', `no task of run ${run.id} can be retried`);
  }
  reopen(work, run);
  if (budget !== undefined) changeBudget(run, budget);
  work.runEvent(run, 'run.retried', { by, tasks: again.length, ...(budget === undefined ? {} : { budget }) });
  for (const task of again) resetTask(work, task, { attempts: true, gate: false, generation: false });
  await reconnect(work, again);
  return again.length;
}

/** The chosen task and everything below it runs again, conditions and gates included. */
export async function rerunFrom(work: Work, run: RunRow, task_id: string, by: string): Promise<number> {
  if (!isTerminal(run.status)) throw new RelayError('RUN_ACTIVE', `run ${run.id} is ${run.status}`);
  const tasks = await allTasks(work, run);
  const first = tasks.find((task) => task.task_id === task_id);
  if (first === undefined) throw new RelayError('NOT_FOUND', `run ${run.id} has no task \`${task_id}\``);
  const again = await withDescendants(work, [first]);
  reopen(work, run);
  work.runEvent(run, 'run.retried', { by, from_task: task_id, tasks: again.length });
  for (const task of again) rerunTask(work, task);
  await reconnect(work, again);
  return again.length;
}

/** Decided anew, the list of a map included; what is left of the old list is ended. */
function rerunTask(work: Work, task: TaskRow): void {
  if ((task.map_size ?? 0) > 0) retireItems(work, task);
  resetTask(work, task, { attempts: true, gate: true, generation: true });
}

/** A dead task and the descendants that were skipped because of it alone get another chance. */
export async function replayTask(
  work: Work,
  task: TaskRow,
  options: { resetAttempts: boolean; by: string },
): Promise<number> {
  if (task.status !== 'FAILED')
    throw new RelayError('NOT_RETRYABLE', `task ${task.task_id} is ${task.status}, not FAILED`);
  const run = work.runOf(task);
  if (!isTerminal(run.status) && (run.cancelled === 1 || run.stopping === 1 || run.n_cursors > 0))
    throw new RelayError('RUN_ACTIVE', `run ${run.id} is being stopped, or still tells tasks of an end`);
  const what = { attempts: options.resetAttempts, gate: false, generation: false };
  if (task.map_key !== null) return replayItem(work, task, what);
  const again = [task, ...(await skippedBelow(work, task))];
  if (isTerminal(run.status)) reopen(work, run);
  for (const row of again) resetTask(work, row, what);
  work.changeRun(run);
  await reconnect(work, again);
  return again.length;
}

/** Descendants that were skipped because of a task alone. */
async function skippedBelow(work: Work, task: TaskRow): Promise<TaskRow[]> {
  const below = (await withDescendants(work, [task])).filter(
    (row) => row !== task && row.reason === 'upstream_failed',
  );
  return withoutOtherBadParent(work, task, below);
}

/** An item gets another chance, and its map waits for it: for this one only, the others stay what they are. */
async function replayItem(work: Work, item: TaskRow, what: Parameters<typeof resetTask>[2]): Promise<number> {
  const map = work.mapOf(item);
  const run = work.runOf(item);
  requireReplayable(work, item, map);
  const isSuccess = map.status === 'SUCCESS';
  // What used the list of a map that had succeeded without the item has used a list that is about to change.
  const below = isSuccess
    ? (await withDescendants(work, [map])).filter((row) => row !== map)
    : await skippedBelow(work, map);
  if (isTerminal(run.status)) reopen(work, run);
  if (isTerminal(map.status)) resetTask(work, map, what);
  else work.note(map, { event: 'task.replayed', data: { item: item.map_index } });
  for (const row of below)
    if (isSuccess) rerunTask(work, row);
    else resetTask(work, row, what);
  resetTask(work, item, what);
  awaitItem(work, map);
  work.changeRun(run);
  await holdWaiting(work, [map]);
  beginItem(work, map, item);
  await reconnect(work, below);
  return 1 + below.length;
}

function requireReplayable(work: Work, item: TaskRow, map: TaskRow): void {
  const run = work.runOf(item);
  const isOld = item.generation !== map.generation;
  if (isOld || (isTerminal(map.status) && map.deps_remaining > 0)) {
    const why = isOld ? 'is of an earlier list' : 'is of a list whose items were not all made';
    throw new RelayError('NOT_RETRYABLE', `item ${item.map_index} of \`${item.task_id}\` ${why}`, {
      hint: `retry or rerun run ${run.id} instead`,
    });
  }
  const isBusy =
    map.status === 'SUCCESS' ? !isTerminal(run.status) : !isTerminal(map.status) && !isExpanded(map);
  if (isBusy)
    throw new RelayError('RUN_ACTIVE', `run ${run.id} is ${run.status}; replay the item when it has ended`);
}

/** A descendant whose other parents ended badly by themselves would only be skipped again. */
async function withoutOtherBadParent(
  work: Work,
  task: TaskRow,
  below: readonly TaskRow[],
): Promise<TaskRow[]> {
  const edges = await work.tx.tasks.parentsOf(below.map((row) => row.key));
  const parents = new Map((await work.tasks(edges.map((edge) => edge.parent))).map((row) => [row.key, row]));
  const kept = new Set<number>([task.key]);
  const parentsOf = new Map<number, TaskRow[]>(below.map((row) => [row.key, []]));
  for (const { parent, child } of edges) parentsOf.get(child)?.push(...[parents.get(parent) ?? []].flat());
  // A workflow may name children before their parents, so passes go on until nothing is added.
  for (let before = 0; before !== kept.size; ) {
    before = kept.size;
    for (const row of below) {
      const own = parentsOf.get(row.key) ?? [];
      if (own.every((parent) => kept.has(parent.key) || badEnd(parent) === null)) kept.add(row.key);
    }
  }
  return below.filter((row) => kept.has(row.key));
}

function isSkippedByCondition(task: TaskRow): boolean {
  return task.status === 'SKIPPED' && badEnd(task) === null;
}

function reopen(work: Work, run: RunRow): void {
  run.stopping = 0;
  run.cancelled = 0;
  run.paused = 0;
  run.stop_reason = null;
  run.outputs = null;
  run.error = null;
  run.active_ms = 0;
  run.active_since = null;
  work.changeRun(run);
}

/** Counts parents afresh and lets those that wait for nothing move on. */
async function reconnect(work: Work, tasks: readonly TaskRow[]): Promise<void> {
  const edges = await work.tx.tasks.parentsOf(tasks.map((task) => task.key));
  const parents = new Map((await work.tasks(edges.map((edge) => edge.parent))).map((row) => [row.key, row]));
  const ownParents = new Map<number, TaskRow[]>();
  for (const { parent, child } of edges) {
    const row = parents.get(parent);
    if (row === undefined) continue;
    const list = ownParents.get(child);
    if (list === undefined) ownParents.set(child, [row]);
    else list.push(row);
  }
  for (const task of tasks) {
    const own = ownParents.get(task.key) ?? [];
    task.deps_remaining = own.filter((parent) => !isTerminal(parent.status)).length;
    task.deps_ok = own.filter((parent) => parent.status === 'SUCCESS').length;
  }
  await holdWaiting(work, tasks);
  // A reset task is PENDING by now; moving one on may not change what the others have counted.
  work.ended = [];
  for (const task of tasks) {
    const own = ownParents.get(task.key) ?? [];
    const bad = own.flatMap((parent) => badEnd(parent) ?? [])[0];
    if (bad !== undefined && task.is_finally === 0)
      work.move(task, 'SKIPPED', { event: 'task.skipped', reason: bad });
    else if (task.deps_remaining === 0) becomeEligible(work, task, own.length > 0);
  }
  await advance(work);
}

/** Children that were told of an end which is undone now wait for that parent again; else it would be counted twice (I15). */
async function holdWaiting(work: Work, tasks: readonly TaskRow[]): Promise<void> {
  const keys = tasks.map((task) => task.key);
  const below = await work.tx.tasks.childrenOf(keys, { after: 0, limit: Number.MAX_SAFE_INTEGER });
  const again = new Set(keys);
  const waiting = (await work.tasks(below.map((edge) => edge.child))).filter(
    (child) => child.status === 'PENDING' && !isExpanded(child) && !again.has(child.key),
  );
  const edges = await work.tx.tasks.parentsOf(waiting.map((child) => child.key));
  const parents = new Map((await work.tasks(edges.map((edge) => edge.parent))).map((row) => [row.key, row]));
  for (const child of waiting) {
    const own = edges.filter((edge) => edge.child === child.key).map((edge) => parents.get(edge.parent));
    child.deps_remaining = own.filter((parent) => parent && !isTerminal(parent.status)).length;
    child.deps_ok = own.filter((parent) => parent?.status === 'SUCCESS').length;
    child.undecided = 0;
    work.change(child);
  }
}

/** Items follow their maps, so they are left out. */
async function allTasks(work: Work, run: RunRow): Promise<TaskRow[]> {
  const tasks: TaskRow[] = [];
  for (let after = 0; ; ) {
    const page = await work.adopt(await work.tx.tasks.nodesOf(run.key, { after, limit: PAGE }));
    tasks.push(...page);
    if (page.length < PAGE) return tasks;
    after = page.at(-1)?.key ?? after;
  }
}

async function withDescendants(work: Work, roots: readonly TaskRow[]): Promise<TaskRow[]> {
  const found = new Map(roots.map((task) => [task.key, task]));
  let frontier = [...found.keys()];
  while (frontier.length > 0) {
    const edges = await work.tx.tasks.childrenOf(frontier, { after: 0, limit: Number.MAX_SAFE_INTEGER });
    const fresh = [...new Set(edges.map((edge) => edge.child))].filter((key) => !found.has(key));
    for (const task of await work.tasks(fresh)) found.set(task.key, task);
    frontier = fresh;
  }
  return [...found.values()];
}
