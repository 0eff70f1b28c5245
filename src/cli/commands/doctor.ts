/** `relay doctor`: is this installation fit, and is its store in order? It only looks. */
import { examine } from '../../app/doctor.ts';
import { systemClock } from '../../base/clock.ts';
import { type BuildCommand, type CommonOptions, examples } from '../command.ts';
import { localConfig } from '../connect.ts';
import { colorsFor, printJson } from '../io.ts';
import { oneLine } from '../render/text.ts';

export const buildDoctor: BuildCommand = (command, { io, exit }) => {
  command
    .addHelpText(
      'after',
      `${examples([
        ['relay doctor', 'Node, SQLite, folder, store, schema, stuck tasks, stale leases'],
        ['relay doctor --json', 'for monitoring; exit 1 when something fails'],
      ])}`,
    )
    .action(async (options: CommonOptions) => {
      const { data, store } = await localConfig(options, io);
      const checks = await examine({ data, store, cwd: io.cwd, clock: systemClock });
      const isHealthy = checks.every(({ status }) => status !== 'fail');
      if (options.json === true) printJson(io, { healthy: isHealthy, checks });
      else {
        const colors = colorsFor(io.out, io.env);
        const marks = {
          ok: colors.green('✓ ok  '),
          warn: colors.yellow('! warn'),
          fail: colors.red('✗ fail'),
        };
        for (const { name, status, detail, hint } of checks) {
          io.out.write(`${marks[status]}  ${name.padEnd(10)}  ${oneLine(detail)}\n`);
          if (hint !== undefined) io.out.write(`${' '.repeat(20)}${colors.dim(oneLine(hint))}\n`);
        }
      }
      if (!isHealthy) exit(1);
    });
};
