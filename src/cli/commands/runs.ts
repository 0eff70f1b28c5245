/** `relay runs …`: look at runs and act on them (SPEC S13.2). What a run does next in the embedded store needs `relay resume`. */
import type { Command } from 'commander';
import type { BudgetRequest, RelayApi, RunView } from '../../app/api.ts';
import { systemClock } from '../../base/clock.ts';
import { parseDuration } from '../../base/duration.ts';
import { RelayError } from '../../base/errors.ts';
import { isTerminal, RUN_STATUSES } from '../../domain/states.ts';
import { readBudget } from '../budget-values.ts';
import { type BuildCommand, type CommandContext, type CommonOptions, examples } from '../command.ts';
import { withRelay } from '../connect.ts';
import { type RunHereOptions, runToEnd } from '../follow/run-to-end.ts';
import { watchRun } from '../follow/watch-run.ts';
import { readInputs } from '../input-values.ts';
import { colorsFor, printJson } from '../io.ts';
import { nextFlags } from '../next-flags.ts';
import { wholeRun } from '../pages.ts';
import { renderRun, renderTimeline } from '../render/run.ts';
import { renderRunTable } from '../render/run-table.ts';
import { plural } from '../render/text.ts';
import { addSubcommand, collect, wholeNumber } from '../subcommand.ts';

export const buildRuns: BuildCommand = (command, context) => {
  command.addHelpText(
    'after',
    examples([
      ['relay runs list --status FAILED', 'the newest first'],
      ['relay runs show RUN_ID', 'tasks, outputs and errors'],
      ['relay runs retry RUN_ID --follow', 'run what did not succeed again, here'],
    ]),
  );
  addList(command, context);
  addShow(command, context);
  addWatch(command, context);
  for (const action of ACTIONS) addAction(command, context, action);
  addReruns(command, context);
  addPrune(command, context);
};

interface ListOptions extends CommonOptions {
  readonly status?: string;
  readonly workflow?: string;
  readonly label?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

function addList(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'list', {
    summary: 'list runs, the newest first',
    examples: [
      ['relay runs list', 'the last 20'],
      ['relay runs list --status WAITING', 'those that wait for a person'],
      ['relay runs list --workflow brief --label team=docs', 'filters go together'],
    ],
  })
    .option('--status <status>', RUN_STATUSES.join(', '))
    .option('--workflow <name>', 'runs of this workflow')
    .option('--label <name=value>', 'runs with this label')
    .option('--limit <n>', 'how many, up to 1000 (default 20)', wholeNumber('--limit', 1))
    .option('--cursor <cursor>', 'go on where the last list ended')
    .action(async ({ status, workflow, label, limit = 20, cursor, ...options }: ListOptions) => {
      const wanted = RUN_STATUSES.find((known) => known === status?.toUpperCase());
      if (status !== undefined && wanted === undefined)
        throw new RelayError('USAGE', `there is no status ${status}`, { hint: RUN_STATUSES.join(', ') });
      await withRelay(options, io, async ({ api }) => {
        const page = await api.runs.list({ status: wanted, workflow, label, limit, cursor });
        if (options.json === true) printJson(io, page);
        else io.out.write(renderRunTable(page, drawing(io)));
      });
    });
}

function addShow(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'show', {
    summary: 'show a run: tasks, outputs, errors',
    examples: [
      ['relay runs show RUN_ID', 'everything about a run'],
      ['relay runs show RUN_ID --timeline', 'when each task was at work'],
      ['relay runs show RUN_ID --json', 'the same object as `relay run --json`'],
    ],
  })
    .argument('<run>', 'id of the run')
    .option('--timeline', 'show when each task was at work')
    .action(async (run_id: string, options: CommonOptions & { timeline?: boolean }) => {
      await withRelay(options, io, async ({ api }) => {
        const run = await wholeRun(api, run_id);
        if (options.json === true) printJson(io, run);
        else if (options.timeline === true) io.out.write(renderTimeline(run, drawing(io)));
        else io.out.write(renderRun(run, drawing(io)));
      });
    });
}

function addWatch(parent: Command, { io, exit }: CommandContext): void {
  addSubcommand(parent, 'watch', {
    summary: 'follow a run that lives in another process until it ends',
    examples: [['relay runs watch RUN_ID', 'Ctrl-C stops watching, not the run']],
  })
    .argument('<run>', 'id of the run')
    .action(async (run_id: string, options: CommonOptions) => {
      await withRelay(options, io, async ({ api }) => {
        const { run, exit: code } = await watchRun(api, run_id, options, io);
        if (options.json === true) printJson(io, run);
        exit(code);
      });
    });
}

interface Action {
  readonly name: string;
  readonly summary: string;
  readonly example: string;
  readonly act: (api: RelayApi, run_id: string) => Promise<RunView>;
  readonly done: string;
}

const ACTIONS: readonly Action[] = [
  {
    name: 'cancel',
    summary: 'cancel a run: everything unfinished is CANCELLED at once',
    example: 'wherever it runs',
    act: (api, id) => api.runs.cancel(id),
    done: 'is cancelled',
  },
  {
    name: 'pause',
    summary: 'hand out no more tasks of a run; what is at work finishes',
    example: 'until `relay runs resume`',
    act: (api, id) => api.runs.pause(id),
    done: 'is paused; `relay runs resume` ends the pause',
  },
  {
    name: 'resume',
    summary: 'end the pause of a run',
    example: 'hand out its tasks again',
    act: (api, id) => api.runs.resume(id),
    done: 'is not paused any more',
  },
];

function addAction(parent: Command, { io }: CommandContext, action: Action): void {
  addSubcommand(parent, action.name, {
    summary: action.summary,
    examples: [[`relay runs ${action.name} RUN_ID`, action.example]],
  })
    .argument('<run>', 'id of the run')
    .action(async (run_id: string, options: CommonOptions) => {
      await withRelay(options, io, async ({ api }) => {
        const run = await action.act(api, run_id);
        if (options.json === true) printJson(io, run);
        else io.out.write(`run ${run_id} ${action.done} (${run.status})\n`);
      });
    });
}

interface AgainOptions extends RunHereOptions {
  readonly follow?: boolean;
  readonly from?: string;
  readonly input?: readonly string[];
  readonly inputFile?: string;
  readonly budget?: BudgetRequest;
}

function addReruns(parent: Command, context: CommandContext): void {
  const { io } = context;
  const again = (name: string, summary: string, example: readonly [string, string]): Command =>
    addSubcommand(parent, name, { summary, examples: [example] })
      .argument('<run>', 'id of the run')
      .option('--follow', 'run it here to its end, and watch')
      .option('-y, --yes', 'with --follow: approve every gate that needs no form')
      .option(
        '--concurrency <n>',
        'with --follow: tasks at work at once (default 16)',
        wholeNumber('--concurrency', 1),
      );
  again('retry', 'run again what did not succeed, keeping the rest', [
    'relay runs retry RUN_ID --follow',
    'a FAILED or CANCELLED run',
  ])
    .option('--budget <amounts>', 'what the run may use in all: tokens=N, cost_usd=N or both', readBudget)
    .action((id: string, { budget, ...options }: AgainOptions) =>
      startAgain(options, context, (api) => api.runs.retry(id, { budget })),
    );
  again('rerun', 'run a task and everything below it again', [
    'relay runs rerun RUN_ID --from draft --follow',
    'conditions and gates included',
  ])
    .requiredOption('--from <task>', 'the task to start from')
    .action((id: string, options: AgainOptions) =>
      startAgain(options, context, (api) => api.runs.rerun(id, options.from ?? '')),
    );
  again('clone', 'start a new run of the same version, with other inputs if you like', [
    'relay runs clone RUN_ID -i topic=moons --follow',
    'inputs that are not named stay as they were',
  ])
    .option('-i, --input <name=value>', 'an input; may be repeated', collect)
    .option('--input-file <file>', 'inputs from a JSON or YAML file; - is stdin')
    .action((id: string, options: AgainOptions) =>
      startAgain(options, context, async (api) => {
        const { workflow_name, workflow_version } = await api.runs.get(id);
        const workflow =
          workflow_name === null
            ? null
            : await api.workflows.get(workflow_name, workflow_version ?? undefined);
        const { inputs } = (workflow?.definition ?? {}) as { inputs?: unknown };
        return api.runs.clone(id, await readInputs(options, inputs, io));
      }),
    );
}

/** Acts, then runs the run here or says how to. */
async function startAgain(
  options: AgainOptions,
  { io, exit }: CommandContext,
  act: (api: RelayApi) => Promise<RunView>,
): Promise<void> {
  await withRelay(options, io, async (connection) => {
    const run = await act(connection.api);
    const isJson = options.json === true;
    if (options.follow === true) {
      await connection.startEngine();
      const ended = await runToEnd(connection, run, { ...options, isFresh: false }, io);
      if (isJson) printJson(io, ended.run);
      exit(ended.exit);
    } else if (isJson) printJson(io, run);
    else {
      const left = Object.entries(run.counts)
        .filter(([name]) => ['pending', 'moving', 'waiting'].includes(name))
        .reduce((sum, [, count]) => sum + count, 0);
      const goesOn = isTerminal(run.status)
        ? ''
        : `; \`relay resume ${run.id}${nextFlags(options)}\` carries it on`;
      io.out.write(`run ${run.id} is ${run.status} with ${plural(left, 'task')} to do${goesOn}\n`);
    }
  });
}

const PRUNABLE = ['SUCCESS', 'FAILED', 'CANCELLED'] as const;

interface PruneOptions extends CommonOptions {
  readonly olderThan: string;
  readonly status?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

function addPrune(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'prune', {
    summary: 'remove runs that ended long ago, with everything that belongs to them',
    examples: [
      ['relay runs prune --older-than 30d', 'say what would go'],
      ['relay runs prune --older-than 30d --yes', 'remove it'],
      ['relay runs prune --older-than 7d --status SUCCESS --yes', 'only runs that succeeded'],
    ],
  })
    .requiredOption('--older-than <duration>', 'ended longer ago than this, for example 30d')
    .option('--status <list>', 'with commas between (default SUCCESS,FAILED,CANCELLED)')
    .option('--dry-run', 'only say what would go; this is the default')
    .option('-y, --yes', 'remove')
    .action(async (options: PruneOptions) => {
      const older_than_ms = parseDuration(options.olderThan);
      if (older_than_ms === null)
        throw new RelayError('USAGE', `\`${options.olderThan}\` is not a duration`, {
          hint: 'for example 12h or 30d',
        });
      const named = (options.status ?? PRUNABLE.join(',')).toUpperCase().split(',');
      const statuses = PRUNABLE.filter((status) => named.includes(status));
      const unfit = named.filter((status) => !PRUNABLE.some((known) => known === status));
      if (unfit.length > 0)
        throw new RelayError('USAGE', `runs that are ${unfit.join(', ')} cannot be pruned`, {
          hint: `${PRUNABLE.join(', ')} can`,
        });
      const dry_run = options.yes !== true || options.dryRun === true;
      await withRelay(options, io, async ({ api }) => {
        const run_ids = await pruneAll(api, { older_than_ms, statuses, dry_run });
        if (options.json === true) printJson(io, { items: run_ids, next_cursor: null, dry_run });
        else {
          for (const id of run_ids) io.out.write(`${id}\n`);
          const what = plural(run_ids.length, 'run');
          io.out.write(dry_run ? `${what} would be removed; --yes removes\n` : `${what} removed\n`);
        }
      });
    });
}

/** A dry run shows one page; a removal goes on in chunks until nothing is left. */
async function pruneAll(
  api: RelayApi,
  request: { older_than_ms: number; statuses: readonly (typeof PRUNABLE)[number][]; dry_run: boolean },
): Promise<readonly string[]> {
  const removed: string[] = [];
  for (;;) {
    const { run_ids } = await api.runs.prune({ ...request, limit: 100_000 });
    removed.push(...run_ids);
    if (request.dry_run || run_ids.length === 0) return removed;
  }
}

function drawing(io: CommandContext['io']) {
  return { colors: colorsFor(io.out, io.env), output: io.out, now: systemClock.now() };
}
