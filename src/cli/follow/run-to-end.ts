/** Runs a run here and says how it ended: the shared second half of `run`, `resume` and everything with `--follow`. */
import type { RunView } from '../../app/api.ts';
import { systemClock } from '../../base/clock.ts';
import type { CommonOptions } from '../command.ts';
import type { Connection } from '../connect.ts';
import { colorsFor, type Io } from '../io.ts';
import { nextFlags } from '../next-flags.ts';
import { withAllTasks } from '../pages.ts';
import { renderNext, renderSummary, taskName } from '../render/run.ts';
import { type Driven, driveRun } from './drive-run.ts';
import type { Ending } from './follow-run.ts';

/** How a run is run and shown. */
export interface RunHereOptions extends CommonOptions {
  readonly concurrency?: number;
  readonly yes?: boolean;
}

const CONCURRENCY = 16;

/** Runs a run, prints what people want to know (nothing with `--json`), and gives the run with its exit code. */
export async function runToEnd(
  connection: Connection,
  run: RunView,
  options: RunHereOptions & { readonly isFresh: boolean },
  io: Io,
): Promise<{ readonly run: RunView; readonly exit: number }> {
  const flags = nextFlags(options);
  const driven = await driveRun(
    connection,
    run,
    {
      concurrency: options.concurrency ?? CONCURRENCY,
      isYes: options.yes === true,
      isJson: options.json === true,
      isFresh: options.isFresh,
      flags,
    },
    io,
  );
  const whole = await withAllTasks(connection.api, driven.run);
  await tell(connection, { ...driven, run: whole }, { flags, isJson: options.json === true }, io);
  return { run: whole, exit: exitCode(whole, driven.ending) };
}

async function tell(
  { api }: Connection,
  { run, ending }: Driven,
  { flags, isJson }: { readonly flags: string; readonly isJson: boolean },
  io: Io,
): Promise<void> {
  const isWaiting = ending === 'waiting';
  const questions = isWaiting ? (await api.approvals.list({ run_id: run.id })).items : [];
  const next = renderNext(run, { flags, questions, isInterrupted: ending === 'interrupted' });
  if (isJson) {
    if (ending !== 'ended') io.err.write(next.trimStart());
    return;
  }
  const drawing = { colors: colorsFor(io.out, io.env), output: io.out, now: systemClock.now() };
  io.out.write(renderSummary(run, drawing));
  for (const question of questions) io.out.write(`\n  ${taskName(question)}: ${question.message}\n`);
  io.out.write(next);
}

/** SPEC S13.2: 0 success, 1 failed, 4 cancelled or left, 5 waiting for a person. */
function exitCode(run: RunView, ending: Ending): number {
  if (run.status === 'SUCCESS') return 0;
  if (run.status === 'FAILED') return 1;
  if (run.status === 'CANCELLED') return 4;
  return ending === 'waiting' ? 5 : 4;
}
