/** The built program as a server and as workers, in processes of their own that a test can kill. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './built-cli.ts';
import { eventually } from './processes.ts';

const MAIN = join(ROOT, 'dist', 'cli', 'main.js');
const START_MS = 30_000;

/** A process that ends with the test. */
export interface Running {
  readonly process: ChildProcess;
  /** Everything it has printed. */
  readonly printed: () => string;
  /** Resolves with its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
}

/** Starts a command of the built program, or another program. */
export function start(
  argv: readonly string[],
  options: { readonly cwd: string; readonly program?: string; readonly env?: Record<string, string> },
): Running {
  const { cwd, program, env = {} } = options;
  const [command, args] = program === undefined ? [process.execPath, [MAIN, ...argv]] : [program, argv];
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env.PATH ?? '', HOME: cwd, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  const ended = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  return { process: child, printed: () => printed, ended };
}

/** Starts `relay serve` and resolves once it answers. */
export async function startServer(
  cwd: string,
  argv: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<Running & { readonly url: string }> {
  const ready = join(cwd, 'ready.json');
  rmSync(ready, { force: true });
  const running = start(['serve', '--ready-file', ready, ...argv], { cwd, env });
  await eventually(() => {
    const { exitCode } = running.process;
    if (exitCode !== null) throw new TypeError(`the server ended with ${exitCode}: ${running.printed()}`);
    return existsSync(ready);
  }, START_MS);
  const { url } = JSON.parse(readFileSync(ready, 'utf8')) as { url: string };
  return { ...running, url };
}

/** The token that the server of a folder has made. */
export function tokenOf(cwd: string): string {
  return readFileSync(join(cwd, '.relay', 'token'), 'utf8').trim();
}
