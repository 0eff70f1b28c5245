/** The lists of maps, for `item` in the templates of their items: read once and kept, because every claim of an item asks for one. */
import type { BlobStore } from '../stores/blob-store.ts';
import type { TaskRow } from '../stores/rows.ts';
import type { Tx } from '../stores/store.ts';
import type { Reference } from '../template/template.ts';
import { listPlace } from './map-row.ts';
import { readJson } from './payload.ts';

/** Lists are kept up to this size together; the last one is kept whatever its size. */
const KEPT_BYTES_MAX = 32 * 1024 * 1024;

/** Lists by map and generation. */
export type Lists = ReadonlyMap<string, readonly unknown[]>;

/** Reads lists. A list never changes: a rerun has another one. */
export class MapLists {
  readonly #blobs: BlobStore;
  readonly #kept = new Map<string, { readonly list: readonly unknown[]; readonly bytes: number }>();
  #bytes = 0;

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  /** The lists that requests of items name as `item`. */
  async load(
    tx: Tx,
    requests: readonly { readonly task: TaskRow; readonly references: readonly Reference[] }[],
  ): Promise<Lists> {
    const lists = new Map<string, readonly unknown[]>();
    const missing = new Map<string, [number, number, number]>();
    for (const { task, references } of requests) {
      if (task.map_key === null || !references.some(({ root }) => root === 'item')) continue;
      const place = listPlace(task.map_key, task.generation);
      const kept = this.#kept.get(place.join('.'));
      if (kept === undefined) missing.set(place.join('.'), place);
      else lists.set(place.join('.'), kept.list);
    }
    for (const artifact of missing.size === 0 ? [] : await tx.artifacts.find([...missing.values()])) {
      const name = [artifact.task_key, artifact.attempt, artifact.ordinal].join('.');
      const list = (await readJson(artifact, this.#blobs)) as readonly unknown[];
      lists.set(name, list);
      this.#keep(name, list, artifact.bytes);
    }
    return lists;
  }

  #keep(name: string, list: readonly unknown[], bytes: number): void {
    for (const [oldest, kept] of this.#kept) {
      if (this.#bytes + bytes <= KEPT_BYTES_MAX) break;
      this.#kept.delete(oldest);
      this.#bytes -= kept.bytes;
    }
    // Two readers may have met.
    if (this.#kept.has(name)) return;
    this.#kept.set(name, { list, bytes });
    this.#bytes += bytes;
  }
}

/** `item` and `index` of an item; nothing for any other task. */
export function itemScope(task: TaskRow, lists: Lists): Readonly<Record<string, unknown>> {
  if (task.map_key === null) return {};
  const list = lists.get(listPlace(task.map_key, task.generation).join('.'));
  const index = task.map_index ?? 0;
  return { index, ...(list === undefined ? {} : { item: list[index] ?? null }) };
}
