/** The reference page of the command line, from the help texts of the registered commands. */
import { Command } from 'commander';
import { addCommonOptions, type CommandEntry } from '../src/cli/command.ts';
import type { Io } from '../src/cli/io.ts';

const HELP_COLUMNS = 100;

/** One section per command with its help; options that every command takes are told once. */
export async function renderCliPage(commands: readonly CommandEntry[]): Promise<string> {
  const built = await Promise.all(commands.map(build));
  const list = built.map(
    (command, index) => `| [\`${command.name()}\`](#${command.name()}) | ${commands[index]?.summary ?? ''} |`,
  );
  const sections = built.map((command) => {
    const own = section('##', command);
    return [own, ...command.commands.map((each) => section('###', each))].join('\n');
  });
  return `# The command line

\`relay COMMAND [ARGUMENTS] [OPTIONS]\`. \`relay help COMMAND\` prints what is here.

| command | does |
|---|---|
${list.join('\n')}

## Options of every command

${fenced(helpOf(addCommonOptions(new Command('COMMAND'))))}
Exit codes: 0 ok · 1 run failed · 2 usage or validation · 3 not found · 4 cancelled · 5 waiting for a person · 6 cannot reach the
server or store. 70 is a bug: please report it.

${sections.join('\n')}`;
}

async function build({ name, summary, load }: CommandEntry): Promise<Command> {
  const described = `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
  const command = new Command(name).description(described);
  (await load())(command, { io: SILENT, exit: () => {} });
  if (command.commands.length > 0) command.helpCommand(false);
  new Command('relay').addCommand(command);
  return command;
}

function section(level: string, command: Command): string {
  const parent = command.parent?.name() === 'relay' ? '' : `${command.parent?.name()} `;
  return `${level} ${parent}${command.name()}\n\n${fenced(helpOf(command.helpOption(false)))}`;
}

function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
    getOutHelpWidth: () => HELP_COLUMNS,
  });
  command.outputHelp();
  return text;
}

function fenced(text: string): string {
  return `\`\`\`text\n${text.trim()}\n\`\`\`\n`;
}

const nowhere: Io['out'] = {
  write: () => {},
  isTerminal: false,
  size: () => ({ columns: HELP_COLUMNS, rows: 30 }),
};

/** Building a command touches nothing; only its action would. */
const SILENT: Io = {
  out: nowhere,
  err: nowhere,
  readStdin: async () => null,
  input: { isTerminal: false, readLine: async () => null },
  onInterrupt: () => () => {},
  quit: () => {},
  env: {},
  cwd: '.',
};
