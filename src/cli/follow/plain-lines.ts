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
    for (const change of changes) out.write(`${this.#line(change)}\n`);
  }

  say(text: string): void {
    this.#io.err.write(`${text}\n`);
  }

  pause(): void {}

  close(): void {}

  #line({ task, event }: TaskChange): string {
    const colors = colorsFor(this.#io.out, this.#io.env);
    const { to, attempt, error } = event.data as {
      to: TaskChange['task']['status'];
      attempt?: number;
      error?: { message?: string };
    };
    const isAgain = event.type === 'task.retry_scheduled';
    const extra = [
      (attempt ?? 0) > 1 ? `attempt ${attempt}` : '',
      isAgain ? 'will be tried again' : '',
      task.finishedAt !== null && task.startedAt !== null ? spanText(task.finishedAt - task.startedAt) : '',
      error?.message ?? (to === 'FAILED' ? '' : (task.reason ?? '').replaceAll('_', ' ')),
    ];
    const more = extra.filter((text) => text !== '').map((text) => `  ${oneLine(text)}`);
    return `${clockText(event.at)}  ${oneLine(task.task_id)}  ${paintStatus(to, colors)(to)}${more.join('')}`;
  }
}
