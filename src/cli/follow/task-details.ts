/** What events do not tell of tasks at work: how far they are, and the last line they logged. Only a live picture asks for it. */
import { setTimeout as delay } from 'node:timers/promises';
import type { RelayApi } from '../../app/api.ts';
import { isWorking, type RunProgress, type TaskProgress } from './run-progress.ts';

const LOOK_MS = 250;
/** More than a screen shows. */
const TASKS_MAX = 40;
const LOG_PAGE = 200;

/** Looks at tasks at work every moment. */
export class TaskDetails {
  readonly #api: RelayApi;
  readonly #cursors = new Map<string, string>();

  constructor(api: RelayApi) {
    this.#api = api;
  }

  /** Keeps the tasks of a run up to date until aborted. */
  async watch(progress: () => RunProgress | null, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const working = (progress()?.tasks ?? []).filter(({ status }) => isWorking(status)).slice(0, TASKS_MAX);
      for (const task of working) if (!signal.aborted) await this.#look(task);
      await delay(LOOK_MS, undefined, { signal }).catch(() => {});
    }
  }

  async #look(task: TaskProgress): Promise<void> {
    const id = task.task_run_id;
    if (id === null) return;
    const { progress, message } = await this.#api.tasks.get(id);
    task.progress = progress;
    const line = await this.#lastLine(id);
    if (message !== null || line !== null) task.message = message ?? line;
  }

  async #lastLine(id: string): Promise<string | null> {
    const page = await this.#api.tasks.logs(id, { cursor: this.#cursors.get(id), limit: LOG_PAGE });
    const last = page.items.at(-1);
    if (last === undefined) return null;
    this.#cursors.set(id, last.cursor);
    const text = page.items
      .slice(-5)
      .map((item) => item.text)
      .join('');
    return text.trimEnd().split('\n').at(-1) ?? null;
  }
}
