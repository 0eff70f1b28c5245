/** `relay workflows …`: the workflows that runs were started from, by name and version. */
import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { toYaml } from '../../definition/yaml-text.ts';
import { type BuildCommand, type CommandContext, type CommonOptions, examples } from '../command.ts';
import { withRelay } from '../connect.ts';
import { colorsFor, printJson } from '../io.ts';
import { renderTable } from '../render/table.ts';
import { agoText } from '../render/time.ts';
import { addSubcommand, wholeNumber } from '../subcommand.ts';

export const buildWorkflows: BuildCommand = (command, context) => {
  command.addHelpText(
    'after',
    examples([
      ['relay workflows list', 'names and newest versions'],
      ['relay workflows show research-brief --version 1', 'the definition as it was then'],
    ]),
  );
  addList(command, context);
  addShow(command, context);
};

function addList(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'list', {
    summary: 'list stored workflows with their newest version',
    examples: [['relay workflows list --json', 'with their definitions']],
  }).action(async (options: CommonOptions) => {
    await withRelay(options, io, async ({ api }) => {
      const page = await api.workflows.list();
      if (options.json === true) {
        printJson(io, page);
        return;
      }
      if (page.items.length === 0) {
        io.out.write('No workflows; `relay run FILE` stores the ones it runs.\n');
        return;
      }
      const now = systemClock.now();
      const columns = [
        { title: 'workflow', cell: (each: (typeof page.items)[number]) => each.name },
        {
          title: 'version',
          cell: (each: (typeof page.items)[number]) => String(each.version),
          isNumber: true,
        },
        {
          title: 'tasks',
          cell: (each: (typeof page.items)[number]) => taskCount(each.definition),
          isNumber: true,
        },
        { title: 'stored', cell: (each: (typeof page.items)[number]) => agoText(each.created_at, now) },
      ];
      io.out.write(renderTable(page.items, columns, { colors: colorsFor(io.out, io.env), output: io.out }));
    });
  });
}

function addShow(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'show', {
    summary: 'print a stored workflow',
    examples: [
      ['relay workflows show research-brief', 'the newest version, as YAML'],
      ['relay workflows show research-brief --version 2 --json', 'with version, hash and time'],
    ],
  })
    .argument('<name>', 'name of the workflow')
    .option('--version <n>', 'an older version', wholeNumber('--version', 1))
    .action(async (name: string, options: CommonOptions & { version?: number }) => {
      await withRelay(options, io, async ({ api }) => {
        const workflow = await api.workflows.get(name, options.version);
        if (options.json === true) printJson(io, workflow);
        else {
          const { version, created_at, definition } = workflow;
          io.out.write(`# version ${version}, stored ${created_at}\n${toYaml(definition)}`);
        }
      });
    });
}

function taskCount(definition: unknown): string {
  const { tasks } = definition as { tasks?: object };
  return String(Object.keys(tasks ?? {}).length);
}
