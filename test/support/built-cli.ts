/** The built command line as a process of its own. */
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the repository. */
export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const MAIN = join(ROOT, 'dist', 'cli', 'main.js');

/** What a process did. */
export interface ProcessResult {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** How a process is started. */
export interface ProcessOptions {
  readonly cwd?: string;
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The Node binary; by default the one that runs the tests. */
  readonly node?: string;
  readonly uid?: number;
}

/** Runs `relay ARGUMENTS` from `dist/`. */
export function builtRelay(argv: readonly string[], options: ProcessOptions = {}): ProcessResult {
  return runNode([MAIN, ...argv], options);
}

/** Runs Node with the given arguments and no settings of the person who runs the tests. */
export function runNode(argv: readonly string[], options: ProcessOptions = {}): ProcessResult {
  const { cwd, input = '', env = {}, node = process.execPath, uid } = options;
  const { status, stdout, stderr } = spawnSync(node, argv, {
    ...(cwd === undefined ? {} : { cwd }),
    ...(uid === undefined ? {} : { uid }),
    input,
    env: { PATH: process.env.PATH ?? '', HOME: cwd ?? '/nonexistent', ...env },
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  return { code: status, out: stdout ?? '', err: stderr ?? '' };
}
