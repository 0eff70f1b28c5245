/** What a command is: a name for the list, and a module that is loaded only when the command is called. */
import type { Command } from 'commander';
import type { LoadedConfig } from '../app/config.ts';
import type { Io } from './io.ts';

/** What a command gets to work with. */
export interface CommandContext {
  readonly io: Io;
  /** Sets the exit code of a call that neither failed nor went all well. */
  readonly exit: (code: number) => void;
}

/** Adds arguments, options, help and the action to a fresh command. */
export type BuildCommand = (command: Command, context: CommandContext) => void;

/** A line of the registry. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<BuildCommand>;
}

/** Options that every command takes. */
export interface CommonOptions {
  readonly json?: boolean;
  readonly data?: string;
  readonly store?: string;
  readonly broker?: string;
  readonly server?: string;
  readonly token?: string;
  readonly config?: string;
}

/** Adds the options that all commands have, below the command's own. */
export function addCommonOptions(command: Command): Command {
  return command
    .option('--json', 'print JSON and nothing else on stdout')
    .helpOption('-h, --help', 'show this help')
    .optionsGroup('Settings (also as RELAY_* variables and in the config file):')
    .option('--config <file>', 'config file (default ./relay.config.yaml)')
    .option('--data <dir>', 'folder of the embedded store (default .relay)')
    .option('--store <url>', 'sqlite:PATH or postgres://…')
    .option('--broker <url>', 'none, redis://… or amqp://…')
    .option('--server <url>', 'a Relay server to talk to')
    .option('--token <token>', 'token for the server');
}

/** The settings in force for a command; warnings go to stderr. */
export async function configFor(options: CommonOptions, io: Io): Promise<LoadedConfig> {
  const { config, data, store, broker, server, token } = options;
  const { loadConfig } = await import('../app/config.ts');
  const flags = { config, data, store, broker, server, token };
  const loaded = loadConfig({ flags, env: io.env, cwd: io.cwd });
  for (const warning of loaded.warnings) io.err.write(`warning: ${warning}\n`);
  return loaded;
}

/** Examples under a command's help. */
export function examples(lines: readonly (readonly [string, string])[]): string {
  const width = Math.max(...lines.map(([command]) => command.length));
  const rows = lines.map(([command, what]) => `  ${command.padEnd(width)}   ${what}`);
  return `\nExamples:\n${rows.join('\n')}\n`;
}
