/** The `script` handler: users' modules in real processes of their own (SPEC S9.3, S1.1). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { logged, makeContext, runHandler, type Said } from '../../test/support/handler-bench.ts';
import { eventually, groupMembers, startProgram } from '../../test/support/processes.ts';
import type { HandlerContext } from './handler.ts';
import { bundleScript } from './script/bundle.ts';
import { script } from './script.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'relay-script-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

interface Call {
  readonly args?: unknown;
  readonly export?: string;
  readonly given?: Partial<HandlerContext<unknown>>;
}

/** Runs a module's text as a task would. */
function run(text: string, { given, ...config }: Call = {}): Promise<{ output: unknown; said: Said }> {
  write('task.ts', text);
  return runHandler(script, { module: './task.ts', ...config }, { workdir: folder, ...given });
}

describe('calling', () => {
  it('the default export gets the arguments, and what it returns is the output', async () => {
    const text = 'export default async (args: { n: number }) => ({ twice: args.n * 2 });';
    expect((await run(text, { args: { n: 21 } })).output).toEqual({ twice: 42 });
  });

  it('another export can be named', async () => {
    expect((await run('export const go = () => [1, null];', { export: 'go' })).output).toEqual([1, null]);
  });

  it('a missing export fails for good and says which there are', async () => {
    await expect(run('export const a = 1, b = 2;', { export: 'go' })).rejects.toMatchObject({
      name: 'TerminalError',
      message: './task.ts has no function `go`; it exports a, b',
    });
  });

  it('a module may import others, in either language, and packages that use require', async () => {
    write('other.cjs', "const { sep } = require('path'); module.exports = { sep };");
    write('more.js', "import os from 'node:os'; export const eol = os.EOL;");
    const text = `import other from './other.cjs'; import { eol } from './more.js'; export default () => [other.sep, eol];`;
    expect((await run(text)).output).toEqual(['/', '\n']);
  });

  it('a bundle that came with the task is used, whatever the folder holds', async () => {
    const { code } = await bundleScript(write('task.ts', "export default () => 'as it was stored';"));
    write('task.ts', "export default () => 'as it is now';");
    const { output } = await runHandler(script, { module: 'task.ts', bundle: code }, { workdir: '/' });
    expect(output).toBe('as it was stored');
  });

  it('a script works in the workflow’s folder and knows its task', async () => {
    const text =
      'export default (_: unknown, ctx: any) => [process.cwd(), ctx.workdir, ctx.task.task_id, ctx.env.RELAY_TASK_ID, process.env.RELAY_ATTEMPT];';
    const { output } = await run(text);
    expect(output).toEqual(
      [folder, folder, 'task', 'task', '1'].map((one) => expect.stringContaining(one) as string),
    );
  });
});

describe('context', () => {
  it('a script logs, tells progress, keeps checkpoints, uses tokens and leaves artifacts', async () => {
    const text = `export default async (args: unknown, ctx: any) => {
      console.log('printed'); console.error('complained'); ctx.log('said');
      ctx.progress(0.5, 'half'); ctx.checkpoint({ row: 1 });
      ctx.usage({ tokens_in: 3 }); ctx.artifact({ name: 'a.txt', content_type: 'text/plain', bytes: 'ä' });
      return ctx.lastCheckpoint;
    };`;
    const { output, said } = await run(text, { given: { lastCheckpoint: { row: 0 } } });
    expect(output).toEqual({ row: 0 });
    expect(['stdout', 'stderr', 'log'].map((stream) => logged(said, stream))).toEqual([
      'printed\n',
      'complained\n',
      'said\n',
    ]);
    expect(said).toMatchObject({
      progress: [[0.5, 'half']],
      checkpoints: [{ row: 1 }],
      usage: [{ tokens_in: 3 }],
    });
    expect(Buffer.from(said.artifacts[0]?.bytes ?? []).toString()).toBe('ä');
  });

  // SPEC S7.2
  it('a question is passed on, and an answer is given at once', async () => {
    const text =
      "export default (_: unknown, ctx: any) => ({ said: ctx.ask({ key: 'go', message: 'Go?' }) });";
    await expect(run(text)).rejects.toThrow('asked go');
    expect((await run(text, { given: { answers: { go: false } } })).output).toEqual({ said: false });
  });

  it('an abort reaches the script, which may tidy up', async () => {
    write(
      'task.ts',
      `export default (_: unknown, ctx: any) => new Promise((_resolve, reject) => {
      setInterval(() => {}, 1000);
      ctx.signal.addEventListener('abort', () => { console.log('tidy'); reject(ctx.signal.reason); });
      console.log('up');
    });`,
    );
    const abort = new AbortController();
    const config = script.config.parse({ module: 'task.ts' });
    const { context, said } = makeContext(config, { workdir: folder, signal: abort.signal });
    const running = script.run(context).catch((error: unknown) => error);
    await eventually(() => logged(said, 'stdout') === 'up\n');
    abort.abort();
    await running;
    expect(logged(said, 'stdout')).toBe('up\ntidy\n');
  });

  it('a script that does not listen ends at once', async () => {
    write(
      'task.ts',
      "export default () => { setInterval(() => {}, 1000); console.log('up'); return new Promise(() => {}); };",
    );
    const abort = new AbortController();
    const config = script.config.parse({ module: 'task.ts' });
    const { context, said } = makeContext(config, { workdir: folder, signal: abort.signal });
    const running = script.run(context);
    await eventually(() => logged(said, 'stdout') === 'up\n');
    abort.abort();
    await expect(running).rejects.toMatchObject({ name: 'AbortError' });
  });
});

// SPEC S5.2
describe('failure', () => {
  it('an error is a failure with its message, and its stack is in the log', async () => {
    const context = makeContext(script.config.parse({ module: 'task.ts' }), { workdir: folder });
    write('task.ts', "export default () => { throw new RangeError('out of it'); };");
    await expect(script.run(context.context)).rejects.toMatchObject({
      facts: { kind: 'thrown' },
      message: 'RangeError: out of it',
    });
    expect(logged(context.said, 'stderr')).toMatch(/RangeError: out of it\n +at /);
  });

  it('TerminalError and RetryAfter keep their meaning', async () => {
    const terminal =
      "import { TerminalError } from 'relay'; export default () => { throw new TerminalError('never'); };";
    await expect(run(terminal)).rejects.toMatchObject({ name: 'TerminalError', message: 'never' });
    const later =
      "import { RetryAfter } from 'relay'; export default () => { throw new RetryAfter(1500, 'later'); };";
    await expect(run(later)).rejects.toMatchObject({ name: 'RetryAfter', delayMs: 1_500, message: 'later' });
  });

  it('an error outside the function fails the attempt', async () => {
    const text =
      "export default () => new Promise(() => setTimeout(() => { throw new Error('from a timer'); }));";
    await expect(run(text)).rejects.toMatchObject({ facts: { kind: 'thrown' }, message: 'from a timer' });
    await expect(run('throw new Error("at import"); export default () => 1;')).rejects.toThrow('at import');
  });

  it('a script that leaves by itself harms nobody', async () => {
    const exit = 'export default () => { console.error("bye"); process.exit(4); };';
    await expect(run(exit)).rejects.toMatchObject({
      facts: { kind: 'exit', code: 4 },
      message: expect.stringContaining('bye') as string,
    });
    await expect(run('export default () => process.exit(0);')).rejects.toThrow(
      'before its function returned',
    );
    await expect(run('export default () => process.kill(process.pid, "SIGKILL");')).rejects.toMatchObject({
      facts: { kind: 'exit', code: 137 },
    });
  });

  it('messages that a script makes up harm nobody', async () => {
    const text = `export default () => { for (const odd of [null, 1, 'x', {}, { type: 'log' }, { type: 'progress', fraction: 'x' }]) process.send?.(odd); return 'fine'; };`;
    expect((await run(text)).output).toBe('fine');
  });

  it('a value that is not JSON fails with class output', async () => {
    await expect(run('export default () => 10n;')).rejects.toMatchObject({
      facts: { kind: 'output', problem: 'not_json' },
    });
  });

  it('a script that cannot be bundled fails for good, with the place', async () => {
    await expect(run('export default () => {')).rejects.toMatchObject({
      name: 'TerminalError',
      message: expect.stringMatching(/task\.ts:1:\d+: /) as string,
    });
    await expect(runHandler(script, { module: 'none.ts' }, { workdir: folder })).rejects.toMatchObject({
      name: 'TerminalError',
    });
  });

  it('a module outside the workflow’s folder is refused', async () => {
    for (const module of ['../x.ts', '/etc/passwd', '.']) {
      await expect(runHandler(script, { module }, { workdir: folder })).rejects.toThrow("workflow's folder");
    }
  });
});

// SPEC S6.3
describe('the death of the worker', () => {
  it('a script in an endless loop dies with its worker, also on kill -9', async () => {
    write(
      'task.ts',
      `import { spawn, execSync } from 'node:child_process';
      export default () => {
        spawn('sleep', ['1000']);
        const group = execSync('ps -o pgid= -p ' + process.pid).toString().trim();
        console.log('group ' + group + '.');
        setTimeout(() => { for (;;); }, 10);
        return new Promise(() => {});
      };`,
    );
    const args = ['script', JSON.stringify({ module: 'task.ts' }), folder];
    const { program, match } = await startProgram('run-handler.ts', args, /group (\d+)\./);
    const group = Number(match[1]);
    expect(groupMembers(group).length).toBeGreaterThanOrEqual(3);
    program.kill('SIGKILL');
    await eventually(() => groupMembers(group).length === 0);
  });
});

// SPEC S1.1
describe('bundleScript', () => {
  it('equal sources give equal code and hash, wherever they lie', async () => {
    const text = "import { x } from './lib.ts'; export default () => x;";
    write('lib.ts', 'export const x: number = 1;');
    const first = await bundleScript(write('a.ts', text));
    const other = mkdtempSync(join(tmpdir(), 'relay-script-'));
    writeFileSync(join(other, 'lib.ts'), 'export const x: number = 1;');
    writeFileSync(join(other, 'a.ts'), text);
    expect(await bundleScript(join(other, 'a.ts'))).toEqual(first);
    rmSync(other, { recursive: true });
    write('lib.ts', 'export const x: number = 2;');
    expect((await bundleScript(join(folder, 'a.ts'))).hash).not.toBe(first.hash);
  });
});
