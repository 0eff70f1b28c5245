/** `relay migrate`: brings the store's schema up to date (SPEC S14.1). Other commands do it by themselves; this one says so. */
import { type BuildCommand, type CommonOptions, examples } from '../command.ts';
import { withRelay } from '../connect.ts';
import { printJson } from '../io.ts';

export const buildMigrate: BuildCommand = (command, { io }) => {
  command
    .addHelpText(
      'after',
      examples([
        ['relay migrate', 'the embedded store'],
        ['relay migrate --data /var/lib/relay', 'a store elsewhere, for example before a deployment'],
      ]),
    )
    .action(async (options: CommonOptions) => {
      await withRelay(options, io, async ({ local }) => {
        const { migrated } = local;
        if (options.json === true) printJson(io, { store: local.store.description, applied: migrated });
        else if (migrated.length === 0) io.out.write(`${local.store.description} is up to date\n`);
        else for (const name of migrated) io.out.write(`applied ${name}\n`);
      });
    });
};
