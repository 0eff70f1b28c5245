/** `relay serve` and its workers as processes: killed, restarted, drained, and joined by a worker in another language. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createClient, type RelayClient } from '../../client/src/index.ts';
import { builtRelay, ROOT } from '../support/built-cli.ts';
import { type Running, start, startServer, tokenOf } from '../support/server-process.ts';

let cwd: string;
let processes: Running[];
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'relay-serve-'));
  processes = [];
});
afterEach(async () => {
  for (const { process: child } of processes) child.kill('SIGKILL');
  await Promise.all(processes.map(({ ended }) => ended));
  rmSync(cwd, { recursive: true, force: true });
});

async function serve(...argv: string[]): Promise<Running & { readonly url: string }> {
  const server = await startServer(cwd, argv);
  processes.push(server);
  return server;
}

function work(url: string, ...argv: string[]): Running {
  const worker = start(['worker', '--server', url, ...argv], { cwd });
  processes.push(worker);
  return worker;
}

const clientOf = (url: string): RelayClient => createClient({ url, token: tokenOf(cwd) });

function wide(count: number): object {
  const tasks = Object.fromEntries(
    Array.from({ length: count }, (_, n) => [
      `t${n}`,
      { uses: 'shell', with: { run: ['sh', '-c', `echo ${n}`] } },
    ]),
  );
  return {
    name: 'wide',
    tasks: { ...tasks, join: { needs: Object.keys(tasks), uses: 'transform', with: { value: 1 } } },
  };
}

/** Asks until the server is back. */
async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (tries > 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

// SPEC S11.2, S13.2, S14.7
describe('relay serve', () => {
  it('loses nothing when it is killed ten times under load with four workers', async () => {
    const first = await serve('--port', '0', '--no-worker');
    const port = new URL(first.url).port;
    for (let n = 0; n < 4; n++) work(first.url, '--concurrency', '4');
    const client = clientOf(first.url);
    const registered = async () => expect((await client.workers.list()).items).toHaveLength(4);
    await patiently(registered);
    const ids: string[] = [];
    let server: Running = first;
    for (let kill = 0; kill < 10; kill++) {
      const key = `load-${kill}`;
      const begin = () => client.runs.start({ definition: wide(20), idempotency_key: key });
      ids.push((await patiently(begin)).id);
      server.process.kill('SIGKILL');
      await server.ended;
      server = await serve('--port', port, '--no-worker');
    }
    for (const id of ids) {
      const run = await patiently(() => client.runs.get(id, { wait_ms: 60_000 }));
      expect(run.status).toBe('SUCCESS');
      expect(run.tasks.map((task) => task.status)).toEqual(Array.from({ length: 21 }, () => 'SUCCESS'));
      const outputs = run.tasks.filter((task) => task.task_id !== 'join').map((task) => task.output);
      expect(outputs).toEqual(Array.from({ length: 20 }, (_, n) => String(n)));
      const done = await client.events.page({ run_id: id, types: ['task.completed'], limit: 1_000 });
      expect(done.items).toHaveLength(21);
    }
  }, 240_000);

  it('runs what commands start on it, and tells them how it ended', async () => {
    const { url } = await serve('--port', '0');
    writeFileSync(
      join(cwd, 'flow.yaml'),
      'name: flow\ntasks:\n  a: { uses: transform, with: { value: 42 } }\n',
    );
    const run = builtRelay(['run', 'flow.yaml', '--server', url, '--json'], { cwd });
    expect({ code: run.code, err: run.err }).toEqual({ code: 0, err: '' });
    expect(JSON.parse(run.out)).toMatchObject({ status: 'SUCCESS', tasks: [{ output: 42 }] });
    const detached = builtRelay(['run', 'flow', '--server', url, '--detach'], { cwd });
    expect(detached.out).toMatch(/^[0-9a-f-]{36}\n$/);
    const watched = builtRelay(['runs', 'watch', detached.out.trim(), '--server', url], { cwd });
    expect(watched.code).toBe(0);
    const wrong = builtRelay(['runs', 'list', '--server', url, '--token', 'relay_wrong_one'], { cwd });
    expect(wrong).toMatchObject({ code: 6, out: '' });
    expect(wrong.err).toContain('the token is not known here');
    expect(builtRelay(['runs', 'list', '--server', 'http://127.0.0.1:9'], { cwd }).code).toBe(6);
    expect(builtRelay(['runs', 'show', 'none', '--server', url], { cwd }).code).toBe(3);
  }, 60_000);

  it('ends on SIGTERM when what runs has finished, and leaves nothing leased', async () => {
    const server = await serve('--port', '0', '--shutdown-timeout', '20s');
    const client = clientOf(server.url);
    const marker = join(cwd, 'started');
    const tasks = { slow: { uses: 'shell', with: { run: `touch ${marker}; sleep 1; echo done` } } };
    const { id } = await client.runs.start({ definition: { name: 'slow', tasks } });
    await patiently(async () => readFileSync(marker));
    server.process.kill('SIGTERM');
    expect(await server.ended).toBe(0);
    const shown = JSON.parse(builtRelay(['runs', 'show', id, '--json'], { cwd }).out) as {
      tasks: { status: string; output: unknown }[];
    };
    expect(shown.tasks[0]).toMatchObject({ status: 'SUCCESS', output: 'done' });
  }, 60_000);

  it('ends with what is wrong when it cannot start, and leaves nothing running', async () => {
    const { url } = await serve('--port', '0');
    for (const [argv, told, code] of [
      [['--port', '0', '--ready-file', 'none/ready.json'], 'none/ready.json cannot be written', 2],
      [['--port', new URL(url).port], 'is in use', 2],
    ] as const) {
      const wrong = start(['serve', '--data', 'other', ...argv], { cwd });
      processes.push(wrong);
      expect(await wrong.ended).toBe(code);
      expect(wrong.printed()).toContain(told);
    }
  }, 60_000);
});

// SPEC S11.1
describe('a worker process', () => {
  it('serves handlers of its own and ends when there is nothing to do', async () => {
    const { url } = await serve('--port', '0', '--no-worker');
    const zod = JSON.stringify(join(ROOT, 'node_modules/zod/index.js'));
    writeFileSync(
      join(cwd, 'handlers.mjs'),
      `import { z } from ${zod};\nexport const shout = { name: 'shout', summary: 's', config: z.object({ text: z.string() }), run: async ({ config }) => config.text.toUpperCase() };\n`,
    );
    const client = clientOf(url);
    const tasks = { a: { uses: 'shout', with: { text: 'hello' } } };
    const { id } = await client.runs.start({ definition: { name: 'loud', handlers: ['shout'], tasks } });
    const worker = work(url, '--handlers', 'handlers.mjs', '--exit-when-idle');
    expect(await worker.ended).toBe(0);
    expect((await client.runs.get(id)).tasks[0]).toMatchObject({ status: 'SUCCESS', output: 'HELLO' });
    expect((await client.workers.list()).items).toEqual([]);
  }, 60_000);

  it('gives back what it cannot finish when it is asked to end', async () => {
    const { url } = await serve('--port', '0', '--no-worker');
    const client = clientOf(url);
    const marker = join(cwd, 'started');
    const tasks = { long: { uses: 'shell', with: { run: `touch ${marker}; sleep 600` } } };
    const { id } = await client.runs.start({ definition: { name: 'long', tasks } });
    const worker = work(url, '--shutdown-timeout', '100ms');
    await patiently(async () => readFileSync(marker));
    worker.process.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
    const [task] = (await client.runs.get(id)).tasks;
    expect(task?.status).toBe('QUEUED');
    const { items } = await client.tasks.attempts(task?.task_run_id ?? '');
    expect(items.map(({ outcome }) => outcome)).toEqual(['release']);
  }, 60_000);

  it('can be written in sixty lines of Python', async () => {
    const { url } = await serve('--port', '0');
    const script = join(ROOT, 'examples/workers/worker.py');
    expect(readFileSync(script, 'utf8').split('\n').length).toBeLessThanOrEqual(61);
    const worker = start([script], {
      cwd,
      program: 'python3',
      env: { RELAY_SERVER: url, RELAY_TOKEN: tokenOf(cwd) },
    });
    processes.push(worker);
    const flow = join(ROOT, 'examples/workers/word-count.yaml');
    const run = builtRelay(['run', flow, '--server', url, '--json'], { cwd });
    expect({ code: run.code, err: run.err }).toEqual({ code: 0, err: '' });
    expect(JSON.parse(run.out)).toMatchObject({ outputs: { report: '7 words' } });
    const client = clientOf(url);
    const python = (await client.workers.list()).items.find(({ is_remote }) => is_remote);
    await client.workers.drain(python?.id ?? '');
    expect(await worker.ended).toBe(0);
  }, 60_000);
});
