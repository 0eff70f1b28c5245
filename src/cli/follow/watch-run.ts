/** Follows a run that another process runs. Ctrl-C ends the watching, never the run. */
import type { RelayApi, RunView } from '../../app/api.ts';
import { systemClock } from '../../base/clock.ts';
import type { CommonOptions } from '../command.ts';
import { colorsFor, type Io } from '../io.ts';
import { wholeRun } from '../pages.ts';
import { renderSummary } from '../render/run.ts';
import { followRun } from './follow-run.ts';
import { viewFor } from './run-view.ts';

const POLL_MS = 200;

/** Follows until the run ends or the watcher leaves; the exit code is that of the run's end, 0 while it goes on. */
export async function watchRun(
  api: RelayApi,
  run_id: string,
  options: CommonOptions,
  io: Io,
): Promise<{ readonly run: RunView; readonly exit: number }> {
  const view = await viewFor(io, { isJson: options.json === true });
  const leaving = new AbortController();
  const stopListening = io.onInterrupt(() => leaving.abort());
  try {
    view.say('Ctrl-C stops watching; the run goes on');
    await followRun({
      api,
      run: await api.runs.get(run_id),
      view,
      signal: leaving.signal,
      pollMs: POLL_MS,
      showsHistory: true,
      attend: async () => false,
      isPatient: () => true,
    });
  } finally {
    view.close();
    stopListening();
  }
  const run = await wholeRun(api, run_id);
  if (options.json !== true) {
    const drawing = { colors: colorsFor(io.out, io.env), output: io.out, now: systemClock.now() };
    io.out.write(renderSummary(run, drawing));
  }
  const exits: Readonly<Record<string, number>> = { FAILED: 1, CANCELLED: 4 };
  return { run, exit: exits[run.status] ?? 0 };
}
