/**
 * Keys of model providers appear nowhere (SPEC S14.4, I14): the built program asks an independent server with keys in its environment,
 * successfully and on every way to fail, some of which repeat the key; then everything that was stored or printed is searched byte for byte.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LLMock } from '@copilotkit/aimock';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createClient } from '../../client/src/index.ts';
import { KEYS, providersAt } from '../support/model-bench.ts';
import { type Running, start, startServer, tokenOf } from '../support/server-process.ts';

let cwd: string;
let mock: LLMock;
let processes: Running[];
beforeEach(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'relay-keys-'));
  processes = [];
  // Only who sends one of the keys gets an answer: `fine` proves that they are used.
  mock = new LLMock({ port: 0, auth: { apiKeys: ALL_KEYS } });
  await mock.start();
  writeFileSync(
    join(cwd, 'relay.config.yaml'),
    JSON.stringify({ log: 'debug', providers: providersAt(mock.url) }),
  );
  writeFileSync(join(cwd, 'flow.yaml'), JSON.stringify(flow()));
  answer();
});
afterEach(async () => {
  for (const { process: child } of processes) child.kill('SIGKILL');
  await Promise.all(processes.map(({ ended }) => ended));
  await mock.stop();
  rmSync(cwd, { recursive: true, force: true });
});

const MODELS = {
  openai: 'openai/gpt-5-mini',
  anthropic: 'anthropic/claude-sonnet-4-5',
  google: 'google/gemini-3.5-flash',
};
const ALL_KEYS = Object.values(KEYS);
const SAID = `your keys are ${ALL_KEYS.join(' ')}`;

/** What a task asks for and how its server behaves; `SUCCESS` or the code it fails with. */
const WAYS = {
  fine: 'SUCCESS',
  denied: 'HTTP_STATUS',
  forbidden: 'HTTP_STATUS',
  busy: 'HTTP_STATUS',
  broken: 'HTTP_STATUS',
  dropped: 'CONNECTION_RESET',
  garbled: 'ANSWER_MALFORMED',
  severed: 'CONNECTION_RESET',
  stalled: 'TIMEOUT',
  truncated: 'OUTPUT_TRUNCATED',
  secretive: 'SUCCESS',
} as const;

function answer(): void {
  const failing = (status: number) => ({ error: { message: SAID, type: 'e' }, status, retryAfter: 0 });
  mock
    .onMessage('fine', { content: 'The sea rises.' })
    .onMessage('denied', failing(401))
    .onMessage('forbidden', failing(403))
    .onMessage('busy', failing(429))
    .onMessage('broken', failing(503))
    .onMessage('dropped', { content: 'x' }, { chaos: { disconnectRate: 1 } })
    .onMessage('garbled', { content: 'x' }, { chaos: { malformedRate: 1 } })
    // Cut after the keys: half a key cannot be known for one.
    .onMessage(
      'severed',
      { content: `${SAID} ${'and so on '.repeat(50)}` },
      { chunkSize: 30, latency: 5, truncateAfterChunks: 8 },
    )
    .onMessage('stalled', { content: 'x' }, { chaos: { latencyMs: 20_000 } })
    .onMessage('truncated', { content: SAID, finishReason: 'length' }, { chunkSize: 10 })
    .onMessage('secretive', { content: 'I will keep it to myself.' });
}

function flow(): object {
  const entries = Object.entries(MODELS).flatMap(([wire, model]) =>
    Object.keys(WAYS).map((way) => [
      `${wire}_${way}`,
      {
        uses: 'llm',
        with: {
          model,
          prompt: way === 'secretive' ? 'secretive {{ secrets.OPENAI_API_KEY }}' : way,
          ...(way === 'stalled' ? { request_timeout: '200ms' } : {}),
        },
        retry: { max_attempts: 2, initial: '1ms' },
      },
    ]),
  );
  return {
    name: 'keys',
    on_failure: 'continue',
    secrets: ['OPENAI_API_KEY'],
    tasks: Object.fromEntries(entries) as object,
  };
}

/** A command to its end. */
async function relay(argv: readonly string[], env: Record<string, string>): Promise<string> {
  const running = start(argv, { cwd, env });
  processes.push(running);
  await running.ended;
  return running.printed();
}

/** Everything on disk below the folder, but for what the test itself has written. */
function stored(): Record<string, Buffer> {
  const files = readdirSync(join(cwd, '.relay'), { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    files
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [path, readFileSync(path)]),
  );
}

/** Where a key was found. Each key is also looked for without its last characters, as a masked part would show. */
function leaks(texts: Readonly<Record<string, string | Buffer>>): string[] {
  const needles = ALL_KEYS.map((key) => key.slice(0, -4));
  return Object.entries(texts).flatMap(([name, text]) =>
    needles.filter((needle) => text.includes(needle)).map((needle) => `${needle} in ${name}`),
  );
}

interface Shown {
  readonly id: string;
  readonly tasks: readonly { task_id: string; task_run_id: string; error: { code: string } | null }[];
}

function expectWays({ tasks }: Shown): void {
  const outcomes = Object.fromEntries(tasks.map(({ task_id, error }) => [task_id, error?.code ?? 'SUCCESS']));
  const expected = Object.keys(MODELS).flatMap((wire) =>
    Object.entries(WAYS).map(([way, code]) => [`${wire}_${way}`, code]),
  );
  expect(outcomes).toEqual(Object.fromEntries(expected));
}

describe('a key in the environment', () => {
  it('would be found', () => {
    expect(leaks({ text: SAID, bytes: Buffer.from(SAID) })).toHaveLength(6);
  });

  it('is in nothing that a run here leaves or prints', async () => {
    const printed: Record<string, string> = {};
    const say = async (...argv: string[]): Promise<string> => {
      printed[argv.join(' ')] = await relay(argv, KEYS);
      return printed[argv.join(' ')] ?? '';
    };
    await say('run', 'flow.yaml');
    const { items } = JSON.parse(bodyOf(await say('runs', 'list', '--json'))) as { items: Shown[] };
    const run = JSON.parse(bodyOf(await say('runs', 'show', items[0]?.id ?? '', '--json'))) as Shown;
    expectWays(run);
    await say('runs', 'show', run.id);
    await say('events', '--json');
    await say('config', '--json');
    await say('doctor');
    for (const wire of ['openai', 'google']) {
      for (const way of ['denied', 'truncated', 'severed', 'secretive']) {
        await say('tasks', 'show', run.id, `${wire}_${way}`);
        await say('tasks', 'logs', run.id, `${wire}_${way}`);
      }
    }
    const prompt = await say('tasks', 'artifacts', run.id, 'openai_secretive', '--raw', 'prompt');
    expect(prompt).toContain('secretive ***');
    expect(leaks(printed)).toEqual([]);
    expect(leaks(stored())).toEqual([]);
  });

  it('is in nothing that a server and a worker of it leave, print or answer', async () => {
    // The server has the secret of the workflow, the worker has all keys; what only the worker knows it must mask itself.
    const server = await startServer(cwd, ['--port', '0', '--no-worker'], {
      OPENAI_API_KEY: KEYS.OPENAI_API_KEY,
    });
    processes.push(server);
    const worker = start(['worker', '--server', server.url], { cwd, env: KEYS });
    processes.push(worker);
    const client = createClient({ url: server.url, token: tokenOf(cwd) });
    const { id } = await client.runs.start({ definition: flow() as Record<string, unknown> });
    const run = await client.runs.get(id, { wait_ms: 60_000 });
    expectWays(run as Shown);
    const answers: Record<string, string> = { run: JSON.stringify(run) };
    const ask = async (path: string): Promise<void> => {
      const headers = { authorization: `Bearer ${tokenOf(cwd)}` };
      answers[path] = await (await fetch(`${server.url}${path}`, { headers })).text();
    };
    for (const { task_run_id } of run.tasks) {
      for (const part of ['', '/attempts', '/artifacts', '/logs', '/input'])
        await ask(`/api/v1/tasks/${task_run_id}${part}`);
      for (const { id: artifact } of (await client.tasks.artifacts(task_run_id)).items)
        await ask(`/api/v1/artifacts/${artifact}`);
    }
    for (const path of [
      '/api/v1/runs',
      `/api/v1/runs/${id}`,
      '/api/v1/events?limit=1000',
      '/metrics',
      '/api/v1/workers',
    ])
      await ask(path);
    expect(Object.values(answers).join('')).toContain('secretive ***');
    expect(Object.values(answers).join('')).toContain('your keys are *** *** ***');
    worker.process.kill('SIGTERM');
    server.process.kill('SIGTERM');
    await Promise.all([worker.ended, server.ended]);
    expect(leaks(answers)).toEqual([]);
    expect(leaks({ worker: worker.printed(), server: server.printed() })).toEqual([]);
    expect(leaks(stored())).toEqual([]);
  });
});

/** The JSON that a command printed beside its logs. */
function bodyOf(printed: string): string {
  return printed.slice(printed.search(/^\{$/m), printed.lastIndexOf('}') + 1);
}
