/** Terminal tasks go back to PENDING by a recorded action only: retry of a run, rerun from a task, replay of a dead task (SPEC S5.6, S5.7). */
import { RelayError } from '../base/errors.ts';
import { isTerminal } from '../domain/states.ts';
import type { RunRow, TaskRow } from '../stores/rows.ts';
import { advance, badEnd, becomeEligible } from './advance.ts';
import type { Work } from './work.ts';

const PAGE = 5_000;

/** Everything that did not succeed and was not skipped by its own condition starts again; outputs of the rest are kept. */
export async function retryRun(work: Work, run: RunRow, by: string): Promise<number> {
  if (!isTerminal(run.status)) throw new RelayError('RUN_ACTIVE', `run ${run.id} is ${run.status}`);
  if (run.status === 'SUCCESS') throw new RelayError('NOT_RETRYABLE', `run ${run.id} has succeeded`);
  const tasks = await allTasks(work, run);
  const again = tasks.filter((task) => task.status !== 'SUCCESS' && !isSkippedByCondition(task));
  if (again.length === 0 && run.stop_reason !== 'outputs') {
    throw new RelayError('NOT_RETRYABLE', `no task of run ${run.id} can be retried`);
  }
  reopen(work, run);
  work.runEvent(run, 'run.retried', { by, tasks: again.length });
  for (const task of again) reset(work, task, { attempts: true, gate: false, generation: false });
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
  for (const task of again) reset(work, task, { attempts: true, gate: true, generation: true });
  await reconnect(work, again);
  return again.length;
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
  const below = (await withDescendants(work, [task])).filter(
    (row) => row !== task && row.reason === 'upstream_failed',
  );
  const again = [task, ...(await withoutOtherBadParent(work, task, below))];
  if (isTerminal(run.status)) reopen(work, run);
  else if (run.cancelled === 1 || run.stopping === 1 || run.n_cursors > 0)
    throw new RelayError('RUN_ACTIVE', `run ${run.id} is being stopped, or still tells tasks of an end`);
  for (const row of again)
    reset(work, row, { attempts: options.resetAttempts, gate: false, generation: false });
  work.changeRun(run);
  await reconnect(work, again);
  return again.length;
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

function reset(
  work: Work,
  task: TaskRow,
  what: { attempts: boolean; gate: boolean; generation: boolean },
): void {
  work.move(task, 'PENDING', { event: 'task.replayed', by: 'operator' });
  if (what.attempts) {
    task.attempts_spent = 0;
    task.losses = 0;
    task.releases = 0;
    task.unstarted = 0;
  }
  if (what.gate) task.gate = null;
  if (what.generation) {
    task.generation += 1;
    task.checkpoint = null;
  }
  if (what.gate) task.answers = null;
  task.question = null;
  task.question_id = null;
  task.error = null;
  task.output_attempt = null;
  task.finished_at = null;
  task.started_at = null;
  task.not_before = null;
  task.progress = null;
  task.message = null;
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
    (child) => child.status === 'PENDING' && !again.has(child.key),
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

async function allTasks(work: Work, run: RunRow): Promise<TaskRow[]> {
  const tasks: TaskRow[] = [];
  for (let after = 0; ; ) {
    const page = await work.adopt(await work.tx.tasks.ofRun(run.key, { after, limit: PAGE }));
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
