/** The door itself: who may come in, what every answer looks like, and what is refused. */

import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allRoutes, SCOPES, type Scope } from '../../client/src/index.ts';
import { OWN_TOKEN, ServerBench } from '../../test/support/server-bench.ts';
import { ensureTokenFile } from './auth.ts';

let bench: ServerBench;
beforeAll(async () => {
  bench = await ServerBench.open();
});
afterAll(() => bench.close());

const DIAMOND = {
  name: 'diamond',
  tasks: {
    a: { uses: 'transform', with: { value: 1 } },
    b: { uses: 'transform', with: { value: '{{ tasks.a.output }}' } },
  },
};

interface Failure {
  readonly error: { readonly code: string; readonly message: string };
}
const codeOf = async (response: Response): Promise<string> =>
  `${response.status} ${((await response.json()) as Failure).error.code}`;

/** Headers that fetch does not let anybody set. */
function rawStatus(headers: Record<string, string>, path = '/healthz', method = 'GET'): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: '127.0.0.1', port: bench.port, path, method, headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    sent.on('error', reject).end();
  });
}

// SPEC S14.3
describe('the door', () => {
  it('lets nobody in without a token, with a wrong one, or with a revoked one', async () => {
    expect(await codeOf(await bench.request('/runs', { token: null }))).toBe('401 UNAUTHENTICATED');
    expect(await codeOf(await bench.request('/runs', { token: 'relay_wrong' }))).toBe('401 UNAUTHENTICATED');
    const { tokens } = bench.client();
    const made = await tokens.create({ name: 'short-lived', scopes: ['read'] });
    expect((await bench.request('/runs', { token: made.token })).status).toBe(200);
    await tokens.revoke(made.id);
    expect(await codeOf(await bench.request('/runs', { token: made.token }))).toBe('401 UNAUTHENTICATED');
  });

  it('keeps no token, only its hash', async () => {
    const made = await bench.client().tokens.create({ name: 'hashed', scopes: ['read'] });
    const rows = await bench.local.store.read((tx) => tx.tokens.list());
    expect(JSON.stringify(rows)).not.toContain(made.token);
  });

  it('lets every scope use its own routes and no others', async () => {
    const granted: Record<Scope, readonly Scope[]> = {
      read: ['read', 'operate', 'admin'],
      operate: ['operate', 'admin'],
      worker: ['worker', 'admin'],
      admin: ['admin'],
    };
    for (const scope of SCOPES) {
      const { token } = await bench.client().tokens.create({ name: `only-${scope}`, scopes: [scope] });
      for (const { name, route } of allRoutes()) {
        const path = route.path.replace(/:(\w+)/g, (_, key: string) => (key === 'version' ? '1' : 'x'));
        const body = route.method === 'POST' ? '{"nonsense":1}' : route.method === 'PUT' ? 'x' : undefined;
        const response = await bench.request(path, {
          method: route.method,
          token,
          ...(body === undefined ? {} : { body }),
          headers: { 'content-type': route.takesBytes ? 'application/octet-stream' : 'application/json' },
        });
        await response.arrayBuffer();
        const isLetIn = response.status !== 403;
        expect(`${scope} ${name} ${isLetIn}`).toBe(
          `${scope} ${name} ${granted[route.scope].includes(scope)}`,
        );
      }
    }
  });

  it('is not opened by a page of another site', async () => {
    const start = { definition: DIAMOND };
    const before = (await bench.client().runs.list()).items.length;
    for (const headers of [
      { origin: 'https://evil.example', 'content-type': 'application/json' },
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/x-www-form-urlencoded' },
    ]) {
      const response = await bench.request('/runs', { method: 'POST', body: JSON.stringify(start), headers });
      expect([403, 415]).toContain(response.status);
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
    }
    expect((await bench.client().runs.list()).items).toHaveLength(before);
  });

  it('answers only to its own names', async () => {
    expect(await rawStatus({ host: `127.0.0.1:${bench.port}` })).toBe(200);
    expect(await rawStatus({ host: `localhost:${bench.port}` })).toBe(200);
    expect(await rawStatus({ host: 'rebound.example' })).toBe(403);
    expect(
      await rawStatus({ host: 'evil.example:80', authorization: `Bearer ${OWN_TOKEN}` }, '/api/v1/runs'),
    ).toBe(403);
  });
});

describe('a server without auth', () => {
  it('is possible on loopback only', async () => {
    const open = await ServerBench.open({ isOpenToAll: true });
    expect((await open.request('/runs', { token: null })).status).toBe(200);
    await open.close();
    await expect(ServerBench.open({ isOpenToAll: true, host: '0.0.0.0' })).rejects.toThrow(/--no-auth/);
  });

  it('makes a token that only its owner can read, when none was given', async () => {
    const own = await ServerBench.open({ token: undefined as never });
    const path = join(own.folder, '.relay', 'token');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const token = readFileSync(path, 'utf8').trim();
    expect((await own.request('/runs', { token })).status).toBe(200);
    await own.close();
  });
});

describe('a token file', () => {
  it('stays what it is, becomes private, and is not taken when it is empty', () => {
    const folder = mkdtempSync(join(tmpdir(), 'relay-token-'));
    const path = join(folder, 'deep', 'token');
    const token = ensureTokenFile(path);
    expect(token).toMatch(/^relay_[\w-]{43}$/);
    chmodSync(path, 0o644);
    expect(ensureTokenFile(path)).toBe(token);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(folder, 'deep'))).toEqual(['token']);
    writeFileSync(path, '\n');
    expect(() => ensureTokenFile(path)).toThrow('is empty');
    rmSync(folder, { recursive: true });
  });
});

describe('a server with a rate limit', () => {
  it('turns away who asks too often, in the one shape', async () => {
    const slow = await ServerBench.open({ rateLimit: 3 });
    for (let times = 0; times < 3; times++) expect((await slow.request('/runs')).status).toBe(200);
    const refused = await slow.request('/runs');
    expect(refused.headers.get('retry-after')).not.toBeNull();
    expect(await codeOf(refused)).toBe('429 RATE_LIMITED');
    await slow.close();
  });
});

// SPEC S13.1
describe('the contract', () => {
  it('is served whole, and nothing else below /api/v1', async () => {
    for (const { name, route } of allRoutes()) {
      const url = `/api/v1${route.path}`;
      expect(`${name} ${bench.running.server.app.hasRoute({ method: route.method, url })}`).toBe(
        `${name} true`,
      );
    }
  });

  it('is an OpenAPI 3.1 document that a validator accepts', async () => {
    const document = await (await bench.request('//openapi.json', { token: null })).json();
    const result = await new Validator().validate(document as Record<string, unknown>);
    expect(result.errors ?? []).toEqual([]);
    expect(result.valid).toBe(true);
  });

  it('has a page for people that loads nothing from elsewhere', async () => {
    const page = await (await bench.request('//docs', { token: null })).text();
    for (const { route } of allRoutes()) expect(page).toContain(`/api/v1${route.path}`);
    expect(page).not.toMatch(/<script|src=|https?:\/\//);
  });

  it('says which request an answer belongs to', async () => {
    const own = await bench.request('/runs', { headers: { 'x-request-id': 'mine-1' } });
    expect(own.headers.get('x-request-id')).toBe('mine-1');
    const odd = await bench.request('/runs', { headers: { 'x-request-id': 'a b' } });
    expect(odd.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('says what is wrong with a request', async () => {
    expect(await codeOf(await bench.post('/runs', { definiton: {} }))).toBe('400 USAGE');
    expect(await codeOf(await bench.post('/runs', {}))).toBe('400 USAGE');
    expect(await codeOf(await bench.request('/runs?limit=0'))).toBe('400 USAGE');
    expect(await codeOf(await bench.request('/runs?status=ODD'))).toBe('400 USAGE');
    expect(await codeOf(await bench.request('/runs/none'))).toBe('404 NOT_FOUND');
    expect(await codeOf(await bench.request('/nowhere'))).toBe('404 NOT_FOUND');
    expect(await codeOf(await bench.post('/runs', { definition: { name: 'x', tasks: {} } }))).toBe(
      '422 INVALID_WORKFLOW',
    );
  });

  it('finds runs by any label, however it is spelt', async () => {
    const { runs } = bench.client();
    const { id } = await runs.start({ definition: DIAMOND, labels: { '$. x': 'a=b' } });
    expect((await runs.list({ label: '$. x=a=b' })).items.map((run) => run.id)).toEqual([id]);
    expect((await runs.list({ label: '$[' })).items).toEqual([]);
  });

  it('takes a body of 8 MiB and of 200 levels, and no more', async () => {
    const large = JSON.stringify({ source: 'x'.repeat(9 * 1024 * 1024) });
    const headers = { 'content-type': 'application/json' };
    expect(
      await codeOf(await bench.request('/workflows/validate', { method: 'POST', body: large, headers })),
    ).toBe('413 PAYLOAD_TOO_LARGE');
    const deep = `{"definition":{"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`;
    expect(await codeOf(await bench.request('/runs', { method: 'POST', body: deep, headers }))).toBe(
      '400 USAGE',
    );
  });

  it('gives the same run for the same key, to the same caller', async () => {
    const { runs } = bench.client();
    const first = await runs.start({ definition: DIAMOND, idempotency_key: 'k-1' });
    const again = await runs.start({ definition: DIAMOND, idempotency_key: 'k-1' });
    expect(again.id).toBe(first.id);
    const { token } = await bench.client().tokens.create({ name: 'other', scopes: ['operate'] });
    const other = await bench.client(token).runs.start({ definition: DIAMOND, idempotency_key: 'k-1' });
    expect(other.id).not.toBe(first.id);
    await expect(
      runs.start({ definition: { ...DIAMOND, name: 'changed' }, idempotency_key: 'k-1' }),
    ).rejects.toMatchObject({
      problem: { code: 'IDEMPOTENCY_CONFLICT', status: 409 },
    });
  });

  it('writes down who did something', async () => {
    const { token } = await bench.client().tokens.create({ name: 'ana', scopes: ['operate'] });
    const ana = bench.client(token);
    const { id } = await ana.runs.start({ definition: DIAMOND });
    await ana.runs.cancel(id);
    const { items } = await ana.events.page({ run_id: id, types: ['run.cancelled'] });
    expect(items[0]?.data).toMatchObject({ by: 'ana' });
  });
});

describe('a request', () => {
  it('may not take for ever to arrive', () => {
    const { server } = bench.running.server.app;
    expect(server.requestTimeout).toBeGreaterThan(0);
    expect(server.headersTimeout).toBeGreaterThan(0);
    expect(server.headersTimeout).toBeLessThan(server.requestTimeout);
  });
});

describe('a server that stops', () => {
  it('waits for requests under way, and not for connections that nobody has used', async () => {
    const leaving = await ServerBench.open();
    const spare = connect(leaving.port, '127.0.0.1');
    await new Promise((done) => spare.once('connect', done));
    const { id } = await leaving.client().runs.start({ open: true, auto_close: false });
    const underWay = new Promise((done) => leaving.running.server.app.server.once('request', done));
    const waiting = leaving.request(`/runs/${id}?wait=60s`).then((response) => response.status);
    await underWay;
    const closed = new Promise((done) => spare.once('close', done));
    await leaving.running.server.stop();
    expect(await waiting).toBe(200);
    await closed;
    await leaving.local.close();
  });
});

// SPEC S12.5, S14.7
describe('health and numbers', () => {
  it('say that the server lives, is ready, and what it has to do', async () => {
    expect((await bench.request('//healthz', { token: null })).status).toBe(200);
    expect((await bench.request('//readyz', { token: null })).status).toBe(200);
    expect((await bench.request('//metrics', { token: null })).status).toBe(401);
    const text = await (await bench.request('//metrics')).text();
    for (const name of [
      'relay_queue_depth',
      'relay_leases',
      'relay_workers',
      'relay_event_loop_lag_seconds',
    ]) {
      expect(text).toMatch(new RegExp(`^${name} [\\d.e-]+$`, 'm'));
    }
  });

  it('say that the server is not ready when its store is away', async () => {
    const lost = await ServerBench.open();
    await lost.local.store.close();
    expect((await lost.request('//readyz', { token: null })).status).toBe(503);
    expect((await lost.request('//healthz', { token: null })).status).toBe(200);
    const stranger = await lost.request('/runs', { token: 'relay_somebody' });
    expect(stranger.status).toBe(503);
    expect(await stranger.text()).not.toContain(lost.folder);
    await lost.running.stop(0);
  });
});
