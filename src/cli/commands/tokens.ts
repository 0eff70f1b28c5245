/** `relay tokens …`: who may call the server (SPEC S14.3). */
import type { Command } from 'commander';
import type { Scope, TokenView } from '../../app/api.ts';
import { systemClock } from '../../base/clock.ts';
import { RelayError } from '../../base/errors.ts';
import { type BuildCommand, type CommandContext, type CommonOptions, examples } from '../command.ts';
import { withRelay } from '../connect.ts';
import { colorsFor, printJson } from '../io.ts';
import { type Column, renderTable } from '../render/table.ts';
import { agoText } from '../render/time.ts';
import { addSubcommand } from '../subcommand.ts';

const SCOPES: readonly Scope[] = ['read', 'operate', 'worker', 'admin'];

export const buildTokens: BuildCommand = (command, context) => {
  command.addHelpText(
    'after',
    examples([
      ['relay tokens create ci --scopes operate', 'for a program that starts runs'],
      ['relay tokens create gpu-box --scopes worker', 'for a worker'],
      ['relay tokens list', 'who has one, and when it was last used'],
    ]),
  );
  addCreate(command, context);
  addList(command, context);
  addRevoke(command, context);
};

function addCreate(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'create', {
    summary: 'make a token; it is shown this once',
    examples: [['relay tokens create ci --scopes read,operate', 'scopes: read operate worker admin']],
  })
    .argument('<name>', 'whose it is; written down for what its owner does')
    .requiredOption('--scopes <list>', 'with commas between: read, operate, worker, admin')
    .action(async (name: string, options: CommonOptions & { readonly scopes: string }) => {
      const scopes = readScopes(options.scopes);
      if (!/^[\w.@-]{1,100}$/.test(name))
        throw new RelayError('USAGE', `\`${name}\` cannot be the name of a token`, {
          hint: 'letters, digits, and . @ - _',
        });
      await withRelay(options, io, async ({ api }) => {
        const made = await api.tokens.create({ name, scopes });
        if (options.json === true) printJson(io, made);
        else {
          io.err.write(`token ${made.id} for ${name} (${scopes.join(', ')}); it is not shown again\n`);
          io.out.write(`${made.token}\n`);
        }
      });
    });
}

function addList(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'list', {
    summary: 'list tokens, without what they are',
    examples: [['relay tokens list --json', 'for programs']],
  }).action(async (options: CommonOptions) => {
    await withRelay(options, io, async ({ api }) => {
      const page = await api.tokens.list();
      if (options.json === true) {
        printJson(io, page);
        return;
      }
      if (page.items.length === 0) {
        io.out.write('No tokens; `relay tokens create NAME --scopes read` makes one.\n');
        return;
      }
      const now = systemClock.now();
      const columns: readonly Column<TokenView>[] = [
        { title: 'id', cell: ({ id }) => id },
        { title: 'name', cell: ({ name }) => name },
        { title: 'scopes', cell: ({ scopes }) => scopes.join(' ') },
        { title: 'last used', cell: ({ last_used_at }) => agoText(last_used_at, now) },
        { title: '', cell: ({ revoked_at }) => (revoked_at === null ? '' : 'revoked') },
      ];
      io.out.write(renderTable(page.items, columns, { colors: colorsFor(io.out, io.env), output: io.out }));
    });
  });
}

function addRevoke(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'revoke', {
    summary: 'end a token',
    examples: [['relay tokens revoke TOKEN_ID', 'the id, not the token']],
  })
    .argument('<id>', 'id of the token')
    .action(async (id: string, options: CommonOptions) => {
      await withRelay(options, io, async ({ api }) => {
        const revoked = await api.tokens.revoke(id);
        if (options.json === true) printJson(io, revoked);
        else io.out.write(`token ${id} of ${revoked.name} has ended\n`);
      });
    });
}

function readScopes(list: string): readonly Scope[] {
  return list.split(',').map((text) => {
    const scope = SCOPES.find((known) => known === text.trim());
    if (scope !== undefined) return scope;
    throw new RelayError('USAGE', `there is no scope \`${text}\``, { hint: SCOPES.join(', ') });
  });
}
