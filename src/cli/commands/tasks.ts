/** `relay tasks …`: one task run from close by: attempts, input, logs, artifacts, another chance (SPEC S13.2). */
import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { isTerminal } from '../../domain/states.ts';
import { type BuildCommand, type CommandContext, type CommonOptions, examples } from '../command.ts';
import { withRelay } from '../connect.ts';
import { findTask, TASK_ARGUMENTS } from '../find-task.ts';
import { followLogs } from '../follow/follow-logs.ts';
import { colorsFor, printJson } from '../io.ts';
import { nextFlags } from '../next-flags.ts';
import { taskName } from '../render/run.ts';
import { renderArtifactTable, renderTask } from '../render/task.ts';
import { printArtifact, saveArtifacts } from '../save-artifacts.ts';
import { addSubcommand } from '../subcommand.ts';

export const buildTasks: BuildCommand = (command, context) => {
  command.addHelpText(
    'after',
    examples([
      ['relay tasks show RUN_ID draft', 'by run and task'],
      ['relay tasks logs TASK_RUN_ID --follow', 'by its own id'],
      ['relay tasks artifacts RUN_ID render --save out', 'files that it left'],
    ]),
  );
  addShow(command, context);
  addLogs(command, context);
  addArtifacts(command, context);
  addReplay(command, context);
};

function taskCommand(parent: Command, name: string, what: Parameters<typeof addSubcommand>[2]): Command {
  return addSubcommand(parent, name, what)
    .argument(...TASK_ARGUMENTS.first)
    .argument(...TASK_ARGUMENTS.second);
}

function addShow(parent: Command, { io }: CommandContext): void {
  taskCommand(parent, 'show', {
    summary: 'show a task: attempts, input, output, error and what to do',
    examples: [['relay tasks show RUN_ID draft', 'secrets in its input are masked']],
  }).action(async (id: string, name: string | undefined, options: CommonOptions) => {
    await withRelay(options, io, async ({ api }) => {
      const task = await findTask(api, id, name);
      const [attempts, input] = [
        (await api.tasks.attempts(task.task_run_id)).items,
        // The input of a task whose parents have not ended cannot be known yet.
        await api.tasks.input(task.task_run_id).catch(() => null),
      ];
      if (options.json === true) printJson(io, { ...task, input, attempts });
      else {
        const drawing = { colors: colorsFor(io.out, io.env), output: io.out, now: systemClock.now() };
        io.out.write(renderTask({ task, attempts, input }, drawing));
      }
    });
  });
}

function addLogs(parent: Command, { io }: CommandContext): void {
  taskCommand(parent, 'logs', {
    summary: 'print what a task has logged, all attempts in order',
    examples: [
      ['relay tasks logs RUN_ID build', 'everything so far'],
      ['relay tasks logs RUN_ID build --follow', 'until the task ends'],
      ['relay tasks logs RUN_ID build --json --follow', 'one object a line'],
    ],
  })
    .option('-f, --follow', 'go on until the task ends')
    .action(async (id: string, name: string | undefined, options: CommonOptions & { follow?: boolean }) => {
      await withRelay(options, io, async ({ api }) => {
        const task = await findTask(api, id, name);
        const isFollowed = options.follow === true && !isTerminal(task.status);
        await followLogs(api, task.task_run_id, { isFollowed, isJson: options.json === true }, io);
      });
    });
}

interface ArtifactOptions extends CommonOptions {
  readonly save?: string;
  readonly raw?: string;
}

function addArtifacts(parent: Command, { io }: CommandContext): void {
  taskCommand(parent, 'artifacts', {
    summary: 'list, print or save what a task has left: its output and files',
    examples: [
      ['relay tasks artifacts RUN_ID render', 'names, types and sizes'],
      ['relay tasks artifacts RUN_ID render --save out', 'into a folder'],
      ['relay tasks artifacts RUN_ID render --raw page.html > page.html', 'one of them, as it is'],
    ],
  })
    .option('--save <dir>', 'write them into this folder')
    .option('--raw <name>', 'print one of them and nothing else')
    .action(async (id: string, name: string | undefined, options: ArtifactOptions) => {
      await withRelay(options, io, async ({ api }) => {
        const task = await findTask(api, id, name);
        const page = await api.tasks.artifacts(task.task_run_id);
        if (options.raw !== undefined) {
          await printArtifact(api, page.items, options.raw, io);
          return;
        }
        const saved =
          options.save === undefined ? null : await saveArtifacts(api, page.items, options.save, io);
        if (options.json === true) printJson(io, saved === null ? page : { ...page, saved });
        else if (saved !== null) for (const path of saved) io.out.write(`${path}\n`);
        else {
          const drawing = { colors: colorsFor(io.out, io.env), output: io.out, now: systemClock.now() };
          io.out.write(renderArtifactTable(page.items, drawing));
        }
      });
    });
}

function addReplay(parent: Command, { io }: CommandContext): void {
  taskCommand(parent, 'replay', {
    summary: 'give a FAILED task another chance, with what was skipped because of it',
    examples: [['relay tasks replay RUN_ID draft --reset-attempts', 'with all its attempts anew']],
  })
    .option('--reset-attempts', 'count its attempts from zero')
    .action(
      async (id: string, name: string | undefined, options: CommonOptions & { resetAttempts?: boolean }) => {
        await withRelay(options, io, async ({ api }) => {
          const found = await findTask(api, id, name);
          const task = await api.tasks.replay(found.task_run_id, {
            reset_attempts: options.resetAttempts === true,
          });
          if (options.json === true) printJson(io, task);
          else {
            const next = `\`relay resume ${task.run_id}${nextFlags(options)}\` runs it`;
            io.out.write(`task ${taskName(task)} is ${task.status}; ${next}\n`);
          }
        });
      },
    );
}
