/**
 * The output of a map: the outputs of its items in the order of its list (SPEC S4.9). Read page by page outside any write, so that ten
 * thousand of them stall nobody, and put together as text, because nobody looks into them here. Durable before the map is SUCCESS (I3).
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { RelayError } from '../base/errors.ts';
import type { TaskRow } from '../stores/rows.ts';
import type { EngineContext } from './engine-context.ts';
import { failureOf, type ItemError, itemError, type MapEnd } from './map-row.ts';
import { PAYLOAD_BYTES_MAX, readBytes, storeJson, storeText } from './payload.ts';

const PAGE = 500;

interface Gathered {
  /** Outputs as JSON, in order; `null` where there is none. */
  readonly outputs: string[];
  readonly errors: ItemError[];
  /** Errors that `on_item_failure: collect` does not cover. */
  readonly bad: ItemError[];
  chars: number;
}

/** Works out how a map ends whose items have all ended. */
export async function gather(context: EngineContext, map: TaskRow): Promise<MapEnd> {
  const gathered: Gathered = { outputs: [], errors: [], bad: [], chars: 0 };
  const size = map.map_size ?? 0;
  for (let from = 0; from < size; from += PAGE) {
    await gatherPage(context, map, { from, limit: Math.min(PAGE, size - from) }, gathered);
    // Let I/O in: a synchronous store would otherwise keep the loop to itself.
    await nextTurn();
  }
  const errors = await storeJson(gathered.errors, context.blobs);
  const failed = gathered.bad.filter(({ status }) => status === 'FAILED');
  const [first] = failed;
  if (first !== undefined) {
    const which =
      failed.length === 1 ? `item ${first.index} failed` : `${failed.length} of ${size} items failed`;
    const why = first.error?.message ?? 'no reason was recorded';
    const message = `${which}: ${failed.length === 1 ? why : `item ${first.index}: ${why}`}`;
    return { failure: failureOf(first, message), errors };
  }
  if (gathered.bad.length > 0) return { cancelled: true, errors };
  return { output: await storeText(`[${gathered.outputs.join()}]`, context.blobs), errors };
}

async function gatherPage(
  { store, blobs }: EngineContext,
  map: TaskRow,
  page: { readonly from: number; readonly limit: number },
  into: Gathered,
): Promise<void> {
  const { items, artifacts } = await store.read(async (tx) => {
    const rows = await tx.tasks.items(map, page);
    const places = rows
      .filter((item) => item.output_attempt !== null)
      .map(({ key, output_attempt }) => [key, output_attempt ?? 0, 0] as const);
    return { items: rows, artifacts: await tx.artifacts.find(places) };
  });
  const outputOf = new Map(artifacts.map((artifact) => [artifact.task_key, artifact]));
  for (const item of items) {
    const artifact = outputOf.get(item.key);
    into.chars += artifact?.bytes ?? 'null'.length;
    requireSize(into.chars, map);
    into.outputs.push(
      artifact === undefined ? 'null' : Buffer.from(await readBytes(artifact, blobs)).toString('utf8'),
    );
    if (item.status === 'SUCCESS') continue;
    const error = itemError(item);
    into.errors.push(error);
    if (item.is_tolerated === 0) into.bad.push(error);
  }
}

/** Found out before the memory is used. */
function requireSize(bytes: number, map: TaskRow): void {
  if (bytes <= PAYLOAD_BYTES_MAX) return;
  throw new RelayError(
    'PAYLOAD_TOO_LARGE',
    `the outputs of the ${map.map_size} items of \`${map.task_id}\` are over ${PAYLOAD_BYTES_MAX} bytes together`,
    { hint: 'let the items write files, or give back less' },
  );
}
