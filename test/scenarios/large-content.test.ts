/** Content much larger than what a server may hold goes through it: memory stays as it was, and nothing stays open. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient, type RelayClient } from '../../client/src/index.ts';
import { eventually } from '../support/processes.ts';
import { type Running, startServer, tokenOf } from '../support/server-process.ts';

const MIB = 1024 * 1024;
const PIECES = 200;
/** What buffers and garbage may take; whoever held the content would need 200. */
const GROWTH_MIB_MAX = 90;

let cwd: string;
let server: Running & { readonly url: string };
let client: RelayClient;
beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'relay-large-'));
  server = await startServer(cwd, ['--port', '0', '--no-worker']);
  client = createClient({ url: server.url, token: tokenOf(cwd) });
});
afterAll(async () => {
  client.close();
  server.process.kill('SIGTERM');
  await server.ended;
  rmSync(cwd, { recursive: true, force: true });
});

/** 200 MiB of which no two are alike. */
function* pieces(): Generator<Buffer> {
  for (let n = 0; n < PIECES; n++) yield Buffer.alloc(MIB, `piece ${n} `);
}

/** The most memory that the server has had at once. */
function peakMib(): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

/** Blobs that the server has open. */
function openBlobs(): number {
  const folder = `/proc/${server.process.pid}/fd`;
  return readdirSync(folder).filter((fd) => {
    try {
      return readlinkSync(join(folder, fd)).includes('/blobs/');
    } catch {
      // It was closed while we looked.
      return false;
    }
  }).length;
}

async function post(path: string, body: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${server.url}/api/v1${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { authorization: `Bearer ${tokenOf(cwd)}`, 'content-type': 'application/json' },
  });
  return (await response.json()) as Record<string, unknown>;
}

/** Sends the pieces as they are made. */
async function upload(path: string): Promise<number> {
  const sent = httpRequest(`${server.url}/api/v1${path}`, {
    method: 'PUT',
    headers: {
      authorization: `Bearer ${tokenOf(cwd)}`,
      'content-type': 'application/octet-stream',
      'content-length': PIECES * MIB,
    },
  });
  const status = new Promise<number>((resolve, reject) => {
    sent.on('error', reject).on('response', (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
  });
  await pipeline(Readable.from(pieces()), sent);
  return status;
}

// SPEC S14.5
describe('an artifact of 200 MiB', () => {
  it('goes in and out without being held, and a reader that leaves leaves nothing open', async () => {
    const hash = createHash('sha256');
    for (const piece of pieces()) hash.update(piece);
    const sha256 = hash.digest('hex');
    await client.runs.start({
      definition: { name: 'far', handlers: ['far'], tasks: { a: { uses: 'far' } } },
    });
    await post('/workers/register', { worker_id: 'w', boot_id: 'b', handlers: ['far'] });
    const { leases } = (await post('/workers/w/claim', { limit: 1, wait_s: 5 })) as {
      leases: readonly { lease_id: string; task_run_id: string }[];
    };
    const [lease] = leases;
    const before = peakMib();
    expect(await upload(`/leases/${lease?.lease_id}/blobs/${sha256}`)).toBe(200);
    const artifacts = [{ name: 'weights.bin', content_type: 'application/octet-stream', sha256 }];
    expect(await post(`/leases/${lease?.lease_id}/complete`, { output: 1, artifacts })).toMatchObject({
      ok: true,
    });
    const { items } = await client.tasks.artifacts(lease?.task_run_id ?? '');
    const { id } = items.find(({ name }) => name === 'weights.bin') ?? { id: '' };
    const content = await client.tasks.artifact(id);
    expect(content.size).toBe(PIECES * MIB);
    const back = createHash('sha256');
    for await (const piece of await content.read()) back.update(piece);
    expect(back.digest('hex')).toBe(sha256);
    for (let reader = 0; reader < 5; reader++) {
      for await (const _ of await (await client.tasks.artifact(id)).read()) break;
    }
    await eventually(() => openBlobs() === 0);
    expect(peakMib() - before).toBeLessThan(GROWTH_MIB_MAX);
  }, 120_000);
});
