/**
 * The row of a map (`for_each`): it holds no lease and waits for its items as other tasks wait for their parents. Here are the counts
 * it keeps and what the end of an item does to it (TRANSITIONS 9, 10, 13); its items are made by `expand.ts`, its output by `gather.ts`.
 */
import { invariant } from '../base/invariant.ts';
import type { TaskFailure } from '../domain/failure.ts';
import type { TaskRow } from '../stores/rows.ts';
import type { StoredPayload } from './payload.ts';
import { runSettings } from './run-settings.ts';
import type { Cause } from './task-events.ts';
import type { Work } from './work.ts';

/** Where the errors of a map's items stand beside its output. */
export const ERRORS_ORDINAL = 1;

/** How an item that did not succeed is told in `tasks.<id>.errors`. */
export interface ItemError {
  readonly index: number;
  readonly task_run_id: string;
  readonly status: string;
  readonly error: TaskFailure | null;
}

/** Whether a map waits for its items; before, it waits for its parents like any other task. */
export function isExpanded(task: TaskRow): boolean {
  return task.status === 'PENDING' && task.map_size !== null && task.started_at !== null;
}

/** Where the list of a map is stored: every rerun has its own. */
export function listPlace(map_key: number, generation: number): [number, number, number] {
  return [map_key, 0, generation + 1];
}

/** The list is known: an empty one is the output already, items of others are made behind a cursor. */
export function acceptList(
  work: Work,
  map: TaskRow,
  list: { readonly size: number; readonly payload: StoredPayload; readonly slots: number | null },
): void {
  map.gate = 'passed';
  map.map_size = list.size;
  map.map_slots = list.slots;
  const [, attempt, ordinal] = listPlace(map.key, map.generation);
  work.addArtifact(map, { attempt, ordinal, kind: 'items', name: 'items', ...list.payload });
  if (list.size > 0) openItems(work, map);
  else endMap(work, map, { output: list.payload, errors: list.payload });
}

/** The items of a list that is known are made, or set going again; those that succeeded in this generation are kept. */
export function openItems(work: Work, map: TaskRow): void {
  invariant(map.map_size !== null, `the list of map ${map.id} is known`);
  map.started_at = work.now;
  map.undecided = 0;
  recountItems(work, map, []);
}

/** Counts what these items have done, the first ones of the list, and lets the others be made. */
export function recountItems(work: Work, map: TaskRow, items: readonly TaskRow[]): void {
  map.deps_remaining = map.map_size ?? 0;
  map.deps_ok = 0;
  map.map_failed = 0;
  for (const item of items) countItem(work, item);
  work.change(map);
  const { run_key, key: subject } = map;
  if (map.deps_remaining === 0) map.undecided = 1;
  else work.addCursor({ kind: 'expand', run_key, subject, position: items.length, data: null });
}

/** Items of earlier lists, and unfinished ones of a map that has ended, are ended behind a cursor. */
export function retireItems(work: Work, map: TaskRow): void {
  const { run_key, key: subject } = map;
  work.addCursor({ kind: 'retire', run_key, subject, position: 0, data: null });
}

/** An item has ended, or was kept as it is. The last one leaves the map to be gathered. */
export function countItem(work: Work, item: TaskRow): void {
  const map = work.mapOf(item);
  // What is left of an earlier list counts for nothing.
  if (item.generation !== map.generation) return;
  map.deps_remaining -= 1;
  if (item.status === 'SUCCESS') map.deps_ok += 1;
  else if (item.status === 'FAILED') map.map_failed += 1;
  work.change(map);
  if (map.status !== 'PENDING') return;
  if (stopsRun(work, item)) failAtOnce(work, map, item);
  else if (map.deps_remaining === 0) map.undecided = 1;
}

/** One failed item is set going again: the map waits for it once more. */
export function awaitItem(work: Work, map: TaskRow): void {
  map.started_at ??= work.now;
  map.deps_remaining += 1;
  map.map_failed -= 1;
  map.undecided = 0;
  work.change(map);
}

/** Under fail_fast the others are about to be cancelled; the map has failed with its item, and what is below it is skipped (SPEC S5.5). */
function stopsRun(work: Work, item: TaskRow): boolean {
  if (item.status !== 'FAILED' || item.is_tolerated === 1 || item.is_finally === 1) return false;
  return runSettings(work.runOf(item)).on_failure === 'fail_fast';
}

function failAtOnce(work: Work, map: TaskRow, item: TaskRow): void {
  const error = itemError(item);
  const text = JSON.stringify([error]);
  const bytes = Buffer.byteLength(text);
  const errors = { content_type: 'application/json', bytes, inline: text, blob_ref: null };
  const message = `item ${error.index} failed: ${error.error?.message ?? 'no reason was recorded'}`;
  endMap(work, map, { failure: failureOf(error, message), errors });
}

/** The failure of a map: what its first failed item failed with. */
export function failureOf({ error }: ItemError, message: string): TaskFailure {
  return { class: error?.class ?? 'handler', code: error?.code ?? 'HANDLER_THREW', message };
}

/** An item that did not succeed, as templates see it. */
export function itemError(item: TaskRow): ItemError {
  const error = item.error === null ? null : (JSON.parse(item.error) as TaskFailure);
  return { index: item.map_index ?? 0, task_run_id: item.id, status: item.status, error };
}

/** How a map ends: with the list of outputs, with a failure, or cancelled with its items. */
export type MapEnd =
  | { readonly output: StoredPayload; readonly errors: StoredPayload }
  | { readonly failure: TaskFailure; readonly errors: StoredPayload }
  | { readonly cancelled: true; readonly errors: StoredPayload };

/** Ends a map; what its items left is durable in the same transaction (I3). */
export function endMap(work: Work, map: TaskRow, end: MapEnd): void {
  // No claim has counted it; a rerun must not meet the output of the time before.
  map.attempt += 1;
  work.addArtifact(map, { ordinal: ERRORS_ORDINAL, kind: 'errors', name: 'errors', ...end.errors });
  if ('output' in end) {
    work.addArtifact(map, { ordinal: 0, kind: 'output', name: 'output', ...end.output });
    work.move(map, 'SUCCESS', withCounts(map, { event: 'task.completed' }));
  } else if ('failure' in end) {
    map.error = JSON.stringify(end.failure);
    const { class: failureClass, code, message } = end.failure;
    const error = { class: failureClass, code, message: message.slice(0, 500) };
    work.move(
      map,
      'FAILED',
      withCounts(map, { event: 'task.failed', reason: 'items_failed', data: { error } }),
    );
  } else work.move(map, 'CANCELLED', withCounts(map, { event: 'task.cancelled', reason: 'items_cancelled' }));
}

function withCounts(map: TaskRow, cause: Cause): Cause {
  const items = { total: map.map_size, succeeded: map.deps_ok, failed: map.map_failed };
  return { ...cause, data: { ...cause.data, items } };
}
