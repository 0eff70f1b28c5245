/** The client by itself: what it sends, what it makes of answers, and streams that break off. */
import { describe, expect, it } from 'vitest';
import { CallError, createClient, follow, messagesOf, ROUTES } from './index.ts';

interface Sent {
  readonly url: string;
  readonly init: RequestInit;
}

/** A client whose server is a function. */
function clientOf(answer: (sent: Sent) => Response | Promise<Response>) {
  const sent: Sent[] = [];
  const fake: typeof fetch = async (url, init = {}) => {
    const one = { url: String(url), init };
    sent.push(one);
    return answer(one);
  };
  return { sent, client: createClient({ url: 'http://relay.test', token: 'relay_t', fetch: fake }) };
}

const json = (value: unknown, status = 200): Response =>
  new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json' } });

describe('a call', () => {
  it('goes to the path of its route with parameters, query, body and token', async () => {
    const { sent, client } = clientOf(() => json({}));
    await client.runs.rerun('a/b?', 'draft', { idempotency_key: 'k' });
    await client.events.page({ run_id: 'r', types: ['run.created', 'task.failed'], limit: 5 });
    expect(sent[0]?.url).toBe('http://relay.test/api/v1/runs/a%2Fb%3F/rerun');
    expect(sent[0]?.init).toMatchObject({
      method: 'POST',
      body: '{"task_id":"draft","idempotency_key":"k"}',
      headers: { authorization: 'Bearer relay_t', 'content-type': 'application/json' },
    });
    expect(sent[1]?.url).toBe(
      'http://relay.test/api/v1/events?run_id=r&limit=5&types=run.created%2Ctask.failed',
    );
  });

  it('fails with what the server says', async () => {
    const error = { code: 'RUN_ACTIVE', message: 'it runs', hint: 'wait' };
    const { client } = clientOf(() => json({ error }, 409));
    const failure = await client.runs.retry('r').catch((thrown: unknown) => thrown);
    expect(failure).toBeInstanceOf(CallError);
    expect((failure as CallError).problem).toEqual({ ...error, status: 409 });
  });

  it('says so when nothing answers, or something else does', async () => {
    const away = clientOf(() => Promise.reject(new TypeError('fetch failed')));
    await expect(away.client.stats.get()).rejects.toMatchObject({ problem: { code: 'SERVER_UNAVAILABLE' } });
    const proxy = clientOf(() => new Response('<html>', { status: 502 }));
    await expect(proxy.client.stats.get()).rejects.toMatchObject({
      problem: { code: 'SERVER_UNAVAILABLE', status: 502 },
    });
    const broken = clientOf(() => new Response('{"half":', { status: 200 }));
    await expect(broken.client.stats.get()).rejects.toMatchObject({
      problem: { code: 'SERVER_UNAVAILABLE' },
    });
  });

  it('looks twice when a kept connection turns out to be dead, but acts once', async () => {
    let calls = 0;
    const flaky = clientOf(() => {
      calls += 1;
      return calls === 1 ? Promise.reject(new TypeError('other side closed')) : json({ items: [] });
    });
    await flaky.client.runs.list();
    expect(calls).toBe(2);
    const acting = clientOf(() => Promise.reject(new TypeError('other side closed')));
    await expect(acting.client.runs.cancel('r')).rejects.toThrow();
    expect(acting.sent).toHaveLength(1);
  });

  it('does not send what only a local caller may say', async () => {
    const { sent, client } = clientOf(() => json({}));
    await client.runs.start({ workflow: 'x', workdir: '/secret/place' });
    expect(sent[0]?.init.body).toBe('{"workflow":"x"}');
  });
});

function bodyOf(...chunks: readonly string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
      controller.close();
    },
  });
}

describe('a stream', () => {
  it('is read whole, however it is cut', async () => {
    const text = ': hello\n\nid: 1\nevent: a\ndata: {"x":\ndata: 1}\n\nid: 2\ndata: ü\n\nid: 3\ndata: half';
    const cut = [...text].map((character) => character);
    const messages: unknown[] = [];
    for await (const message of messagesOf(bodyOf(...cut))) messages.push(message);
    expect(messages).toEqual([
      { id: '1', event: 'a', data: '{"x":\n1}' },
      { id: '2', event: 'message', data: 'ü' },
    ]);
  });

  it('goes on after the last message when it breaks off', async () => {
    const parts = ['id: 1\ndata: one\n\n', 'id: 2\ndata: two\n\n'];
    const { sent, client } = clientOf(() => new Response(bodyOf(parts[sent.length - 1] ?? '')));
    const leaving = new AbortController();
    const seen: string[] = [];
    for await (const { data } of follow(client.http, ROUTES.events.page, { signal: leaving.signal })) {
      seen.push(data);
      if (seen.length === 2) break;
    }
    expect(seen).toEqual(['one', 'two']);
    expect(sent[1]?.init.headers).toMatchObject({ 'last-event-id': '1', accept: 'text/event-stream' });
  });

  it('ends with an error that will not go away', async () => {
    const error = { code: 'CURSOR_EXPIRED', message: 'gone', hint: '' };
    const { client } = clientOf(() => json({ error }, 410));
    const { signal } = new AbortController();
    await expect(follow(client.http, ROUTES.events.page, { signal }).next()).rejects.toThrow('gone');
  });
});
