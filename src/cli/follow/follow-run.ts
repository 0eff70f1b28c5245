/** Follows a run by its events until it ends, or until it waits for something that nobody here can give. */
import { setTimeout as delay } from 'node:timers/promises';
import type { RelayApi, RunSummary } from '../../app/api.ts';
import { isTerminal } from '../../domain/states.ts';
import { RunProgress, type TaskChange } from './run-progress.ts';
import type { RunView } from './run-view.ts';

/** Why following has ended: the run has, it waits for a person, or somebody wants to leave. */
export type Ending = 'ended' | 'waiting' | 'interrupted';

/** What following needs. */
export interface Following {
  readonly api: RelayApi;
  readonly run: RunSummary;
  readonly view: RunView;
  readonly signal: AbortSignal;
  /** Shows what happened before; a run that was started just now has no other history. */
  readonly showsHistory: boolean;
  /** Called when all is known; true when it changed something, so that there is news to read. */
  readonly attend: (progress: RunProgress) => Promise<boolean>;
  /** Whether a run that waits is worth waiting for. */
  readonly isPatient: (progress: RunProgress) => boolean;
  /** How often to look when no change was announced. */
  readonly pollMs: number;
}

const PAGE = 1_000;
/** A run that changes all the time is looked at this often; its first changes are shown at once. */
const REST_MS = 20;
const EAGER_ROUNDS = 10;

/** Follows until there is a reason to stop. */
export async function followRun(following: Following): Promise<Ending> {
  const done = new AbortController();
  try {
    return await follow(following, AbortSignal.any([following.signal, done.signal]));
  } finally {
    done.abort();
  }
}

async function follow(following: Following, leaving: AbortSignal): Promise<Ending> {
  const { api, run, view, signal, attend, isPatient, pollMs } = following;
  const progress = await RunProgress.of(run, api);
  const reader = new EventReader(api, run.id);
  let isShown = following.showsHistory;
  for (let round = 0; ; round++) {
    const changed = untilChanged(api, leaving, pollMs);
    const changes = await reader.read(progress);
    view.update(progress, isShown ? changes : []);
    isShown = true;
    if (isTerminal(progress.status)) return 'ended';
    if (signal.aborted) return 'interrupted';
    if (await attend(progress)) continue;
    if (progress.status === 'WAITING' && !isPatient(progress)) return 'waiting';
    await changed;
    if (round > EAGER_ROUNDS) await delay(REST_MS);
  }
}

/** Resolves at the next commit, but not later than after `pollMs`: commits of other processes may not be announced here. */
export async function untilChanged(api: RelayApi, signal: AbortSignal, pollMs: number): Promise<void> {
  const done = new AbortController();
  const either = AbortSignal.any([signal, done.signal]);
  await Promise.race([
    api.events.changed(either),
    delay(pollMs, undefined, { signal: either }).catch(() => {}),
  ]);
  done.abort();
}

class EventReader {
  readonly #api: RelayApi;
  readonly #run_id: string;
  #cursor: string | undefined;

  constructor(api: RelayApi, run_id: string) {
    this.#api = api;
    this.#run_id = run_id;
  }

  /** Takes in everything that has been committed since the last call. */
  async read(progress: RunProgress): Promise<TaskChange[]> {
    const changes: TaskChange[] = [];
    for (;;) {
      const page = await this.#api.events.page({ run_id: this.#run_id, cursor: this.#cursor, limit: PAGE });
      this.#cursor = page.next_cursor ?? this.#cursor;
      for (const event of page.items) {
        const change = progress.apply(event);
        if (change !== null) changes.push(change);
      }
      if (page.items.length < PAGE) return changes;
    }
  }
}
