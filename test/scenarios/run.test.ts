/** The built `relay run` in a shell's and a person's hands: exit codes, pure JSON, a terminal with gates and Ctrl-C. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { builtRelay, ROOT } from '../support/built-cli.ts';
import { HAS_TMUX, Terminal } from '../support/terminal.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-run-'));
const FILES = {
  good: 'tasks:\n  a: { uses: transform, with: { value: 1 } }\n  b: { uses: transform, with: { value: "{{ tasks.a.output + 1 }}" } }\noutputs: { n: "{{ tasks.b.output }}" }\n',
  bad: 'tasks: { a: { uses: shell, with: { run: "echo loud; exit 7" }, retry: { max_attempts: 1 } } }\n',
  gate: 'tasks: { a: { gate: { message: "Really go on?" }, uses: transform, with: { value: 1 } } }\n',
  sleepy: 'tasks: { a: { uses: shell, with: { run: "echo awake; sleep 30" } } }\n',
  deaf: `tasks: { a: { uses: shell, with: { run: "trap '' TERM; echo deaf; while true; do sleep 1; done" } } }\n`,
};

beforeAll(() => {
  for (const [name, text] of Object.entries(FILES))
    writeFileSync(join(folder, `${name}.yaml`), `name: ${name}\n${text}`);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const relay = (...argv: readonly string[]) => builtRelay(argv, { cwd: folder });

// SPEC S13.2
describe('relay run in a shell', () => {
  it('ends with 0, 1, 2, 3, 5 or 6 as the run went, with pure JSON on stdout', () => {
    const status = (name: string): unknown => {
      const { code, out } = relay('run', name, '--json');
      const answer = JSON.parse(out) as { status?: string; error?: { code: string } };
      return [code, answer.status ?? answer.error?.code];
    };
    expect(status('good.yaml')).toEqual([0, 'SUCCESS']);
    expect(status('bad.yaml')).toEqual([1, 'FAILED']);
    expect(status('none.yaml')).toEqual([2, 'FILE_NOT_FOUND']);
    expect(status('none')).toEqual([3, 'NOT_FOUND']);
    expect(status('gate.yaml')).toEqual([5, 'WAITING']);
    writeFileSync(join(folder, 'file'), 'not a store');
    const away = builtRelay(['run', 'good.yaml', '--json', '--data', 'file'], { cwd: folder });
    expect([away.code, (JSON.parse(away.out) as { error: { code: string } }).error.code]).toEqual([
      6,
      'STORE_NOT_WRITABLE',
    ]);
  });

  it('prints no stack and no control character without a terminal', () => {
    for (const name of ['good.yaml', 'bad.yaml', 'gate.yaml']) {
      const { out, err } = relay('run', name);
      expect(out + err).not.toContain('\u001b');
      expect(out + err).not.toMatch(/\n\s+at |node:internal/);
    }
  });

  for (const [signal, status] of [
    ['SIGINT', 'CANCELLED'],
    ['SIGTERM', 'RUNNING'],
  ] as const) {
    it(`ends with 4 on ${signal} and leaves the run ${status}`, async () => {
      const argv = [join(ROOT, 'dist/cli/main.js'), 'run', 'sleepy.yaml', '--data', signal];
      const child = spawn(process.execPath, argv, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
      const ended = new Promise((resolve) => child.once('exit', resolve));
      await new Promise<void>((resolve) => {
        child.stdout.setEncoding('utf8').on('data', (text: string) => {
          if (text.includes('RUNNING')) resolve();
        });
      });
      child.kill(signal);
      expect(await ended).toBe(4);
      const { out } = relay('runs', 'list', '--json', '--data', signal);
      expect((JSON.parse(out) as { items: { status: string }[] }).items[0]?.status).toBe(status);
    });
  }
});

// SPEC S7.3
describe.skipIf(!HAS_TMUX)('relay run on a terminal', () => {
  let terminal: Terminal;
  afterEach(() => terminal.close());

  it('draws the run and asks at a gate', async () => {
    terminal = new Terminal(folder);
    terminal.type('relay run gate.yaml');
    await terminal.shows(/Approve\? \(y\/n\)/);
    terminal.type('what');
    terminal.type('y');
    const screen = await terminal.shows(/ended with 0/);
    expect(screen).toContain('Really go on?');
    expect(screen).toMatch(/✓ a /);
    expect(screen).toContain('gate succeeded');
  });

  it('Ctrl-C cancels the run and waits for it', async () => {
    terminal = new Terminal(folder);
    terminal.type('relay run sleepy.yaml');
    await terminal.shows(/a .*awake/);
    terminal.press('C-c');
    expect(await terminal.shows(/ended with 4/)).toContain('sleepy was cancelled');
  });

  it('Ctrl-C twice leaves at once and says how to carry on', async () => {
    terminal = new Terminal(folder);
    terminal.type('relay run deaf.yaml');
    await terminal.shows(/a .*deaf/);
    terminal.press('C-c');
    await terminal.shows(/Ctrl-C again leaves at once/);
    terminal.press('C-c');
    expect(await terminal.shows(/ended with 4/)).toMatch(
      /`relay (runs retry \S+ --follow|resume \S+)` carries on/,
    );
  });

  it('Ctrl-C at a question cancels the run too', async () => {
    terminal = new Terminal(folder);
    terminal.type('relay run gate.yaml');
    await terminal.shows(/Approve\? \(y\/n\)/);
    terminal.press('C-c');
    expect(await terminal.shows(/ended with 4/)).toContain('gate was cancelled');
  });
});
