/**
 * `relay resume [RUN_ID]`: carries on what an earlier process left unfinished in the embedded store (SPEC S13.2). A server
 * carries its runs on by itself; there it follows them, and asks.
 */
import type { RelayApi, RunSummary, RunView } from '../../app/api.ts';
import { isTerminal, type RunStatus } from '../../domain/states.ts';
import { type BuildCommand, type CommandContext, examples } from '../command.ts';
import { withRelay } from '../connect.ts';
import { type RunHereOptions, runToEnd } from '../follow/run-to-end.ts';
import { printJson } from '../io.ts';
import { wholeRun } from '../pages.ts';
import { wholeNumber } from '../subcommand.ts';

const UNFINISHED: readonly RunStatus[] = ['RUNNING', 'WAITING', 'PENDING'];
const PAGE = 1_000;

export const buildResume: BuildCommand = (command, context) => {
  command
    .argument('[run]', 'the run; without it every unfinished one, oldest first')
    .option('-y, --yes', 'approve every gate that needs no form')
    .option(
      '--concurrency <n>',
      'tasks at work at once, at most (default 16)',
      wholeNumber('--concurrency', 1),
    )
    .addHelpText(
      'after',
      examples([
        ['relay resume', 'carry on everything that is unfinished'],
        ['relay resume RUN_ID', 'carry on one run'],
        ['relay resume RUN_ID --yes --json', 'for programs'],
      ]),
    )
    .action((run_id: string | undefined, options: RunHereOptions) => resume(run_id, options, context));
};

async function resume(
  run_id: string | undefined,
  options: RunHereOptions,
  { io, exit }: CommandContext,
): Promise<void> {
  await withRelay(options, io, async (connection) => {
    const { api } = connection;
    const isJson = options.json === true;
    const unfinished = run_id === undefined ? await unfinishedRuns(api) : [await api.runs.get(run_id)];
    if (unfinished.some(({ status }) => !isTerminal(status))) await connection.startEngine();
    const ended: RunView[] = [];
    const exits: number[] = [];
    for (const { id, status } of unfinished) {
      const run = await wholeRun(api, id);
      const result = isTerminal(status)
        ? { run, exit: 0 }
        : await runToEnd(connection, run, { ...options, isFresh: false }, io);
      ended.push(result.run);
      exits.push(result.exit);
      if (result.exit === 4) break;
    }
    if (isJson) printJson(io, run_id === undefined ? { items: ended, next_cursor: null } : ended[0]);
    else if (unfinished.length === 0) io.out.write('Nothing is unfinished.\n');
    else if (run_id !== undefined && isTerminal(unfinished[0]?.status ?? 'PENDING'))
      io.out.write(
        `run ${run_id} is ${unfinished[0]?.status} already; \`relay runs show ${run_id}\` tells more\n`,
      );
    exit([1, 4, 5].find((code) => exits.includes(code)) ?? 0);
  });
}

/** Oldest first. */
async function unfinishedRuns(api: RelayApi): Promise<readonly RunSummary[]> {
  const found: RunSummary[] = [];
  for (const status of UNFINISHED) {
    for (let cursor: string | undefined; ; ) {
      const page = await api.runs.list({ status, cursor, limit: PAGE });
      found.push(...page.items);
      if (page.next_cursor === null) break;
      cursor = page.next_cursor;
    }
  }
  return found.toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1));
}
