/** Real processes, seen from outside: who is in a group, and a program that a test can kill. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
const POLL_MS = 10;

/** The living members of a process group; those that only wait to be reaped are dead. */
export function groupMembers(group: number): readonly number[] {
  return execFileSync('ps', ['-A', '-o', 'pid=,pgid=,stat='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, pgid, state]) => Number(pgid) === group && !state?.startsWith('Z'))
    .map(([pid]) => Number(pid));
}

/** Resolves when the condition holds. For things outside this process, which no signal announces. */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  withinMs = 10_000,
): Promise<void> {
  const end = performance.now() + withinMs;
  while (performance.now() < end) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new TypeError(`did not come true within ${withinMs} ms: ${condition}`);
}

/** Starts a TypeScript program of this folder and resolves with the first match in what it prints. */
export async function startProgram(
  file: string,
  args: readonly string[],
  pattern: RegExp,
): Promise<{ program: ChildProcess; match: RegExpExecArray }> {
  const program = spawn(process.execPath, ['--import', 'tsx', join(HERE, file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  const match = await new Promise<RegExpExecArray>((resolve, reject) => {
    program.once('exit', (code) => reject(new TypeError(`${file} ended with ${code}: ${printed}`)));
    program.stdout?.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      const found = pattern.exec(printed);
      if (found !== null) resolve(found);
    });
  });
  return { program, match };
}
