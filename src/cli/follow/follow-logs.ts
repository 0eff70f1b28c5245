/** Prints the log of a task, and goes on printing until the task ends when asked to. */
import type { LogView, RelayApi } from '../../app/api.ts';
import { isTerminal } from '../../domain/states.ts';
import type { Io } from '../io.ts';
import { manyLines } from '../render/text.ts';
import { untilChanged } from './follow-run.ts';

const POLL_MS = 200;
const PAGE = 1_000;

/** Prints from the beginning. Text goes out as it was logged; with `--json` it is one object a line when followed, else a list. */
export async function followLogs(
  api: RelayApi,
  task_run_id: string,
  { isFollowed, isJson }: { readonly isFollowed: boolean; readonly isJson: boolean },
  io: Io,
): Promise<void> {
  const leaving = new AbortController();
  const stopListening = isFollowed ? io.onInterrupt(() => leaving.abort()) : () => {};
  const all: LogView[] = [];
  let cursor: string | undefined;
  let isOver = !isFollowed;
  try {
    for (;;) {
      const page = await api.tasks.logs(task_run_id, { cursor, limit: PAGE });
      cursor = page.items.at(-1)?.cursor ?? cursor;
      if (isJson && !isFollowed) all.push(...page.items);
      else
        for (const item of page.items) io.out.write(isJson ? `${JSON.stringify(item)}\n` : shown(item, io));
      if (page.next_cursor !== null) continue;
      if (isOver || leaving.signal.aborted) break;
      isOver = isTerminal((await api.tasks.get(task_run_id)).status);
      if (!isOver) await untilChanged(api, leaving.signal, POLL_MS);
    }
  } finally {
    leaving.abort();
    stopListening();
  }
  if (isJson && !isFollowed) io.out.write(`${JSON.stringify({ items: all, next_cursor: null }, null, 2)}\n`);
}

/** A terminal is not steered by what a task prints; a file gets the text as it is. */
function shown({ text }: LogView, io: Io): string {
  return io.out.isTerminal ? manyLines(text) : text;
}
