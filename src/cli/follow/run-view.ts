/** What shows a run while it goes on: a picture that is redrawn, a line per change, or nothing. */
import type { Io } from '../io.ts';
import type { RunProgress, TaskChange } from './run-progress.ts';

/** A view of one run. */
export interface RunView {
  /** Draws what is known by now; `changes` are those since the last call. */
  update(progress: RunProgress, changes: readonly TaskChange[]): void;
  /** Says something beside the picture. */
  say(text: string): void;
  /** Gives the terminal to somebody else, until the next update. */
  pause(): void;
  /** Stops drawing; what was drawn last stays. */
  close(): void;
}

/** Shows nothing, for `--json`. */
const silentView: RunView = Object.freeze({
  update: () => {},
  say: () => {},
  pause: () => {},
  close: () => {},
});

/** The view that fits where the text goes. */
export async function viewFor(io: Io, options: { readonly isJson: boolean }): Promise<RunView> {
  if (options.isJson) return silentView;
  if (io.out.isTerminal) return new (await import('./live-screen.ts')).LiveScreen(io);
  return new (await import('./plain-lines.ts')).PlainLines(io);
}
