/** `relay workers …`: who works on this store, and asking one to leave. */
import type { Command } from 'commander';
import type { WorkerView } from '../../app/api.ts';
import { systemClock } from '../../base/clock.ts';
import { type BuildCommand, type CommandContext, type CommonOptions, examples } from '../command.ts';
import { withRelay } from '../connect.ts';
import { colorsFor, printJson } from '../io.ts';
import { type Column, renderTable } from '../render/table.ts';
import { agoText } from '../render/time.ts';
import { addSubcommand } from '../subcommand.ts';

export const buildWorkers: BuildCommand = (command, context) => {
  command.addHelpText(
    'after',
    examples([
      ['relay workers list', 'with their handlers and labels'],
      ['relay workers drain WORKER_ID', 'let it finish and leave'],
    ]),
  );
  addList(command, context);
  addDrain(command, context);
};

function addList(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'list', {
    summary: 'list workers',
    examples: [['relay workers list --json', 'for programs']],
  }).action(async (options: CommonOptions) => {
    await withRelay(options, io, async ({ api }) => {
      const page = await api.workers.list();
      if (options.json === true) {
        printJson(io, page);
        return;
      }
      if (page.items.length === 0) {
        io.out.write('No workers.\n');
        return;
      }
      const now = systemClock.now();
      const columns: readonly Column<WorkerView>[] = [
        { title: 'id', cell: ({ id }) => id },
        { title: 'status', cell: ({ status }) => status },
        { title: 'seen', cell: ({ seen_at }) => agoText(seen_at, now) },
        { title: 'pool', cell: ({ pool }) => pool ?? '' },
        { title: 'labels', cell: ({ labels }) => labelText(labels) },
        { title: 'handlers', cell: ({ handlers }) => handlers.join(' ') },
      ];
      io.out.write(renderTable(page.items, columns, { colors: colorsFor(io.out, io.env), output: io.out }));
    });
  });
}

function addDrain(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'drain', {
    summary: 'ask a worker to finish and leave',
    examples: [['relay workers drain WORKER_ID', 'it hears of it with its next call']],
  })
    .argument('<id>', 'id of the worker')
    .action(async (id: string, options: CommonOptions) => {
      await withRelay(options, io, async ({ api }) => {
        const worker = await api.workers.drain(id);
        if (options.json === true) printJson(io, worker);
        else io.out.write(`worker ${id} has been asked to leave\n`);
      });
    });
}

function labelText(labels: WorkerView['labels']): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}
