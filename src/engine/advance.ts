/**
 * What follows from tasks that have ended: children are told, skipped or made ready, the policy of a failure is applied, and
 * READY tasks move up where there is room. Large fans go on in chunks behind a durable cursor (SPEC S4.6, S5.5).
 */
import type { CursorRow, RunRow, TaskRow } from '../stores/rows.ts';
import { wakeForBudget } from './budget.ts';
import { placeOf } from './limit-admission.ts';
import { countItem, isExpanded, openItems } from './map-row.ts';
import { CHUNK, fewOf, hasFew } from './run-counters.ts';
import { runSettings } from './run-settings.ts';
import type { Cause } from './task-events.ts';
import { isHeldBack } from './task-limits.ts';
import { isHeld, type Work } from './work.ts';

/** Edges that one transaction follows at once before large parents are taken one by one. */
const EDGES_MAX = 2 * CHUNK;

/** Follows every consequence to its end: children, cascades of skips, stopped runs, room for READY tasks. */
export async function advance(work: Work): Promise<void> {
  while (work.ended.length > 0 || work.failedRuns.size > 0) {
    while (work.ended.length > 0) await tellChildren(work);
    await applyFailurePolicy(work);
  }
  for (const run of work.freedBudgets) await wakeForBudget(work, run);
  work.freedBudgets.clear();
  await admit(work);
}

async function tellChildren(work: Work): Promise<void> {
  const ended = new Map<number, TaskRow>();
  const all = work.ended;
  work.ended = [];
  // An item has no children: its map is told.
  for (const task of all) if (task.map_key === null) ended.set(task.key, task);
  for (const task of all) if (task.map_key !== null) countItem(work, task);
  if (ended.size === 0) return;
  const edges = await work.tx.tasks.childrenOf([...ended.keys()], { after: 0, limit: EDGES_MAX + 1 });
  if (edges.length <= EDGES_MAX) {
    await tell(work, ended, edges);
    return;
  }
  for (const parent of ended.values()) {
    const own = await work.tx.tasks.childrenOf([parent.key], { after: 0, limit: CHUNK + 1 });
    await tellChunk(work, parent, own);
  }
}

/** Tells up to a chunk of children; what is left waits behind a cursor. */
async function tellChunk(work: Work, parent: TaskRow, edges: readonly Edge[]): Promise<void> {
  const now = edges.slice(0, CHUNK);
  const run = work.runOf(parent);
  const before = run.n_ready + run.n_queued;
  await tell(work, new Map([[parent.key, parent]]), now);
  if (edges.length > CHUNK) {
    const position = now.at(-1)?.child ?? 0;
    // Children that wait for other parents, or for a decision, take no room: there is nothing to hold them back for.
    const data = run.n_ready + run.n_queued > before ? await pace(work, parent) : null;
    work.addCursor({ kind: 'unlock', run_key: parent.run_key, subject: parent.key, position, data });
  }
}

/**
 * Children that would only wait as READY stay PENDING behind the cursor until the run has handed out most of what it has: they then
 * take both steps at once. Where priorities differ all must be known, so that the highest can go first.
 */
async function pace(work: Work, parent: TaskRow): Promise<string | null> {
  if (badEnd(parent) !== null) return null;
  const priorities = await work.tx.tasks.prioritiesBelow(parent.key, 2);
  return priorities.length > 1 ? null : String(fewOf(work.runOf(parent)));
}

interface Edge {
  readonly parent: number;
  readonly child: number;
}

/** Goes on with an unlock; returns where the cursor stands now, or null when it is done. */
export async function continueUnlock(
  work: Work,
  parent: TaskRow,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<number | null> {
  const edges = await work.tx.tasks.childrenOf([parent.key], { after, limit: limit + 1 });
  const now = edges.slice(0, limit);
  await tell(work, new Map([[parent.key, parent]]), now);
  return edges.length > limit ? (now.at(-1)?.child ?? after) : null;
}

/**
 * A claim that found too little goes on with an unlock that waits in one of its runs, so that children are handed out in the
 * transaction that unlocks them. Tells whether there was one.
 */
export async function unlockMore(work: Work, wanted: number): Promise<boolean> {
  for (const run of work.loadedRuns()) {
    if (run.n_cursors === 0 || run.paused + run.stopping + run.cancelled > 0 || !hasFew(run)) continue;
    const stored = await work.tx.cursors.ofRun(run.key);
    const cursor = stored.find(({ data }) => data !== null);
    if (cursor === undefined) continue;
    const [parent] = await work.tasks([cursor.subject]);
    const page = { after: cursor.position, limit: Math.min(wanted, CHUNK) };
    await moveCursor(work, cursor, parent === undefined ? null : await continueUnlock(work, parent, page));
    await advance(work);
    return true;
  }
  return false;
}

/** A cursor stands somewhere else now, or, with null, is done. */
export async function moveCursor(work: Work, { key, run_key }: CursorRow, to: number | null): Promise<void> {
  if (to !== null) {
    await work.tx.cursors.move(key, to);
    return;
  }
  await work.tx.cursors.remove([key]);
  for (const run of await work.runs([run_key])) {
    run.n_cursors -= 1;
    work.changeRun(run);
  }
}

async function tell(
  work: Work,
  parents: ReadonlyMap<number, TaskRow>,
  edges: readonly Edge[],
): Promise<void> {
  if (edges.length === 0) return;
  const children = new Map(
    (await work.tasks(edges.map((edge) => edge.child))).map((task) => [task.key, task]),
  );
  for (const { parent, child } of edges) {
    const task = children.get(child);
    const source = parents.get(parent);
    if (task !== undefined && source !== undefined) tellChild(work, source, task);
  }
}

function tellChild(work: Work, parent: TaskRow, child: TaskRow): void {
  if (child.status !== 'PENDING' || isExpanded(child)) return;
  const bad = badEnd(parent);
  if (bad !== null && child.is_finally === 0) {
    const run = work.runOf(child);
    // What a stop or cancel has not reached yet is cancelled by it, not skipped because of a neighbour it took first.
    if (parent.status === 'CANCELLED' && (run.cancelled === 1 || run.stopping === 1)) {
      cancelTask(work, child, stopReasonOf(run));
      return;
    }
    work.move(child, 'SKIPPED', { event: 'task.skipped', reason: bad, data: { because_of: parent.task_id } });
    return;
  }
  child.deps_remaining -= 1;
  if (parent.status === 'SUCCESS') child.deps_ok += 1;
  work.change(child);
  if (child.deps_remaining === 0) becomeEligible(work, child, true);
}

/** Why a parent's end keeps a child from running, or null when it does not (TRANSITIONS 3). */
export function badEnd(parent: TaskRow): 'upstream_failed' | 'upstream_cancelled' | null {
  if (parent.status === 'FAILED') return parent.is_tolerated === 1 ? null : 'upstream_failed';
  if (parent.status === 'CANCELLED') return 'upstream_cancelled';
  const isConsequence = parent.reason === 'upstream_failed' || parent.reason === 'upstream_cancelled';
  return parent.status === 'SKIPPED' && isConsequence ? (parent.reason as 'upstream_failed') : null;
}

/** All parents are done: decide at once what needs no template, leave the rest to the engine (TRANSITIONS 4–12). */
export function becomeEligible(work: Work, task: TaskRow, hasParents: boolean): void {
  const run = work.runOf(task);
  if (isStopped(run, task)) {
    cancelTask(work, task, stopReasonOf(run));
  } else if (hasParents && task.deps_ok === 0 && task.is_finally === 0) {
    work.move(task, 'SKIPPED', { event: 'task.skipped', reason: 'upstream_skipped' });
  } else if (task.is_plain === 1) makeReady(work, task);
  // A retry keeps the list of a map and what its items have done (SPEC S5.7).
  else if (task.map_size !== null) openItems(work, task);
  else {
    task.undecided = 1;
    work.change(task);
  }
}

/** READY, and on to QUEUED when there is room (TRANSITIONS 12, 14). A person's decision keeps its own event. */
export function makeReady(work: Work, task: TaskRow, decision?: Cause): void {
  work.move(task, 'READY', decision ?? { event: 'task.ready' });
  const run = work.runOf(task);
  // Where room is scarce, `admit` gives it out by priority once everything that became ready is known.
  const isScarce = runSettings(run).max_parallel !== null || run.n_ready > 1;
  const place = run.paused === 1 || isHeld(task) ? null : placeOf(work, task);
  if (place !== null) work.hold(task, place);
  else if (run.paused === 0 && !isScarce && !isHeld(task) && roomOf(run) > 0)
    work.enqueue(task, decision ?? { event: 'task.queued' });
  else task.waiting_for = run.paused === 1 ? 'paused' : 'capacity';
}

/** Whether a task may be handed out at once: its run is not paused and has room, and so has its map. */
export function hasRoom(work: Work, task: TaskRow): boolean {
  const run = work.runOf(task);
  return run.paused === 0 && roomOf(run) > 0 && work.hasSlot(task);
}

/** How many more tasks of a run may be handed out. */
export function roomOf(run: RunRow): number {
  const { max_parallel, window } = runSettings(run);
  const parallel =
    max_parallel === null ? Number.POSITIVE_INFINITY : max_parallel - run.n_queued - run.n_leased;
  return Math.min(parallel, window - run.n_queued);
}

/** Moves READY tasks up in every loaded run that has room, highest priority first, then oldest. */
export async function admit(work: Work): Promise<void> {
  for (const map of work.freedMaps) await letItemsIn(work, map);
  work.freedMaps.clear();
  for (const run of work.loadedRuns()) {
    if (run.n_ready === 0 || run.paused === 1) continue;
    // What is held back leaves room for others, so that more are looked at.
    while (run.n_ready > 0 && roomOf(run) > 0) {
      const room = roomOf(run);
      const outcome = admitSome(work, (await readyTasks(work, run, room)).slice(0, room));
      if (outcome === 'more') goOnAdmitting(work, run);
      if (outcome !== 'held') break;
    }
  }
}

/** Slots of a map that became free go to the items that have waited longest for one. */
async function letItemsIn(work: Work, map: TaskRow): Promise<void> {
  const slots = map.map_slots ?? 0;
  if (map.status !== 'PENDING' || slots === 0) return;
  await work.adopt(await work.tx.tasks.held(map, slots + work.leftHeld(map)));
  const waiting = [...work.loadedTasks()].filter((task) => task.map_key === map.key && isHeld(task));
  for (const item of waiting.sort((a, b) => a.key - b.key).slice(0, slots)) work.letIn(item);
}

/** Hands tasks out, or holds them back where others wait already; of these only a chunk in one transaction. */
function admitSome(work: Work, tasks: readonly TaskRow[]): 'held' | 'more' | 'done' {
  let outcome: 'held' | 'more' | 'done' = 'done';
  for (const task of tasks) {
    const place = placeOf(work, task);
    if (place === null) work.enqueue(task, { event: 'task.queued' });
    else if (work.heldAdditions >= CHUNK) outcome = 'more';
    else {
      work.hold(task, place);
      if (outcome === 'done') outcome = 'held';
    }
  }
  return outcome;
}

/** A cursor of another kind admits again when it has moved; without one, one of its own does. */
function goOnAdmitting(work: Work, run: RunRow): void {
  if (run.n_cursors === 0)
    work.addCursor({ kind: 'admit', run_key: run.key, subject: run.key, position: 0, data: null });
}

/** READY tasks of a run in the order of hand-out: those of this work, and stored ones if there are more. */
async function readyTasks(work: Work, run: RunRow, room: number): Promise<TaskRow[]> {
  const isReady = (task: TaskRow): boolean =>
    task.run_key === run.key && task.status === 'READY' && !isHeld(task) && !isHeldBack(task);
  let ready = [...work.loadedTasks()].filter(isReady);
  if (ready.length < run.n_ready) {
    const wanted = Math.min(room, run.n_ready) + work.leftReady(run);
    await work.adopt(await work.tx.tasks.ready(run.key, wanted));
    ready = [...work.loadedTasks()].filter(isReady);
  }
  return ready.sort((a, b) => b.priority - a.priority || a.key - b.key);
}

/** fail_fast: descendants are skipped by now; everything else unfinished is cancelled, `when: done` tasks excepted. */
async function applyFailurePolicy(work: Work): Promise<void> {
  const keys = [...work.failedRuns];
  work.failedRuns.clear();
  for (const run of await work.runs(keys)) {
    if (run.stopping === 1 || run.cancelled === 1 || runSettings(run).on_failure !== 'fail_fast') continue;
    await stopRun(work, run);
  }
}

/** Sets the truth (no claim, no new task) and cancels a first chunk; a cursor does the rest. */
export async function stopRun(work: Work, run: RunRow): Promise<void> {
  run.stopping = 1;
  work.changeRun(run);
  // Children that an unlock has still to skip are descendants of the failure: they come before the sweep.
  const position = (await isUnlocking(work, run)) ? 0 : await cancelChunk(work, run, 0);
  if (position !== null)
    work.addCursor({ kind: 'stop', run_key: run.key, subject: run.key, position, data: null });
}

/** Whether tasks of a run have still to be told of an end; cursors of this very work are not in the store yet. */
async function isUnlocking(work: Work, run: RunRow): Promise<boolean> {
  if (run.n_cursors === 0) return false;
  const stored = await work.tx.cursors.ofRun(run.key);
  return stored.length < run.n_cursors || stored.some(({ kind }) => kind === 'unlock');
}

/** Whether a stop of its run ends this task. A budget that is used up lets what is leased finish (SPEC S8.2). */
export function isStopped(run: RunRow, task: TaskRow): boolean {
  if (run.cancelled === 1) return true;
  if (run.stopping === 0 || task.is_finally === 1) return false;
  return run.stop_reason !== 'budget' || task.lease_id === null;
}

/** Ends a task that has lost its lease in a run that has been stopped meanwhile. */
export function endIfStopped(work: Work, task: TaskRow): void {
  const run = work.runOf(task);
  if (isUnfinished(task) && isStopped(run, task)) cancelTask(work, task, stopReasonOf(run));
}

/** Why the tasks of a stopped run are cancelled. */
export function stopReasonOf(run: RunRow): string {
  return run.cancelled === 1 ? 'cancelled' : (run.stop_reason ?? 'run_stopped');
}

/** Cancels unfinished tasks beyond `after`; returns the position to go on from, or null when none is left. */
export async function cancelChunk(work: Work, run: RunRow, after: number): Promise<number | null> {
  const rows = await work.adopt(await work.tx.tasks.unfinished(run.key, { after, limit: CHUNK + 1 }));
  const reason = stopReasonOf(run);
  for (const task of rows.slice(0, CHUNK)) {
    if (!isUnfinished(task) || !isStopped(run, task)) continue;
    cancelTask(work, task, reason);
  }
  return rows.length > CHUNK ? (rows[CHUNK - 1]?.key ?? after) : null;
}

/** Cancels one task; a lease is revoked and its attempt recorded, so that the worker's late word is understood. */
export function cancelTask(work: Work, task: TaskRow, reason: string): void {
  if (task.lease_id !== null) work.endAttempt(task, { outcome: 'cancelled' });
  task.question_id = null;
  work.move(task, 'CANCELLED', { event: 'task.cancelled', reason });
}

function isUnfinished(task: TaskRow): boolean {
  return !['SUCCESS', 'FAILED', 'CANCELLED', 'SKIPPED'].includes(task.status);
}
