/** One call of the command line, as a function: arguments in, exit code out. Nothing here ends the process. */
import { ERROR_CODES } from '../base/error-codes.ts';
import { RelayError, toRelayError } from '../base/errors.ts';
import { didYouMean } from '../base/suggest.ts';
import { examples } from './command.ts';
import { COMMANDS } from './commands/registry.ts';
import { colorsFor, type Io, printJson } from './io.ts';
import { VERSION } from './version.ts';

/** Runs `relay ARGUMENTS` and returns the exit code (SPEC S13.2). */
export async function runCli(argv: readonly string[], io: Io): Promise<number> {
  const isJson = argv.includes('--json');
  try {
    return await dispatch(argv, { io, isJson });
  } catch (thrown) {
    const error = toRelayError(thrown);
    if (isJson) printJson(io, error.toShape());
    else printError(error, io);
    return ERROR_CODES[error.code].exit;
  }
}

interface Call {
  readonly io: Io;
  readonly isJson: boolean;
}

async function dispatch(argv: readonly string[], call: Call): Promise<number> {
  const [first = '--help', ...rest] = argv.filter((argument, index) => index > 0 || argument !== '--json');
  if (first === '--version' || first === '-V') return printText('version', VERSION, call);
  const isHelp = first === '--help' || first === '-h' || first === 'help';
  const name = isHelp ? rest.find((argument) => !argument.startsWith('-')) : first;
  if (name === undefined) return printText('help', rootHelp(), call);
  const entry = COMMANDS.find((command) => command.name === name);
  if (entry === undefined) throw noSuchCommand(name);
  const { callCommand } = await import('./call-command.ts');
  const topics = rest.filter((argument) => !argument.startsWith('-') && argument !== name);
  return callCommand(entry, isHelp ? [...topics, '--help'] : rest, call);
}

/** Text for people; under `--json` it is the value of `key`, so that stdout is JSON there too. */
function printText(key: string, text: string, { io, isJson }: Call): number {
  if (isJson) printJson(io, { [key]: text });
  else io.out.write(`${text}\n`);
  return 0;
}

function noSuchCommand(name: string): RelayError {
  const names = COMMANDS.map((command) => command.name);
  const isOption = name.startsWith('-');
  const hint = isOption
    ? 'the command comes first: relay COMMAND [ARGUMENTS] [OPTIONS]'
    : (didYouMean(name, names) ?? '`relay --help` lists the commands');
  return new RelayError('USAGE', `there is no command \`${name}\``, { hint });
}

function printError(error: RelayError, io: Io): void {
  const colors = colorsFor(io.err, io.env);
  io.err.write(`${colors.red(colors.bold('error'))}${colors.bold(`: ${error.message}`)}\n`);
  if (error.hint !== '') io.err.write(`  ${colors.blue('=')} ${error.hint}\n`);
  const isBug = error.code === 'INTERNAL' && io.env.RELAY_LOG === 'debug' && error.cause instanceof Error;
  if (isBug) io.err.write(`${(error.cause as Error).stack}\n`);
}

function rootHelp(): string {
  const width = Math.max(...COMMANDS.map((command) => command.name.length));
  const list = COMMANDS.map((command) => `  ${command.name.padEnd(width)}   ${command.summary}`);
  return [
    'relay: a durable orchestrator for AI and compute workflows',
    '',
    'Usage: relay COMMAND [ARGUMENTS] [OPTIONS]',
    '',
    'Commands:',
    ...list,
    examples([
      ['relay init', 'write a starter project into this folder'],
      ['relay validate flow.yaml', 'check a workflow and explain every mistake'],
      ['relay run flow.yaml', 'run it to its end, and watch'],
      ['relay runs list', 'what ran, and how it went'],
      ['relay help validate', 'how one command is used'],
    ]),
    'Every command takes --json, which prints JSON and nothing else on stdout.',
    '',
    'Exit codes: 0 ok · 1 run failed · 2 usage or validation · 3 not found · 4 cancelled',
    '            5 waiting for a person · 6 cannot reach the server or store',
  ].join('\n');
}
