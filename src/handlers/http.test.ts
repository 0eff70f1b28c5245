/** The `http` handler against real servers on this machine (SPEC S9.3, S5.2). */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { runHandler } from '../../test/support/handler-bench.ts';
import { ManualClock } from '../base/clock.ts';
import type { AttemptFailure } from '../domain/attempt-failure.ts';
import { classify } from '../domain/failure.ts';
import { http } from './http.ts';

interface Closable {
  close(): unknown;
}
const open: Closable[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

type Listener = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** Starts a server and gives its address. */
async function serve(listener: Listener): Promise<string> {
  const server: Server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => listener(request, response, body));
  });
  open.push({ close: () => server.closeAllConnections() }, server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const outputOf = async (config: unknown): Promise<unknown> => (await runHandler(http, config)).output;
const failureOf = (config: unknown, given?: Parameters<typeof runHandler>[2]): Promise<AttemptFailure> =>
  runHandler(http, config, given).then(
    () => expect.unreachable('the request should have failed'),
    (error: AttemptFailure) => error,
  );
const classOf = ({ facts }: AttemptFailure): unknown => classify(facts);

const echo: Listener = (request, response, body) => {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }));
};

describe('requests', () => {
  it('a GET gives status, headers and parsed body', async () => {
    const url = await serve(echo);
    expect(
      await outputOf({ url: `${url}/a?b=1`, query: { c: 'x y', d: [1, true] }, headers: { 'X-N': 5 } }),
    ).toMatchObject({
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: { method: 'GET', url: '/a?b=1&c=x+y&d=1&d=true', headers: { 'x-n': '5' } },
    });
  });

  it('a JSON body is posted as JSON', async () => {
    const url = await serve(echo);
    expect(await outputOf({ url, json: { a: null } })).toMatchObject({
      body: { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"a":null}' },
    });
  });

  it('a text body is sent as it is', async () => {
    const url = await serve(echo);
    expect(
      await outputOf({ url, method: 'PUT', body: 'plain', headers: { 'content-type': 'text/x' } }),
    ).toMatchObject({
      body: { method: 'PUT', headers: { 'content-type': 'text/x' }, body: 'plain' },
    });
  });

  it('a name and password in the URL become a header', async () => {
    const url = (await serve(echo)).replace('//', '//user:p%40ss@');
    expect(await outputOf({ url })).toMatchObject({
      body: { headers: { authorization: `Basic ${Buffer.from('user:p@ss').toString('base64')}` } },
    });
  });

  it('a request that can never be sent fails for good', async () => {
    expect(await failureOf({ url: await serve(echo), headers: { 'bad name': 'x' } })).toMatchObject({
      name: 'TerminalError',
    });
    expect(await failureOf({ url: await serve(echo), method: 'GET', body: 'x' })).toMatchObject({
      name: 'TerminalError',
    });
  });
});

describe('answers', () => {
  const answer = (type: string, body: string, status = 200): Promise<string> =>
    serve((_request, response) => {
      response.writeHead(status, { 'content-type': type }).end(body);
    });

  it('auto parses what is called JSON and leaves the rest as text', async () => {
    expect(await outputOf({ url: await answer('application/problem+json', '[1]') })).toMatchObject({
      body: [1],
    });
    expect(await outputOf({ url: await answer('text/plain', '[1]') })).toMatchObject({ body: '[1]' });
    expect(await outputOf({ url: await answer('application/json', 'oops') })).toMatchObject({ body: 'oops' });
  });

  it('parse decides otherwise', async () => {
    expect(await outputOf({ url: await answer('text/plain', '[1]'), parse: 'json' })).toMatchObject({
      body: [1],
    });
    expect(await outputOf({ url: await answer('application/json', '[1]'), parse: 'text' })).toMatchObject({
      body: '[1]',
    });
    expect(await failureOf({ url: await answer('text/plain', 'oops'), parse: 'json' })).toMatchObject({
      facts: { kind: 'output', problem: 'not_json' },
    });
  });

  it('several cookies stay a list, and another charset is read', async () => {
    const url = await serve((_request, response) => {
      response.setHeader('set-cookie', ['a=1', 'b=2']);
      response.setHeader('content-type', 'text/plain; charset=iso-8859-1');
      response.end(Buffer.from([0xe4]));
    });
    expect(await outputOf({ url })).toMatchObject({ headers: { 'set-cookie': ['a=1', 'b=2'] }, body: 'ä' });
  });

  it('a body over the bound fails with class output', async () => {
    const url = await serve((_request, response) => {
      const chunk = Buffer.alloc(1024 * 1024);
      response.on('error', () => {});
      for (let index = 0; index < 17; index++) response.write(chunk);
      response.end();
    });
    expect(await failureOf({ url })).toMatchObject({ facts: { kind: 'output', problem: 'too_long' } });
  });
});

describe('statuses', () => {
  it('a status that is not expected fails with the status and the start of the body', async () => {
    const url = await serve((_request, response) => response.writeHead(404).end(`gone ${'x'.repeat(1_000)}`));
    const failure = await failureOf({ url: `${url}/thing?key=secret` });
    expect(failure).toMatchObject({ facts: { kind: 'http', status: 404 }, extra: { status: 404 } });
    expect(failure.message).toMatch(
      /^GET http:\/\/127\.0\.0\.1:\d+\/thing answered 404 Not Found: gone x{295}$/,
    );
    expect(classOf(failure)).toMatchObject({ class: 'http', retryable: false });
  });

  it('`expect` replaces the default', async () => {
    const url = await serve((_request, response) => response.writeHead(404).end());
    expect(await outputOf({ url, expect: [404] })).toMatchObject({ status: 404, body: '' });
    const fine = await serve((_request, response) => response.end('ok'));
    expect(await failureOf({ url: fine, expect: [201] })).toMatchObject({
      facts: { kind: 'http', status: 200 },
    });
  });

  // SPEC S5.3
  it('Retry-After is passed on, in seconds or as a date', async () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1, 12, 0, 0));
    const busy = (after: string): Promise<string> =>
      serve((_request, response) => response.writeHead(429, { 'retry-after': after }).end());
    expect((await failureOf({ url: await busy('7') }, { clock })).extra).toMatchObject({
      retryAfterMs: 7_000,
    });
    const date = await busy('Thu, 01 Jan 2026 12:01:00 GMT');
    expect((await failureOf({ url: date }, { clock })).extra).toMatchObject({ retryAfterMs: 60_000 });
    expect((await failureOf({ url: await busy('soon') }, { clock })).extra).toEqual({ status: 429 });
  });
});

// SPEC S5.1, S5.2
describe('no answer', () => {
  it('a closed port is a refused connection, also by a name with several addresses', async () => {
    const server = createTcpServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    for (const host of ['127.0.0.1', 'localhost']) {
      const failure = await failureOf({ url: `http://${host}:${port}` });
      expect(classOf(failure)).toEqual({ class: 'transport', code: 'CONNECTION_REFUSED', retryable: true });
    }
  });

  it('a connection that breaks is a reset', async () => {
    const server = createTcpServer((socket) => socket.on('data', () => socket.resetAndDestroy()));
    open.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const failure = await failureOf({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    expect(classOf(failure)).toMatchObject({ class: 'transport', code: 'CONNECTION_RESET', retryable: true });
  });

  it('an answer that breaks off is a failure of the network', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('part', () => response.destroy());
    });
    expect(classOf(await failureOf({ url }))).toMatchObject({ class: 'transport', retryable: true });
  });

  it('a name that does not resolve is a DNS failure', async () => {
    const failure = await failureOf({ url: 'http://no-such-host.invalid/' });
    expect(classOf(failure)).toMatchObject({ class: 'transport', code: 'DNS_FAILED' });
  });

  it('a URL that is none, of another kind, or with a forbidden port is a bad URL', async () => {
    for (const url of ['nowhere', 'ftp://example.org/', 'file:///etc/passwd', 'http://127.0.0.1:1/']) {
      expect(classOf(await failureOf({ url })), url).toEqual({
        class: 'transport',
        code: 'BAD_URL',
        retryable: false,
      });
    }
  });

  it('a server that does not answer in time is a timeout', async () => {
    const url = await serve(() => {});
    const failure = await failureOf({ url, request_timeout: '50ms' });
    expect(failure.facts).toEqual({ kind: 'timeout' });
    expect(failure.message).toContain('request_timeout');
  });

  it('an abort ends the request with the abort', async () => {
    const abort = new AbortController();
    const url = await serve(() => abort.abort());
    expect(await failureOf({ url }, { signal: abort.signal })).toMatchObject({ name: 'AbortError' });
  });
});
