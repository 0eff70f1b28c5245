/** One trace from whoever starts a run to what its tasks call (SPEC S12.5). */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunView } from '../../client/src/index.ts';
import { relay } from '../../test/support/memory-io.ts';
import { OWN_TOKEN, ServerBench } from '../../test/support/server-bench.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const HEADERS = { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'congo=t61' };

let bench: ServerBench;
let echo: Server;
let echoUrl: string;
beforeAll(async () => {
  bench = await ServerBench.open({ concurrency: 4, env: { PATH: process.env.PATH ?? '' } });
  echo = createServer((request, answer) => {
    answer.setHeader('content-type', 'application/json').end(JSON.stringify(request.headers));
  });
  await new Promise<void>((done) => echo.listen(0, '127.0.0.1', done));
  echoUrl = `http://127.0.0.1:${(echo.address() as AddressInfo).port}/`;
});
afterAll(async () => {
  echo.close();
  await bench.close();
});

const flow = () => ({
  name: 'traced',
  tasks: {
    call: { uses: 'http', with: { url: echoUrl } },
    own: { uses: 'http', with: { url: echoUrl, headers: { traceparent: 'mine', tracestate: 'mine=1' } } },
    shell: { uses: 'shell', with: { run: 'echo "$TRACEPARENT $TRACESTATE"' } },
    set: { uses: 'shell', with: { run: 'echo "$TRACEPARENT"', env: { TRACEPARENT: 'mine' } } },
    script: { uses: 'script', with: { module: 'm.js' } },
  },
});
const SCRIPT = { 'm.js': 'export default (_, ctx) => ctx.trace;' };

async function startAndEnd(headers: Record<string, string>, more: object = {}): Promise<RunView> {
  const response = await bench.request('/runs', {
    method: 'POST',
    body: JSON.stringify({ definition: flow(), bundles: SCRIPT, ...more }),
    headers: { 'content-type': 'application/json', ...headers },
  });
  const { id } = (await response.json()) as RunView;
  return bench.client().runs.get(id, { wait_ms: 20_000 });
}

/** What the tasks have seen, by task. */
function seenIn({ tasks }: RunView) {
  const of = (id: string) => tasks.find(({ task_id }) => task_id === id)?.output as never;
  const [shell = '', state] = String(of('shell')).split(' ');
  const { body } = of('call') as { body: Record<string, string> };
  return {
    parents: [body.traceparent ?? '', shell, (of('script') as { traceparent: string }).traceparent],
    states: [body.tracestate, state, (of('script') as { tracestate?: string }).tracestate],
    own: (of('own') as { body: Record<string, string> }).body,
    set: of('set') as unknown,
  };
}

describe('a trace', () => {
  it('reaches requests, child processes and scripts, each in a span of its own', async () => {
    const run = await startAndEnd(HEADERS);
    expect(run).toMatchObject({ status: 'SUCCESS', trace_id: TRACE });
    const { parents, states, own, set } = seenIn(run);
    for (const parent of parents) expect(parent).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`));
    expect(new Set([...parents, HEADERS.traceparent]).size).toBe(4);
    expect(states).toEqual(['congo=t61', 'congo=t61', 'congo=t61']);
    expect(own).toMatchObject({ traceparent: 'mine', tracestate: 'mine=1' });
    expect(set).toBe('mine');
  });

  it('is made by a run that was given none, or nonsense', async () => {
    for (const headers of [{}, { traceparent: '00-nonsense', tracestate: 'a=1' }] as Record<
      string,
      string
    >[]) {
      const run = await startAndEnd(headers);
      expect(run.trace_id).toBe(run.id.replaceAll('-', ''));
      const { parents } = seenIn(run);
      for (const parent of parents) expect(parent.split('-')[1]).toBe(run.trace_id);
    }
  });

  it('does not make a repeated request another one', async () => {
    const first = await startAndEnd(HEADERS, { idempotency_key: 'traced' });
    const again = await startAndEnd(
      { traceparent: HEADERS.traceparent.replace('01', '00') },
      { idempotency_key: 'traced' },
    );
    expect(again.id).toBe(first.id);
  });

  it('is the request’s own for a clone and for an open run', async () => {
    const run = await startAndEnd({});
    const post = async (path: string, body: object) =>
      (await (
        await bench.request(path, {
          method: 'POST',
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/json', ...HEADERS },
        })
      ).json()) as RunView;
    expect((await post(`/runs/${run.id}/clone`, {})).trace_id).toBe(TRACE);
    expect((await post('/runs', { open: true })).trace_id).toBe(TRACE);
  });

  it('goes to workers with their leases', async () => {
    const client = bench.client();
    const definition = { name: 'far', handlers: ['far'], tasks: { a: { uses: 'far' } } };
    await bench.request('/runs', {
      method: 'POST',
      body: JSON.stringify({ definition }),
      headers: { 'content-type': 'application/json', ...HEADERS },
    });
    await bench.post('/workers/register', { worker_id: 'w1', boot_id: 'b', handlers: ['far'] });
    const claimed = (await (await bench.post('/workers/w1/claim', { limit: 1, wait_s: 5 })).json()) as {
      leases: readonly { trace: unknown }[];
    };
    expect(claimed.leases[0]?.trace).toEqual(HEADERS);
    client.close();
  });

  it('of a command is that of its environment, through both doors', async () => {
    const env = { TRACEPARENT: HEADERS.traceparent, PATH: process.env.PATH };
    const stdin = JSON.stringify({ name: 'told', tasks: { a: { uses: 'transform', with: { value: 1 } } } });
    for (const flags of [[], ['--server', bench.url, '--token', OWN_TOKEN]]) {
      const { out } = await relay(['run', '-', '--json', ...flags], { cwd: bench.folder, env, stdin });
      expect((JSON.parse(out) as RunView).trace_id).toBe(TRACE);
    }
  });
});
