/**
 * The items of a map, made and ended in chunks behind a durable cursor: one transaction a chunk, so that 10,000 of them stall nobody and
 * a crash between two chunks loses nothing (SPEC S4.9, TRANSITIONS 1, 10, 36, 38). What an item works on is found by its index later.
 */
import { newTaskRunId } from '../base/ids.ts';
import { isTerminal } from '../domain/states.ts';
import type { TaskRow } from '../stores/rows.ts';
import { becomeEligible, cancelTask, stopReasonOf } from './advance.ts';
import { countItem, isExpanded } from './map-row.ts';
import { newItemRow } from './new-rows.ts';
import type { PlannedTask } from './plan.ts';
import { resetTask } from './reset-task.ts';
import type { Work } from './work.ts';

/** Items that one transaction makes or ends. */
export const ITEMS_CHUNK = 500;

/** Where the cursor stands, and how far one step goes. */
interface Step {
  readonly position: number;
  readonly chunk: number;
}

/** Makes the next items of a list; returns where the cursor stands now, or null when it is done. */
export async function continueExpansion(
  work: Work,
  map: TaskRow,
  step: Step & { readonly planned: PlannedTask },
): Promise<number | null> {
  const run = work.runOf(map);
  const isStopped = run.cancelled === 1 || (run.stopping === 1 && map.is_finally === 0);
  if (!isExpanded(map) || isStopped) return null;
  const { position: first, chunk, planned } = step;
  const size = map.map_size ?? 0;
  const end = Math.min(first + chunk, size);
  const known = await itemsFrom(work, map, { position: first, chunk: end - first });
  const byIndex = new Map(known.map((item) => [item.map_index, item]));
  const fresh: TaskRow[] = [];
  for (let index = first; index < end; index++) {
    if (!byIndex.has(index)) fresh.push(newItemRow({ id: newTaskRunId(), run, planned, map, index }));
  }
  if (fresh.length > 0) {
    const keys = await work.tx.tasks.insert(fresh);
    for (const [place, item] of fresh.entries()) item.key = keys[place] ?? 0;
    work.created(run, fresh);
  }
  work.note(map, { event: 'task.expanded', data: { first, last: end - 1, total: size } });
  for (const item of known) if ((item.map_index ?? 0) < end) wake(work, map, item);
  for (const item of fresh) beginItem(work, map, item);
  return end < size ? end : null;
}

/** Ends items of earlier lists, and unfinished ones of a map that is over; returns where the cursor stands now, or null when it is done. */
export async function continueRetirement(work: Work, map: TaskRow, step: Step): Promise<number | null> {
  const items = await itemsFrom(work, map, step);
  for (const item of items) {
    if (item.generation < map.generation) supersede(work, item);
    else if (isTerminal(map.status) && !isTerminal(item.status))
      cancelTask(work, item, map.status === 'CANCELLED' ? 'cancelled' : stopReasonOf(work.runOf(item)));
  }
  return items.length < step.chunk ? null : (items.at(-1)?.map_index ?? 0) + 1;
}

async function itemsFrom(work: Work, map: TaskRow, { position, chunk }: Step): Promise<TaskRow[]> {
  return work.adopt(await work.tx.tasks.items(map, { from: position, limit: chunk }));
}

/** An item of an earlier time: one that succeeded for this very list is kept, any other starts again (SPEC S5.7). */
function wake(work: Work, map: TaskRow, item: TaskRow): void {
  if (item.generation === map.generation && item.status === 'SUCCESS') {
    countItem(work, item);
    return;
  }
  if (!isTerminal(item.status)) return;
  const isNewList = item.generation !== map.generation;
  resetTask(work, item, { attempts: true, gate: isNewList, generation: isNewList });
  beginItem(work, map, item);
}

/** An item that is PENDING moves on; nothing but its own handler is left to decide about it. */
export function beginItem(work: Work, map: TaskRow, item: TaskRow): void {
  item.generation = map.generation;
  // `if` and the gate were decided for the map, before there were items.
  item.gate = 'passed';
  item.map_slots = map.map_slots === null ? null : 0;
  becomeEligible(work, item, false);
}

function supersede(work: Work, item: TaskRow): void {
  if (item.status === 'SKIPPED' && item.reason === 'superseded') return;
  if (isTerminal(item.status)) resetTask(work, item, { attempts: true, gate: true, generation: false });
  work.move(item, 'SKIPPED', { event: 'task.skipped', reason: 'superseded' });
}
