/** A limit of one between two real processes, the first of which is killed while it is inside (SPEC S8.1, I13). */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { builtRelay, ROOT } from '../support/built-cli.ts';

const MAIN = join(ROOT, 'dist', 'cli', 'main.js');
/** Fails when another script that is alive is inside. */
const ENTER = 'test -f inside && kill -0 "$(cat inside)" && exit 9; echo $$ > inside;';

interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  out: string;
  until(text: string): Promise<void>;
}

function start(cwd: string, file: string): Started {
  const child = spawn(process.execPath, [MAIN, 'run', file], {
    cwd,
    env: { PATH: process.env.PATH ?? '', HOME: cwd },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const waiting = new Set<() => void>();
  const started: Started = {
    child,
    out: '',
    ended: new Promise((resolve) => child.once('exit', resolve)),
    until: (text) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!started.out.includes(text)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
  };
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      started.out += text;
      for (const look of waiting) look();
    });
  return started;
}

describe('a limit of one', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'relay-limits-'));
    writeFileSync(join(folder, 'relay.config.yaml'), 'limits: { gpu: { concurrency: 1 } }\n');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('is given back when its holder is killed, and never held by two', async () => {
    const task = (script: string): string =>
      `{ uses: shell, limits: [gpu], retry: { max_attempts: 1 }, with: { run: ${JSON.stringify(script)} } }`;
    writeFileSync(
      join(folder, 'hold.yaml'),
      `name: hold\ntasks:\n  a: ${task(`${ENTER} echo in > began; sleep 600`)}\n`,
    );
    const quick = `${ENTER} sleep 0.05; rm inside`;
    const names = ['a', 'b', 'c', 'd'];
    writeFileSync(
      join(folder, 'next.yaml'),
      `name: next\ntasks:\n${names.map((name) => `  ${name}: ${task(quick)}\n`).join('')}  free: { uses: shell, with: { run: "echo free" } }\n`,
    );
    const holder = start(folder, 'hold.yaml');
    await holder.until('RUNNING');
    const next = start(folder, 'next.yaml');
    // What needs no limit is not kept waiting by what does.
    await next.until('free  SUCCESS');
    await next.until('READY  limit gpu');
    expect(next.out).not.toMatch(/ [abcd] {2}RUNNING/);
    const shown = builtRelay(['limits'], { cwd: folder });
    expect(shown.out).toMatch(/^gpu +1 of 1 +4 *$/m);
    await expect.poll(() => existsSync(join(folder, 'began')), { timeout: 10_000 }).toBe(true);
    holder.child.kill('SIGKILL');
    await holder.ended;
    expect(await next.ended, next.out).toBe(0);
    expect(next.out).not.toContain('FAILED');
    expect(readFileSync(join(folder, 'began'), 'utf8')).toBe('in\n');
  }, 60_000);
});
