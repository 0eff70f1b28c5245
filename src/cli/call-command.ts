/** Lets commander read a command's arguments, but keeps the words of errors, the output and the exit code ours. */
import { Command, CommanderError } from 'commander';
import { RelayError } from '../base/errors.ts';
import { addCommonOptions, type CommandEntry } from './command.ts';
import { type Io, printJson } from './io.ts';

/** Calls one command and returns its exit code. */
export async function callCommand(
  entry: CommandEntry,
  argv: readonly string[],
  { io, isJson }: { io: Io; isJson: boolean },
): Promise<number> {
  const command = new Command(entry.name).description(`${capitalised(entry.summary)}.`);
  let exitCode = 0;
  const exit = (code: number): void => {
    exitCode = code;
  };
  (await entry.load())(command, { io, exit });
  const subcommands = command.commands;
  for (const each of [command, ...subcommands]) addCommonOptions(each);
  if (subcommands.length > 0) command.helpCommand(false).hook('preAction', inheritOptions);
  const program = new Command('relay').addCommand(command);
  let help = '';
  const writeOut = (text: string): void => {
    help += text;
  };
  for (const each of [program, command, ...subcommands]) {
    each.exitOverride().configureOutput({ writeOut, writeErr: () => {}, getOutHelpWidth: () => 100 });
  }
  try {
    await program.parseAsync([entry.name, ...argv], { from: 'user' });
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    if (thrown.code === 'commander.help') throw missingSubcommand(command);
    if (thrown.exitCode !== 0)
      throw usageError(thrown, [entry.name, calledSubcommand(command, argv)].join(' ').trim());
    if (isJson) printJson(io, { help });
    else io.out.write(help);
  }
  return exitCode;
}

/** Options before the name of a subcommand count as if they stood behind it: `relay runs --json list`. */
function inheritOptions(parent: Command, action: Command): void {
  for (const [name, value] of Object.entries(parent.opts())) {
    if (action.getOptionValueSource(name) === undefined) action.setOptionValue(name, value);
  }
}

function calledSubcommand(command: Command, argv: readonly string[]): string {
  const names = new Set(command.commands.map((each) => each.name()));
  return argv.find((argument) => names.has(argument)) ?? '';
}

function missingSubcommand(command: Command): RelayError {
  const names = command.commands.map((each) => each.name()).join(', ');
  const hint = `\`relay help ${command.name()}\` shows how each is used`;
  return new RelayError('USAGE', `relay ${command.name()} needs to know what to do: ${names}`, { hint });
}

function usageError(thrown: CommanderError, name: string): RelayError {
  const [message = '', suggestion] = thrown.message.replace(/^error: /, '').split('\n(Did you mean ');
  const hint =
    suggestion === undefined
      ? `\`relay help ${name}\` shows how it is used`
      : `did you mean \`${suggestion.replace(/\?\)$/, '')}\`?`;
  return new RelayError('USAGE', message.replaceAll('\n', ' '), { hint });
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
