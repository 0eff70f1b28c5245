/** `relay init [DIR]`: a commented starter project. It never overwrites without being told to. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { RelayError } from '../../base/errors.ts';
import { type BuildCommand, type CommonOptions, examples } from '../command.ts';
import { type Colors, colorsFor, printJson } from '../io.ts';
import { IGNORED, starterFiles } from '../starter.ts';

interface InitOptions extends CommonOptions {
  readonly dryRun?: boolean;
  readonly force?: boolean;
}

export const buildInit: BuildCommand = (command, { io }) => {
  command
    .argument('[dir]', 'folder of the project; made when missing', '.')
    .option('--dry-run', 'list the files without writing them')
    .option('--force', 'overwrite files that exist')
    .addHelpText(
      'after',
      examples([
        ['relay init', 'start a project in this folder'],
        ['relay init briefs', 'start it in a new folder'],
        ['relay init briefs --dry-run', 'see which files it would write'],
      ]),
    )
    .action((dir: string, options: InitOptions) => {
      const root = resolve(io.cwd, dir);
      const isDryRun = options.dryRun === true;
      const files = plan(root);
      const shown = files.map((file) => relative(io.cwd, file.path));
      const existing = shown.filter((_, index) => files[index]?.isNew === false);
      if (existing.length > 0 && options.force !== true) {
        throw new RelayError('FILE_EXISTS', `these files exist already: ${existing.join(', ')}`);
      }
      if (!isDryRun) for (const file of files) write(file);
      if (options.json === true) printJson(io, { dir: root, files: shown, dry_run: isDryRun });
      else io.out.write(report(shown, isDryRun, colorsFor(io.out, io.env)));
    });
};

interface PlannedFile {
  readonly path: string;
  readonly text: string;
  readonly isNew: boolean;
}

/** What would be written. A .gitignore of the project's own is added to, never replaced. */
function plan(root: string): readonly PlannedFile[] {
  const files = starterFiles().map(({ path, text }) => {
    const full = join(root, path);
    return { path: full, text, isNew: !existsSync(full) };
  });
  const path = join(root, '.gitignore');
  const own = existsSync(path) ? readOwn(path) : '';
  if (own.split(/\r?\n/).includes(IGNORED)) return files;
  const text = own === '' || own.endsWith('\n') ? own : `${own}\n`;
  return [
    ...files,
    { path, text: `${text}# The embedded store, blobs and the token of Relay.\n${IGNORED}\n`, isNew: true },
  ];
}

function readOwn(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new RelayError('FILE_NOT_READABLE', `${path} cannot be read: ${(cause as Error).message}`, {
      cause,
    });
  }
}

function write({ path, text }: PlannedFile): void {
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  } catch (cause) {
    throw new RelayError('FILE_NOT_WRITABLE', `${path} cannot be written: ${(cause as Error).message}`, {
      cause,
    });
  }
}

function report(files: readonly string[], isDryRun: boolean, colors: Colors): string {
  const list = files.map((file) => `  ${colors.green(isDryRun ? '·' : '+')} ${file}`).join('\n');
  const hello = files.find((file) => file.endsWith('hello.yaml')) ?? '';
  const next = `Next:\n  relay validate ${hello}\n  relay graph ${hello}\n  relay run ${hello}`;
  return `${isDryRun ? 'Would write' : 'Wrote'}:\n${list}\n\n${isDryRun ? 'Nothing was written.' : next}\n`;
}
