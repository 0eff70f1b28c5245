/** `relay limits`: named limits, how much of each is used, and how many tasks wait for it (SPEC S8.1). */
import type { LimitView } from '../../app/api.ts';
import { type BuildCommand, type CommonOptions, examples } from '../command.ts';
import { withRelay } from '../connect.ts';
import { colorsFor, printJson } from '../io.ts';
import { type Column, renderTable } from '../render/table.ts';

export const buildLimits: BuildCommand = (command, { io }) => {
  command
    .addHelpText(
      'after',
      examples([
        ['relay limits', 'what is used and who waits'],
        ['relay limits --json', 'for programs'],
      ]),
    )
    .action(async (options: CommonOptions) => {
      await withRelay(options, io, async ({ api }) => {
        const page = await api.limits.list();
        if (options.json === true) printJson(io, page);
        else if (page.items.length === 0)
          io.out.write('No limits. They are set under `limits` in the config file.\n');
        else
          io.out.write(
            renderTable(page.items, COLUMNS, { colors: colorsFor(io.out, io.env), output: io.out }),
          );
      });
    });
};

const COLUMNS: readonly Column<LimitView>[] = [
  { title: 'name', cell: ({ name }) => name },
  {
    title: 'at once',
    cell: ({ concurrency, in_use }) => (concurrency === null ? `${in_use}` : `${in_use} of ${concurrency}`),
  },
  { title: 'requests', cell: (limit) => windowText(limit, 'requests') },
  { title: 'tokens', cell: (limit) => windowText(limit, 'tokens') },
  { title: 'waiting', cell: ({ waiting }) => String(waiting), isNumber: true },
  { title: 'models', cell: ({ models }) => models.join(' ') },
];

function windowText({ windows }: LimitView, wanted: 'requests' | 'tokens'): string {
  return windows
    .filter(({ unit }) => unit === wanted)
    .map(({ used, max, per }) => `${used.toLocaleString('en')} of ${max.toLocaleString('en')} in ${per}`)
    .join(', ');
}
