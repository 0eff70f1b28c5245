/** Real processes: how they end, and that none outlives its worker (SPEC S6.3, S9.3). */
import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { eventually, groupMembers, startProgram } from '../../../test/support/processes.ts';
import { type GuardedProcess, startGuarded } from './guarded-process.ts';

const env = { PATH: '/usr/local/bin:/usr/bin:/bin' };

function start(argv: readonly string[], killAfterMs?: number): GuardedProcess & { text: () => string } {
  const child = startGuarded({
    argv,
    cwd: tmpdir(),
    env,
    ...(killAfterMs === undefined ? {} : { killAfterMs }),
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  child.stderr.resume();
  return { ...child, text: () => text };
}

const groupOf = (child: GuardedProcess): number => child.leader.pid ?? 0;

describe('ends', () => {
  it('a command gives its output and its exit code, and leaves nothing behind', async () => {
    const child = start(['sh', '-c', 'echo out; exit 3']);
    expect(await child.exit).toEqual({ code: 3, signal: null });
    expect(child.text()).toBe('out\n');
    expect(groupMembers(groupOf(child))).toEqual([]);
  });

  it('arguments are passed as they are, and builtins of the shell are not in the way', async () => {
    const child = start(['printf', '%s|', 'a b', '$HOME', '*', '']);
    await child.exit;
    expect(child.text()).toBe('a b|$HOME|*||');
    expect(await start(['exit', '0']).exit).toEqual({ code: 127, signal: null });
  });

  it('a command that a signal ended says which', async () => {
    expect(await start(['sh', '-c', 'kill -KILL $$']).exit).toEqual({ code: 137, signal: 'SIGKILL' });
    expect(await start(['sh', '-c', 'kill -TERM $$']).exit).toEqual({ code: 143, signal: 'SIGTERM' });
  });

  it('a command that kills its whole group is noticed', async () => {
    expect(await start(['sh', '-c', 'kill -KILL 0']).exit).toEqual({ code: 137, signal: 'SIGKILL' });
  });

  it('a folder that does not exist is an error', async () => {
    const child = startGuarded({ argv: ['true'], cwd: '/no/such/folder', env });
    await expect(child.exit).rejects.toThrow(/ENOENT/);
  });

  it('what a command leaves in the background ends with it', async () => {
    const child = start(['sh', '-c', 'sleep 1000 >/dev/null 2>&1 & sleep 1000 & echo started']);
    await child.exit;
    expect(child.text()).toBe('started\n');
    await eventually(() => groupMembers(groupOf(child)).length === 0);
  });

  it('output that a background process still writes is read', async () => {
    const child = start(['sh', '-c', '(sleep 0.1; echo late) & echo early']);
    await child.exit;
    expect(child.text()).toBe('early\nlate\n');
  });
});

describe('stopping', () => {
  it('TERM reaches the whole group', async () => {
    const child = start(['sh', '-c', 'sleep 1000 & echo up; wait']);
    await eventually(() => child.text() === 'up\n');
    child.end();
    expect(await child.exit).toEqual({ code: 143, signal: 'SIGTERM' });
    expect(groupMembers(groupOf(child))).toEqual([]);
  });

  it('a command may use the time between TERM and KILL', async () => {
    const child = start(['sh', '-c', 'trap "echo tidy; exit 0" TERM; echo up; while :; do sleep 0.05; done']);
    await eventually(() => child.text() === 'up\n');
    child.end();
    child.end();
    expect(await child.exit).toEqual({ code: 0, signal: null });
    expect(child.text()).toBe('up\ntidy\n');
  });

  it('KILL follows for those that ignore TERM', async () => {
    const child = start(['sh', '-c', 'trap "" TERM; echo up; while :; do sleep 0.05; done'], 50);
    await eventually(() => child.text() === 'up\n');
    child.end();
    expect(await child.exit).toEqual({ code: 137, signal: 'SIGKILL' });
    await eventually(() => groupMembers(groupOf(child)).length === 0);
  });
});

// SPEC S6.3: a child process dies with its worker, also on kill -9.
describe('the death of the worker', () => {
  const run = 'sleep 1000 & trap "" TERM; echo "group $(ps -o pgid= -p $$ | tr -d " ")."; sleep 1000';

  it.each(['SIGKILL', 'SIGTERM'] as const)(
    'a command and its children die when the worker gets %s',
    async (signal) => {
      const { program, match } = await startProgram(
        'run-handler.ts',
        ['shell', JSON.stringify({ run })],
        /group (\d+)\./,
      );
      const group = Number(match[1]);
      expect(groupMembers(group).length).toBeGreaterThanOrEqual(4);
      program.kill(signal);
      await eventually(() => groupMembers(group).length === 0);
    },
  );
});
