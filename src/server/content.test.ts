/** Content that does not fit into an answer: artifacts out, blobs in, piece by piece, from files and from a bucket (SPEC S14.5). */
import { createHash, randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bytesOf } from '../../client/src/index.ts';
import { type S3Server, startS3 } from '../../test/support/s3-server.ts';
import { OWN_TOKEN, ServerBench } from '../../test/support/server-bench.ts';

let s3: S3Server;
const benches: Record<string, ServerBench> = {};
beforeAll(async () => {
  s3 = await startS3();
  const { endpoint, bucket, region, prefix, accessKey, secretKey } = s3.options;
  benches.files = await ServerBench.open();
  benches.s3 = await ServerBench.open({
    env: { KEY: accessKey, SECRET: secretKey },
    blobs: { kind: 's3', endpoint, bucket, region, prefix, access_key_env: 'KEY', secret_key_env: 'SECRET' },
  });
});
afterAll(async () => {
  for (const bench of Object.values(benches)) await bench.close();
  await s3.close();
});

interface Claimed {
  readonly leases: readonly { readonly lease_id: string; readonly task_run_id: string }[];
}
const FAR = { name: 'far', handlers: ['far'], tasks: { a: { uses: 'far' } } };

/** A lease of a task that nobody but the test works on. */
async function leaseOf(bench: ServerBench): Promise<{ lease_id: string; task_run_id: string }> {
  await bench.client().runs.start({ definition: FAR });
  await bench.post('/workers/register', { worker_id: 'w', boot_id: 'b', handlers: ['far'] });
  const answer = await bench.post('/workers/w/claim', { limit: 1, wait_s: 5 });
  const [lease] = ((await answer.json()) as Claimed).leases;
  if (lease === undefined) throw new TypeError('nothing was claimed');
  return lease;
}

function put(
  bench: ServerBench,
  lease_id: string,
  bytes: Uint8Array,
  more: { readonly key?: string; readonly headers?: Record<string, string> } = {},
): Promise<Response> {
  const key = more.key ?? createHash('sha256').update(bytes).digest('hex');
  return bench.request(`/leases/${lease_id}/blobs/${key}`, {
    method: 'PUT',
    body: bytes as NonNullable<RequestInit['body']>,
    headers: { 'content-type': 'application/octet-stream', ...more.headers },
  });
}

describe.each(['files', 's3'])('content in %s', (kind) => {
  let bench: ServerBench;
  beforeAll(() => {
    bench = benches[kind] as ServerBench;
  });

  it('goes in as a blob and comes out as an artifact, small or large', async () => {
    const { lease_id, task_run_id } = await leaseOf(bench);
    const contents = [Buffer.alloc(0), Buffer.from('small'), randomBytes(2_000_000)];
    const artifacts = [];
    for (const [n, bytes] of contents.entries()) {
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      const answer = await put(bench, lease_id, bytes);
      expect(await answer.json()).toEqual({ key: sha256, bytes: bytes.length });
      const read = await bench.request(`/leases/${lease_id}/blobs/${sha256}`);
      expect(Buffer.from(await read.arrayBuffer()).equals(bytes)).toBe(true);
      artifacts.push({ name: `f${n}`, content_type: 'text/html', sha256 });
    }
    const output = JSON.stringify('x'.repeat(300_000));
    const output_sha256 = createHash('sha256').update(output).digest('hex');
    await put(bench, lease_id, Buffer.from(output));
    const done = await bench.post(`/leases/${lease_id}/complete`, { output_sha256, artifacts });
    expect(await done.json()).toMatchObject({ status: 'SUCCESS' });
    const again = await bench.post(`/leases/${lease_id}/complete`, { output_sha256, artifacts });
    expect(again.status).toBe(200);
    const { tasks } = bench.client();
    const { items } = await tasks.artifacts(task_run_id);
    for (const [n, bytes] of contents.entries()) {
      const { id } = items.find(({ name }) => name === `f${n}`) ?? { id: '' };
      const content = await tasks.artifact(id);
      expect(content).toMatchObject({ content_type: 'text/html', size: bytes.length });
      expect(Buffer.from(await bytesOf(content)).equals(bytes)).toBe(true);
      const plain = await bench.request(`/artifacts/${id}`);
      await plain.arrayBuffer();
      expect(plain.headers.get('content-disposition')).toBe('attachment');
      const known = await bench.request(`/artifacts/${id}`, { headers: { 'if-none-match': content.etag } });
      expect(known.status).toBe(304);
      const head = await bench.request(`/artifacts/${id}`, { method: 'HEAD' });
      expect(head.headers.get('content-length')).toBe(String(bytes.length));
      expect(head.headers.get('etag')).toBe(content.etag);
    }
  });

  it('is refused when it is not what it is called, and the connection goes on', async () => {
    const { lease_id } = await leaseOf(bench);
    const bytes = randomBytes(700_000);
    const wrong = await put(bench, lease_id, bytes, { key: 'a'.repeat(64) });
    expect(wrong.status).toBe(400);
    expect(await wrong.text()).toContain('is not what its name says');
    expect((await put(bench, lease_id, bytes)).status).toBe(200);
    const stale = await put(bench, 'no-lease', bytes);
    expect(stale.status).toBe(409);
    const missing = await bench.post(`/leases/${lease_id}/complete`, { output_sha256: 'b'.repeat(64) });
    expect(missing.status).toBe(404);
    expect((await put(bench, lease_id, Buffer.from('fine'))).status).toBe(200);
  });

  it('whose artifact has lost its blob is an error in the one shape', async () => {
    const { lease_id, task_run_id } = await leaseOf(bench);
    const bytes = randomBytes(300_000);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    await put(bench, lease_id, bytes);
    const artifacts = [{ name: 'f', content_type: 'text/plain', sha256 }];
    await bench.post(`/leases/${lease_id}/complete`, { output: 1, artifacts });
    await bench.local.engine.context.blobs.remove(sha256);
    const { items } = await bench.client().tasks.artifacts(task_run_id);
    const { id } = items.find(({ name }) => name === 'f') ?? { id: '' };
    const answer = await bench.request(`/artifacts/${id}`);
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ error: { code: 'NOT_FOUND' } });
  });
});

describe('an upload', () => {
  /** A request that fetch would not make. */
  function raw(
    lease_id: string,
    headers: Record<string, string | number>,
    send: (request: ReturnType<typeof httpRequest>) => void,
  ): Promise<number> {
    const bench = benches.files as ServerBench;
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        {
          host: '127.0.0.1',
          port: bench.port,
          method: 'PUT',
          path: `/api/v1/leases/${lease_id}/blobs/${'c'.repeat(64)}`,
          headers: {
            authorization: `Bearer ${OWN_TOKEN}`,
            'content-type': 'application/octet-stream',
            ...headers,
          },
        },
        (answer) => {
          answer.resume();
          resolve(answer.statusCode ?? 0);
        },
      );
      request.on('error', reject);
      send(request);
    });
  }

  it('has to say its length, which has a bound', async () => {
    const { lease_id } = await leaseOf(benches.files as ServerBench);
    expect(await raw(lease_id, { 'transfer-encoding': 'chunked' }, (sent) => sent.end('x'))).toBe(400);
    const tooLong = { 'content-length': 2 * 1024 ** 3, expect: '100-continue' };
    expect(await raw(lease_id, tooLong, (sent) => sent.flushHeaders())).toBe(413);
  });

  it('that breaks off leaves nothing, and the server goes on', async () => {
    const bench = benches.files as ServerBench;
    const { lease_id } = await leaseOf(bench);
    const broken = raw(lease_id, { 'content-length': 1_000_000 }, (sent) => {
      sent.write('x'.repeat(200_000), () => sent.destroy(new TypeError('gone')));
    });
    await expect(broken).rejects.toThrow('gone');
    expect((await put(bench, lease_id, Buffer.from('next'))).status).toBe(200);
    expect(await bench.local.engine.context.blobs.size('c'.repeat(64))).toBeNull();
  });
});
