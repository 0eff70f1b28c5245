/** A run as plain lines, one per change: for logs, pipes and terminals that cannot redraw. */
import { colorsFor, type Io } from '../io.ts';
import { paintStatus } from '../render/status.ts';
import { oneLine } from '../render/text.ts';
import { clockText, spanText } from '../render/time.ts';
import type { RunProgress, TaskChange } from './run-progress.ts';
import type { RunView } from './run-view.ts';

/** Prints a run line by line. */
export class PlainLines implements RunView {
  readonly #io: Io;
  #hasHeader = false;

  constructor(io: Io) {
    this.#io = io;
  }

  update(progress: RunProgress, changes: readonly TaskChange[]): void {
    const { out } = this.#io;
    if (!this.#hasHeader) {
      this.#hasHeader = true;
      const { run } = progress;
      out.write(
        `${clockText(run.created_at)}  run ${run.id} (${oneLine(run.workflow_name ?? 'open run')})\n`,
      );
    }
    for (const change of changes) if (isWorthALine(change)) out.write(`${this.#line(change)}\n`);
  }

  say(text: string): void {
    this.#io.err.write(`${text}\n`);
  }

  pause(): void {}

  close(): void {}

  #line({ task, event }: TaskChange): string {
    const colors = colorsFor(this.#io.out, this.#io.env);
    const { map_index } = event;
    const { to, attempt, error, reason } = event.data as {
      to: TaskChange['task']['status'];
      reason?: string;
      attempt?: number;
      error?: { message?: string };
    };
    const isAgain = event.type === 'task.retry_scheduled';
    const isItem = map_index !== null;
    const isMap = !isItem && task.items !== null;
    const hasSpan = !isItem && task.finishedAt !== null && task.startedAt !== null;
    const extra = [
      (attempt ?? 0) > 1 && !isMap ? `attempt ${attempt}` : '',
      isAgain ? 'will be tried again' : '',
      hasSpan ? spanText((task.finishedAt ?? 0) - (task.startedAt ?? 0)) : '',
      isMap ? itemsText(task.items) : '',
      error?.message ?? (to === 'FAILED' ? '' : (reason ?? '').replaceAll('_', ' ')),
    ];
    const more = extra.filter((text) => text !== '').map((text) => `  ${oneLine(text)}`);
    return `${clockText(event.at)}  ${oneLine(isItem ? `${task.task_id}[${map_index}]` : task.task_id)}  ${paintStatus(to, colors)(to)}${more.join('')}`;
  }
}

/** A long list would bury everything else: of items only what somebody may want to act on, of their making only the first word. */
function isWorthALine({ event }: TaskChange): boolean {
  const { to, first } = event.data as { to?: string; first?: number };
  if (event.map_index === null) return event.type !== 'task.expanded' || first === 0;
  return (
    to === 'FAILED' || to === 'BLOCKED' || to === 'WAITING_INPUT' || event.type === 'task.retry_scheduled'
  );
}

function itemsText(items: TaskChange['task']['items']): string {
  if (items === null) return '';
  const { total, done, failed } = items;
  if (done === 0) return `${total.toLocaleString('en')} items`;
  const bad = failed === 0 ? '' : `, ${failed.toLocaleString('en')} failed`;
  return `${done.toLocaleString('en')} of ${total.toLocaleString('en')} items${bad}`;
}
