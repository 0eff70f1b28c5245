/** What holds between a map and its items (SPEC S4.9), recounted from rows, cursors and artifacts like the other promises. */
import type { CursorRow, TaskRow } from '../../src/stores/rows.ts';
import type { Picture } from './invariants.ts';

const TERMINAL = new Set(['SUCCESS', 'FAILED', 'CANCELLED', 'SKIPPED']);
const AT_WORK = new Set(['LEASED', 'RUNNING']);

/** A READY item that waits for a slot of its map. */
export function isHeld(task: TaskRow): boolean {
  return task.status === 'READY' && task.map_key !== null && task.map_slots === 0;
}

/** A map that waits for its items and no longer for its parents. */
export function isExpanded(task: TaskRow): boolean {
  return task.status === 'PENDING' && task.map_size !== null && task.started_at !== null;
}

/** Everything that is wrong between a map and its items; nothing for any other task. */
export function checkMap(picture: Picture, map: TaskRow): string[] {
  const items = picture.tasks.filter((task) => task.map_key === map.key);
  if (items.length === 0 && map.map_size === null) return [];
  const current = items.filter((item) => item.generation === map.generation);
  const show = `map ${map.task_id} (${map.status})`;
  return [
    ...checkIndexes(items).map((problem) => `${show} ${problem}`),
    ...checkLeftovers(picture, map, items).map((problem) => `${show} ${problem}`),
    ...checkCounts(picture, map, current).map((problem) => `I15 ${show} ${problem}`),
    ...checkSlots(picture, map, current).map((problem) => `I13 ${show} ${problem}`),
    ...checkList(picture, map, current).map((problem) => `I3 ${show} ${problem}`),
  ];
}

function checkIndexes(items: readonly TaskRow[]): string[] {
  const indexes = items.map((item) => item.map_index ?? -1).sort((a, b) => a - b);
  return indexes.every((index, place) => index === place) ? [] : [`has items ${indexes.join()}`];
}

/** Items of an earlier list are superseded; those of a map that is over are over, or about to be. */
function checkLeftovers({ cursors }: Picture, map: TaskRow, items: readonly TaskRow[]): string[] {
  const retire = cursors.find(({ kind, subject }) => kind === 'retire' && subject === map.key);
  const old = items.filter(
    (item) =>
      item.generation !== map.generation &&
      item.reason !== 'superseded' &&
      !(retire !== undefined && retire.position <= (item.map_index ?? 0)),
  );
  const open = TERMINAL.has(map.status) ? items.filter((item) => !TERMINAL.has(item.status)) : [];
  return [
    ...old.map((item) => `has item ${item.map_index} ${item.status} of an earlier list`),
    ...(open.length > 0 && cursors.length === 0 ? [`is over, ${open.length} of its items are not`] : []),
  ];
}

function checkCounts({ cursors }: Picture, map: TaskRow, items: readonly TaskRow[]): string[] {
  if (!isExpanded(map)) return [];
  const expand: CursorRow | undefined = cursors.find(
    ({ kind, subject }) => kind === 'expand' && subject === map.key,
  );
  // What the cursor has not reached is not counted yet, whatever it did in an earlier life.
  const reached = items.filter(
    (item) => (item.map_index ?? 0) < (expand?.position ?? Number.POSITIVE_INFINITY),
  );
  const count = (...statuses: string[]): number =>
    reached.filter(({ status }) => statuses.includes(status)).length;
  const left = (map.map_size ?? 0) - count('SUCCESS', 'FAILED', 'CANCELLED', 'SKIPPED');
  const made = expand === undefined && reached.length !== map.map_size ? [`has ${reached.length} items`] : [];
  return [
    ...made,
    ...(map.deps_remaining === left ? [] : [`waits for ${map.deps_remaining} items, recounted ${left}`]),
    ...(map.deps_ok === count('SUCCESS') ? [] : [`counts ${map.deps_ok} successes`]),
    ...(map.map_failed === count('FAILED') ? [] : [`counts ${map.map_failed} failures`]),
    ...((map.undecided === 1) === (left === 0) ? [] : [`undecided is ${map.undecided} with ${left} left`]),
  ];
}

/** Slots are held by those that may be at work, never more than there are, and none is kept back while somebody waits. */
function checkSlots({ maxParallel }: Picture, map: TaskRow, items: readonly TaskRow[]): string[] {
  const slots = maxParallel.get(map.task_id);
  if (map.map_size === null) return [];
  if (slots === undefined) return map.map_slots === null ? [] : [`has ${map.map_slots} slots`];
  const holders = items.filter((item) => item.map_slots === 1);
  const atWork = items.filter((item) => item.in_queue === 1 || AT_WORK.has(item.status));
  const waiting = items.filter(isHeld);
  const isWrong = ({ status, in_queue }: TaskRow): boolean =>
    !(status === 'READY' || AT_WORK.has(status) || in_queue === 1);
  return [
    ...((map.map_slots ?? -1) + holders.length === slots
      ? []
      : [`has ${map.map_slots} free and ${holders.length} taken slots of ${slots}`]),
    ...(atWork.length <= slots ? [] : [`has ${atWork.length} items at work with max_parallel ${slots}`]),
    ...items
      .filter((item) => TERMINAL.has(item.status) !== (item.map_slots === null))
      .map((item) => `item ${item.map_index} is ${item.status} with slot ${item.map_slots}`),
    ...holders.filter(isWrong).map((item) => `item ${item.map_index} holds a slot as ${item.status}`),
    ...(map.status === 'PENDING' && waiting.length > 0 && (map.map_slots ?? 0) > 0
      ? [`has ${map.map_slots} free slots and ${waiting.length} items that wait for one`]
      : []),
  ];
}

/** The output is the list of the items' outputs. */
function checkList({ artifacts }: Picture, map: TaskRow, items: readonly TaskRow[]): string[] {
  if (map.status !== 'SUCCESS') return [];
  const read = (task: TaskRow): unknown => {
    const rows = artifacts.get(task.key) ?? [];
    const row = rows.find(({ attempt, ordinal }) => attempt === task.output_attempt && ordinal === 0);
    return row?.inline === null || row === undefined
      ? undefined
      : JSON.parse(Buffer.from(row.inline).toString());
  };
  const list = read(map) as unknown[] | undefined;
  if (list === undefined) return [];
  if (items.length !== map.map_size || list.length !== map.map_size)
    return [`has ${items.length} items and ${list.length} outputs of ${map.map_size}`];
  return items
    .filter((item) => {
      const own = item.status === 'SUCCESS' ? read(item) : null;
      return own !== undefined && JSON.stringify(list[item.map_index ?? -1]) !== JSON.stringify(own);
    })
    .map((item) => `has another output for item ${item.map_index}`);
}
