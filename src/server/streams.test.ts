/** Events and logs as they happen: nothing twice, nothing left out, and readers that cannot keep up are cut off. */
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { follow, messagesOf, type RelayClient, ROUTES, type StreamMessage } from '../../client/src/index.ts';
import { eventually } from '../../test/support/processes.ts';
import { OWN_TOKEN, ServerBench } from '../../test/support/server-bench.ts';
import { systemClock } from '../base/clock.ts';
import { createLogger } from '../base/logger.ts';
import { EventTail } from './event-tail.ts';

let bench: ServerBench;
let client: RelayClient;
beforeAll(async () => {
  bench = await ServerBench.open({ concurrency: 4 });
  client = bench.client();
});
afterAll(() => bench.close());

const CHAIN = {
  name: 'chain',
  tasks: {
    a: { uses: 'transform', with: { value: 1 } },
    b: { uses: 'transform', with: { value: '{{ tasks.a.output }}' } },
  },
};

async function take(messages: AsyncIterable<StreamMessage>, isLast: (message: StreamMessage) => boolean) {
  const taken: StreamMessage[] = [];
  for await (const message of messages) {
    taken.push(message);
    if (isLast(message)) break;
  }
  return taken;
}

const isEnd = ({ event, data }: StreamMessage): boolean =>
  event === 'run.status.changed' && data.includes('"to":"SUCCESS"');

async function openEvents(path: string, lastEventId?: string, token?: string): Promise<Response> {
  return bench.request(path, {
    headers: {
      accept: 'text/event-stream',
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
    ...(token === undefined ? {} : { token }),
  });
}

const bodyOf = (response: Response): AsyncIterable<StreamMessage> =>
  messagesOf(response.body as ReadableStream<Uint8Array>);

// SPEC S12.3
describe('a stream of events', () => {
  it('brings a run from its beginning to its end, the same as its pages', async () => {
    const { id } = await client.runs.start({ definition: CHAIN });
    const response = await openEvents(`/runs/${id}/events`);
    await client.runs.get(id, { wait_ms: 10_000 });
    const { items } = await client.events.page({ run_id: id, limit: 1_000 });
    const messages = await take(bodyOf(response), (message) => message.id === items.at(-1)?.cursor);
    expect(messages.map((message) => message.id)).toEqual(items.map((event) => event.cursor));
    expect(JSON.parse(messages[0]?.data ?? '')).toEqual(items[0]);
  });

  it('goes on after the last event that arrived', async () => {
    const { id } = await client.runs.start({ definition: CHAIN });
    await client.runs.get(id, { wait_ms: 10_000 });
    const { items } = await client.events.page({ run_id: id, limit: 1_000 });
    const middle = items[3]?.cursor;
    const response = await openEvents(`/runs/${id}/events`, middle);
    const messages = await take(bodyOf(response), (message) => message.id === items.at(-1)?.cursor);
    expect(messages.map((message) => message.id)).toEqual(items.slice(4).map((event) => event.cursor));
  });

  it('brings only what was asked for', async () => {
    const stopped = new AbortController();
    const stream = follow(client.http, ROUTES.events.page, {
      query: { types: 'run.created' },
      signal: stopped.signal,
    });
    const first = stream.next();
    await eventually(() => bench.running.server.metrics.streams > 0);
    const { id } = await client.runs.start({ definition: CHAIN });
    expect(JSON.parse((await first).value?.data ?? '{}')).toMatchObject({ type: 'run.created', run_id: id });
    stopped.abort();
    await stream.return(undefined);
  });

  it('loses nothing and repeats nothing while runs come and go', async () => {
    const { next_cursor } = await client.events.page({ limit: 1_000, cursor: await newest() });
    const response = await openEvents(`/events?after=${next_cursor}`);
    const ids = await Promise.all(
      Array.from({ length: 40 }, async () => (await client.runs.start({ definition: CHAIN })).id),
    );
    const left = new Set(ids);
    const messages = await take(bodyOf(response), (message) => {
      if (isEnd(message)) left.delete((JSON.parse(message.data) as { run_id: string }).run_id);
      return left.size === 0;
    });
    const { items } = await client.events.page({ cursor: next_cursor ?? '0', limit: 1_000 });
    expect(messages.map((message) => message.id)).toEqual(
      items.slice(0, messages.length).map((event) => event.cursor),
    );
  });

  it('is refused in the one shape before it starts', async () => {
    expect((await openEvents('/runs/none/events')).status).toBe(404);
    expect((await openEvents('/events', 'not a cursor!')).status).toBe(400);
    expect((await openEvents('/events', undefined, 'relay_wrong')).status).toBe(401);
  });

  it('resolves `changed` with the next commit', async () => {
    const changed = client.events.changed(AbortSignal.timeout(10_000));
    await eventually(() => bench.running.server.metrics.streams > 0);
    await client.runs.start({ definition: CHAIN });
    await changed;
  });

  it('is cut off when its reader does not read', async () => {
    const socket = connect(bench.port, '127.0.0.1');
    socket.pause();
    const head = ['GET /api/v1/events?after=0 HTTP/1.1', 'host: 127.0.0.1', 'accept: text/event-stream'];
    socket.write(`${[...head, `authorization: Bearer ${OWN_TOKEN}`].join('\r\n')}\r\n\r\n`);
    socket.on('error', () => {});
    const before = bench.running.server.metrics.streams;
    await eventually(() => bench.running.server.metrics.streams > before);
    // Each event carries its data; a large label makes the backlog grow fast.
    const definition = {
      ...CHAIN,
      tasks: { a: { uses: 'transform', with: { value: 1 }, gate: { message: 'go?' } } },
    };
    const { id } = await client.runs.start({ definition });
    const run = await client.runs.get(id, { wait_ms: 100 });
    await client.tasks.approve(run.tasks[0]?.task_run_id ?? '', { answer: 'x'.repeat(7 * 1024 * 1024) });
    await eventually(() => bench.running.server.metrics.streams <= before);
    socket.destroy();
  });
});

describe('a stream of what was', () => {
  it('brings an event that is larger than what may wait for a reader', async () => {
    const gated = {
      name: 'gated',
      tasks: { a: { uses: 'transform', with: { value: 1 }, gate: { message: 'go?' } } },
    };
    const { id } = await client.runs.start({ definition: gated });
    const { tasks } = await client.runs.get(id, { wait_ms: 100 });
    await client.tasks.approve(tasks[0]?.task_run_id ?? '', { answer: 'x'.repeat(5 * 1024 * 1024) });
    await client.runs.get(id, { wait_ms: 10_000 });
    const messages = await take(bodyOf(await openEvents(`/runs/${id}/events`)), isEnd);
    expect(messages.some(({ data }) => data.length > 5 * 1024 * 1024)).toBe(true);
  });

  it('is not kept from anybody by a listener that throws', async () => {
    const tail = new EventTail({
      engine: bench.local.engine,
      api: bench.local.api,
      logger: createLogger({ level: 'silent', clock: systemClock, write: () => {} }),
    });
    await tail.start();
    const heard: string[] = [];
    tail.listen(() => {
      throw new TypeError('broken');
    });
    tail.listen((events) => heard.push(...events.map(({ view }) => view.type)));
    const { id } = await client.runs.start({ definition: CHAIN });
    await client.runs.get(id, { wait_ms: 10_000 });
    await eventually(() => heard.includes('run.created') && heard.includes('task.completed'));
    await tail.stop();
  });
});

// SPEC S9.5
describe('a stream of a log', () => {
  it('brings what a task says and ends with it', async () => {
    const definition = { name: 'talk', tasks: { a: { uses: 'shell', with: { run: 'echo one; echo two' } } } };
    const { id } = await client.runs.start({ definition });
    const run = await client.runs.get(id);
    const response = await openEvents(`/tasks/${run.tasks[0]?.task_run_id}/logs`);
    const messages = await take(bodyOf(response), () => false);
    const text = messages.map(({ data }) => (JSON.parse(data) as { text: string }).text).join('');
    expect(text).toContain('one\ntwo\n');
    const whole = await take(bodyOf(await openEvents(`/runs/${id}/logs`)), () => false);
    expect(whole.map((message) => message.id)).toEqual(messages.map((message) => message.id));
    const rest = await take(
      bodyOf(await openEvents(`/runs/${id}/logs`, whole.at(-1)?.id ?? '')),
      () => false,
    );
    expect(rest).toEqual([]);
  });
});

async function newest(): Promise<string> {
  return bench.local.store.read((tx) => tx.events.newest());
}
