/** `relay dead-letters …`: tasks that failed for good: look, try again, take off the list (SPEC S5.6). */
import type { Command } from 'commander';
import type { Page, RelayApi, TaskView } from '../../app/api.ts';
import { systemClock } from '../../base/clock.ts';
import { RelayError } from '../../base/errors.ts';
import { type BuildCommand, type CommandContext, type CommonOptions, examples } from '../command.ts';
import { withRelay } from '../connect.ts';
import { findTask, TASK_ARGUMENTS } from '../find-task.ts';
import { colorsFor, type Io, printJson } from '../io.ts';
import { nextFlags } from '../next-flags.ts';
import { taskName } from '../render/run.ts';
import { renderTable } from '../render/table.ts';
import { renderTask } from '../render/task.ts';
import { plural } from '../render/text.ts';
import { agoText } from '../render/time.ts';
import { addSubcommand, wholeNumber } from '../subcommand.ts';

export const buildDeadLetters: BuildCommand = (command, context) => {
  command.addHelpText(
    'after',
    examples([
      ['relay dead-letters list', 'tasks whose attempts are used up, or that cannot succeed'],
      ['relay dead-letters replay --run RUN_ID', 'give all of a run another chance'],
      ['relay dead-letters purge --run RUN_ID --yes', 'take them off the list'],
    ]),
  );
  addList(command, context);
  addShow(command, context);
  addReplay(command, context);
  addPurge(command, context);
};

interface ListOptions extends CommonOptions {
  readonly run?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

function addList(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'list', {
    summary: 'list tasks that failed for good',
    examples: [
      ['relay dead-letters list', 'of all runs'],
      ['relay dead-letters list --run RUN_ID', 'of one run'],
    ],
  })
    .option('--run <run>', 'tasks of this run')
    .option('--limit <n>', 'how many, up to 1000 (default 100)', wholeNumber('--limit', 1))
    .option('--cursor <cursor>', 'go on where the last list ended')
    .action(async ({ run: run_id, limit = 100, cursor, ...options }: ListOptions) => {
      await withRelay(options, io, async ({ api }) => {
        const page = await api.deadLetters.list({ run_id, limit, cursor });
        if (options.json === true) printJson(io, page);
        else io.out.write(renderDead(page, io));
      });
    });
}

function renderDead({ items, next_cursor }: Page<TaskView>, io: Io): string {
  if (items.length === 0) return 'No dead tasks.\n';
  const colors = colorsFor(io.out, io.env);
  const now = systemClock.now();
  const table = renderTable(
    items,
    [
      { title: 'task', cell: (task) => ({ text: taskName(task), paint: colors.red }) },
      { title: 'run', cell: (task) => task.run_id },
      { title: 'failed', cell: (task) => agoText(task.finished_at, now), isNumber: true },
      { title: 'why', cell: (task) => task.reason ?? '' },
      {
        title: 'error',
        cell: (task) => (task.error === null ? '' : `${task.error.code}: ${task.error.message}`),
      },
    ],
    { colors, output: io.out },
  );
  return next_cursor === null ? table : `${table}${colors.dim(`more with --cursor ${next_cursor}`)}\n`;
}

function addShow(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'show', {
    summary: 'show a dead task with its attempts and errors',
    examples: [['relay dead-letters show RUN_ID draft', 'the same as `relay tasks show`']],
  })
    .argument(...TASK_ARGUMENTS.first)
    .argument(...TASK_ARGUMENTS.second)
    .action(async (id: string, name: string | undefined, options: CommonOptions) => {
      await withRelay(options, io, async ({ api }) => {
        const task = await findTask(api, id, name);
        const attempts = (await api.tasks.attempts(task.task_run_id)).items;
        if (options.json === true) printJson(io, { ...task, attempts });
        else {
          const drawing = { colors: colorsFor(io.out, io.env), output: io.out, now: systemClock.now() };
          io.out.write(renderTask({ task, attempts, input: null }, drawing));
        }
      });
    });
}

interface ReplayOptions extends CommonOptions {
  readonly run?: string;
  readonly resetAttempts?: boolean;
}

function addReplay(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'replay', {
    summary: 'give dead tasks another chance, with what was skipped because of them',
    examples: [
      ['relay dead-letters replay RUN_ID draft', 'one task'],
      ['relay dead-letters replay --run RUN_ID --reset-attempts', 'all of a run, attempts from zero'],
    ],
  })
    .argument('[task-run]', 'a task run; or a run, when a task follows')
    .argument('[task]', 'the task in that run')
    .option('--run <run>', 'all dead tasks of this run')
    .option('--reset-attempts', 'count their attempts from zero')
    .action(async (id: string | undefined, name: string | undefined, options: ReplayOptions) => {
      await withRelay(options, io, async ({ api }) => {
        const tasks = await chosen(api, { id, name, run_id: options.run });
        const items: TaskView[] = [];
        for (const { task_run_id } of tasks) {
          const reset_attempts = options.resetAttempts === true;
          items.push(await api.tasks.replay(task_run_id, { reset_attempts }));
        }
        if (options.json === true) printJson(io, { items, next_cursor: null });
        else {
          for (const task of items) io.out.write(`task ${taskName(task)} is ${task.status}\n`);
          const run = items[0]?.run_id;
          if (run !== undefined) io.out.write(`\`relay resume ${run}${nextFlags(options)}\` runs them\n`);
        }
      });
    });
}

interface PurgeOptions extends CommonOptions {
  readonly run?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

function addPurge(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'purge', {
    summary: 'take dead tasks off the list; they stay FAILED in their runs',
    examples: [
      ['relay dead-letters purge --run RUN_ID', 'say what would go'],
      ['relay dead-letters purge --run RUN_ID --yes', 'take them off'],
      ['relay dead-letters purge RUN_ID draft --yes', 'one task'],
    ],
  })
    .argument('[task-run]', 'a task run; or a run, when a task follows')
    .argument('[task]', 'the task in that run')
    .option('--run <run>', 'all dead tasks of this run')
    .option('--dry-run', 'only say what would go; this is the default')
    .option('-y, --yes', 'take them off')
    .action(async (id: string | undefined, name: string | undefined, options: PurgeOptions) => {
      const dry_run = options.yes !== true || options.dryRun === true;
      await withRelay(options, io, async ({ api }) => {
        const tasks = await chosen(api, { id, name, run_id: options.run });
        const task_run_ids = tasks.map((task) => task.task_run_id);
        const purged = await api.deadLetters.purge({ task_run_ids, dry_run });
        if (options.json === true) printJson(io, { items: purged.task_run_ids, next_cursor: null, dry_run });
        else {
          for (const task of tasks) io.out.write(`${task.run_id} ${taskName(task)}\n`);
          const what = plural(tasks.length, 'dead task');
          io.out.write(dry_run ? `${what} would go; --yes takes them off\n` : `${what} taken off the list\n`);
        }
      });
    });
}

/** One named task, or all of a run. All of everything must be asked for run by run. */
async function chosen(
  api: RelayApi,
  place: {
    readonly id: string | undefined;
    readonly name: string | undefined;
    readonly run_id: string | undefined;
  },
): Promise<readonly TaskView[]> {
  if (place.id !== undefined) return [await findTask(api, place.id, place.name)];
  if (place.run_id === undefined)
    throw new RelayError('USAGE', 'name a task, or a run with --run', {
      hint: '`relay dead-letters list` shows them',
    });
  const tasks: TaskView[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await api.deadLetters.list({ run_id: place.run_id, limit: 1_000, cursor });
    tasks.push(...page.items);
    if (page.next_cursor === null) return tasks;
    cursor = page.next_cursor;
  }
}
