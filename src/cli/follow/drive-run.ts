/**
 * Runs one run in this process to its end: engine, worker, view, people, and the ways to stop it. Ctrl-C cancels the run; a second
 * one leaves at once; a request to end (SIGTERM) hands the work back, so that the run can be resumed.
 */
import type { RunView } from '../../app/api.ts';
import { RelayError } from '../../base/errors.ts';
import type { Connection } from '../connect.ts';
import type { Interrupt, Io } from '../io.ts';
import { type Ending, followRun } from './follow-run.ts';
import { People } from './people.ts';
import type { RunProgress } from './run-progress.ts';
import { type RunView as View, viewFor } from './run-view.ts';

/** How a run is run. */
export interface DriveOptions {
  readonly concurrency: number;
  readonly isYes: boolean;
  readonly isJson: boolean;
  readonly isFresh: boolean;
  /** Flags that a command to type next needs as well. */
  readonly flags: string;
}

/** Where it ended. */
export interface Driven {
  readonly run: RunView;
  readonly ending: Ending;
}

const POLL_MS = 1_000;
/** How long tasks may go on after a request to end. */
const TERMINATION_GRACE_MS = 2_000;

/** Runs a run until it ends, waits for a person, or is interrupted. The engine must be running. */
export async function driveRun(
  connection: Connection,
  run: RunView,
  options: DriveOptions,
  io: Io,
): Promise<Driven> {
  const { api } = connection;
  const view = await viewFor(io, options);
  const isInteractive = !options.isJson && io.input.isTerminal && io.out.isTerminal;
  const mode = options.isYes ? 'yes' : isInteractive ? 'ask' : 'nobody';
  const people = new People({ api, io, view, mode });
  const terminating = new AbortController();
  const interrupts = new Interrupts({ api, io, view, people, terminating, run, flags: options.flags });
  const stopListening = io.onInterrupt((signal) => interrupts.hear(signal));
  const worker = await connection.startWorker({ concurrency: options.concurrency, run_id: run.id });
  const details = await watchDetails(api, view, io);
  try {
    const ending = await followRun({
      api,
      run,
      signal: terminating.signal,
      showsHistory: options.isFresh,
      pollMs: POLL_MS,
      view: details.view,
      attend: (progress) => people.attend(progress),
      isPatient: (progress) => interrupts.isCancelling || (isInteractive && progress.isPaused),
    });
    await details.stop();
    // Tasks of a run that is over have nothing to finish; their results would be refused.
    await worker.stop(ending === 'ended' ? 0 : TERMINATION_GRACE_MS);
    return { run: await api.runs.get(run.id), ending };
  } finally {
    await details.stop();
    view.close();
    stopListening();
    await worker.stop(0);
  }
}

/** A live picture also shows what tasks say while they work. */
async function watchDetails(
  api: Connection['api'],
  view: View,
  io: Io,
): Promise<{ readonly view: View; readonly stop: () => Promise<void> }> {
  if (!io.out.isTerminal) return { view, stop: async () => {} };
  const { TaskDetails } = await import('./task-details.ts');
  let latest: RunProgress | null = null;
  const stopping = new AbortController();
  // Without details the picture is poorer, but the run goes on; a store that is away is told by those who need it.
  const watching = new TaskDetails(api).watch(() => latest, stopping.signal).catch(() => {});
  const update: View['update'] = (progress, changes) => {
    latest = progress;
    view.update(progress, changes);
  };
  const { say, pause, close } = view;
  return {
    view: { update, say: say.bind(view), pause: pause.bind(view), close: close.bind(view) },
    stop: async () => {
      stopping.abort();
      await watching;
    },
  };
}

interface InterruptParts {
  readonly api: Connection['api'];
  readonly io: Io;
  readonly view: View;
  readonly people: People;
  readonly terminating: AbortController;
  readonly run: RunView;
  readonly flags: string;
}

class Interrupts {
  readonly #with: InterruptParts;
  /** A cancel is under way; the run will end of it. */
  isCancelling = false;
  #isCancelled = false;

  constructor(parts: InterruptParts) {
    this.#with = parts;
  }

  hear(signal: Interrupt): void {
    const { people, terminating, view } = this.#with;
    people.leave();
    if (signal === 'SIGTERM') {
      terminating.abort();
      return;
    }
    if (this.isCancelling) this.#leave();
    else {
      this.isCancelling = true;
      view.say('cancelling; Ctrl-C again leaves at once');
      void this.#cancel();
    }
  }

  async #cancel(): Promise<void> {
    const { api, run, terminating } = this.#with;
    try {
      await api.runs.cancel(run.id);
      this.#isCancelled = true;
    } catch (error) {
      // It ended in the same moment; there is nothing left to cancel.
      if (error instanceof RelayError && error.code === 'RUN_TERMINAL') return;
      this.#with.view.say(`cannot cancel: ${(error as Error).message}`);
      terminating.abort();
    }
  }

  #leave(): void {
    const { io, view, run, flags } = this.#with;
    view.close();
    const again = this.#isCancelled ? `relay runs retry ${run.id} --follow` : `relay resume ${run.id}`;
    const state = this.#isCancelled ? 'is cancelled' : 'is left as it is';
    io.err.write(`\nrun ${run.id} ${state}; \`${again}${flags}\` carries on\n`);
    io.quit(4);
  }
}
