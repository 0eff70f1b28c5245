/** The `shell` handler with real commands (SPEC S9.3). */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { logged, makeContext, runHandler, type Said } from '../../test/support/handler-bench.ts';
import { eventually } from '../../test/support/processes.ts';
import { shell } from './shell.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'relay-shell-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const run = (config: unknown, env?: Record<string, string>): Promise<{ output: unknown; said: Said }> =>
  runHandler(shell, config, {
    workdir: folder,
    ...(env === undefined ? {} : { env: { PATH: '/usr/bin:/bin', ...env } }),
  });
const outputOf = async (config: unknown): Promise<unknown> => (await run(config)).output;

describe('output', () => {
  it('the output of a script is its stdout, trimmed', async () => {
    expect(await outputOf({ run: 'echo; echo "a  b"; echo c; echo' })).toBe('a  b\nc');
  });

  it('a list of arguments runs without a shell', async () => {
    expect(await outputOf({ run: ['echo', '$HOME', '; ls'] })).toBe('$HOME ; ls');
  });

  it('stdout is parsed as asked', async () => {
    expect(await outputOf({ run: 'echo \'{"a": [1]}\'', parse: 'json' })).toEqual({ a: [1] });
    expect(await outputOf({ run: 'echo a; echo b', parse: 'lines' })).toEqual(['a', 'b']);
    expect(await outputOf({ run: 'true', parse: 'lines' })).toEqual([]);
  });

  it('stdout that is not JSON fails with class output', async () => {
    await expect(run({ run: 'echo nope', parse: 'json' })).rejects.toMatchObject({
      facts: { kind: 'output', problem: 'not_json' },
      message: expect.stringContaining('"nope"') as string,
    });
  });

  it('text of several bytes a character arrives whole', async () => {
    expect(await outputOf({ run: "printf '\\303'; sleep 0.02; printf '\\244'" })).toBe('ä');
  });

  it('too much output ends the command and fails', async () => {
    await expect(run({ run: 'yes' })).rejects.toMatchObject({
      facts: { kind: 'output', problem: 'too_long' },
    });
  });

  // SPEC S9.5
  it('stdout and stderr stream to the log', async () => {
    const { said } = await run({ run: 'echo out; echo err >&2' });
    expect([logged(said, 'stdout'), logged(said, 'stderr')]).toEqual(['out\n', 'err\n']);
  });
});

describe('surroundings', () => {
  it('a script works in the workflow’s folder, or in `cwd` below it', async () => {
    mkdirSync(join(folder, 'sub'));
    expect(await outputOf({ run: 'pwd -P' })).toMatch(/relay-shell-\w+$/);
    expect(await outputOf({ run: 'pwd -P', cwd: 'sub' })).toMatch(/\/sub$/);
  });

  it('a `cwd` that is not there fails for good', async () => {
    await expect(run({ run: 'true', cwd: 'nowhere' })).rejects.toMatchObject({ name: 'TerminalError' });
  });

  it('a script sees the worker’s environment, the task’s own, and who it is', async () => {
    const config = {
      run: 'echo "$A $B $N $RELAY_RUN_ID $RELAY_TASK_RUN_ID $RELAY_TASK_ID $RELAY_ATTEMPT"',
      env: { B: 'task', N: 7 },
    };
    const { output } = await run(config, { A: 'worker', B: 'worker', RELAY_RUN_ID: 'a lie' });
    expect(output).toBe('worker task 7 run-1 task-run-1 task 1');
  });

  it('a script does not wait for a keyboard', async () => {
    expect(await outputOf({ run: 'cat; echo end' })).toBe('end');
  });
});

describe('failure', () => {
  it('a non-zero exit is a failure with the code and the last lines', async () => {
    const script = 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "line $i" >&2; done; exit 7';
    await expect(run({ run: script })).rejects.toMatchObject({
      facts: { kind: 'exit', code: 7 },
      message: expect.stringMatching(/^exit code 7:\nline 3\n[\s\S]*line 12$/) as string,
    });
  });

  it('without a word on stderr the end of stdout is shown', async () => {
    await expect(run({ run: 'echo "what went wrong"; false' })).rejects.toThrow(
      'exit code 1:\nwhat went wrong',
    );
  });

  it('the signal that ended a script is named', async () => {
    await expect(run({ run: 'kill -SEGV $$' })).rejects.toThrow('exit code 139 (ended by SIGSEGV)');
  });

  it('a command that does not exist exits with 127', async () => {
    await expect(run({ run: ['no-such-program'] })).rejects.toMatchObject({
      facts: { kind: 'exit', code: 127 },
    });
  });

  it('a command line that is too long fails for good', async () => {
    await expect(run({ run: ['echo', 'x'.repeat(3_000_000)] })).rejects.toMatchObject({
      name: 'TerminalError',
      message: expect.stringContaining('too') as string,
    });
  });

  it('a NUL in the command fails for good', async () => {
    await expect(run({ run: 'echo a\0b' })).rejects.toMatchObject({ name: 'TerminalError' });
  });

  it('an abort ends the command', async () => {
    const abort = new AbortController();
    const config = shell.config.parse({ run: 'echo up; sleep 1000' });
    const { context, said } = makeContext(config, { workdir: folder, signal: abort.signal });
    const running = shell.run(context);
    await eventually(() => logged(said, 'stdout') === 'up\n');
    abort.abort();
    await expect(running).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('nothing is started after an abort', async () => {
    const signal = AbortSignal.abort();
    await expect(runHandler(shell, { run: 'touch made' }, { workdir: folder, signal })).rejects.toThrow();
    expect(await outputOf({ run: 'ls' })).toBe('');
  });
});

describe('files', () => {
  const filesOf = async (script: string, files: string[]): Promise<[string, string, string][]> => {
    const { said } = await run({ run: script, files });
    return said.artifacts.map(({ name, content_type, bytes }) => [
      name,
      content_type,
      Buffer.from(bytes).toString(),
    ]);
  };

  it('files that patterns name become artifacts, sorted', async () => {
    const script =
      'mkdir -p out/deep; echo 1 > out/b.txt; echo 2 > out/deep/a.json; echo 3 > out/c.bin; echo 4 > d.txt';
    expect(await filesOf(script, ['out/**/*.json', '?.txt', 'out/[b].*', '*/b.*'])).toEqual(
      [
        ['d.txt', 'text/plain; charset=utf-8', '4\n'],
        ['out/b.txt', 'text/plain; charset=utf-8', '1\n'],
        ['out/deep/a.json', 'application/json', '2\n'],
      ].toSorted(),
    );
  });

  it('a pattern may find nothing, a plain name may not', async () => {
    expect(await filesOf('true', ['*.csv'])).toEqual([]);
    await expect(filesOf('true', ['report.csv'])).rejects.toMatchObject({
      facts: { kind: 'output', problem: 'missing' },
    });
  });

  it('patterns that lead out of the folder are refused', async () => {
    for (const pattern of ['../x', '/etc/passwd', 'a/../../x']) {
      await expect(filesOf('true', [pattern])).rejects.toMatchObject({ name: 'TerminalError' });
    }
  });

  it('links that lead out of the folder are refused, and links to folders are not followed', async () => {
    writeFileSync(join(folder, 'inside.txt'), 'in');
    symlinkSync('inside.txt', join(folder, 'link.txt'));
    symlinkSync('.', join(folder, 'loop'));
    expect((await filesOf('true', ['**/*.txt'])).map(([name]) => name)).toEqual(['inside.txt', 'link.txt']);
    symlinkSync('/etc/hostname', join(folder, 'out.txt'));
    await expect(filesOf('true', ['*.txt'])).rejects.toMatchObject({ name: 'TerminalError' });
  });

  it('too many or too large files fail with class output', async () => {
    const facts = { facts: { kind: 'output', problem: 'too_long' } };
    await expect(filesOf('for i in $(seq 65); do : > f$i.x; done', ['*.x'])).rejects.toMatchObject(facts);
    await expect(filesOf('truncate -s 17M big', ['big'])).rejects.toMatchObject(facts);
  });

  it('a pipe is not read', async () => {
    await expect(filesOf('mkfifo pipe', ['pipe'])).rejects.toMatchObject({ name: 'TerminalError' });
  });
});
