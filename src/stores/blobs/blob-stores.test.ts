/** Every blob store does the same: one suite over all of them (SPEC S14.5). */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type S3Server, startS3 } from '../../../test/support/s3-server.ts';
import { type BlobName, type BlobStore, getBytes, putBytes } from '../blob-store.ts';
import { FileBlobStore } from './file-blob-store.ts';
import { S3BlobStore } from './s3-blob-store.ts';

let folder: string;
let s3: S3Server;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'relay-blobs-'));
  s3 = await startS3();
});
afterAll(async () => {
  await s3.close();
  rmSync(folder, { recursive: true, force: true });
});

const KINDS: Readonly<Record<string, () => BlobStore>> = {
  files: () => new FileBlobStore(join(folder, 'blobs')),
  s3: () => new S3BlobStore(s3.options),
};

const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const MISSING = '0'.repeat(64);

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
async function listed(blobs: BlobStore, time: number): Promise<string[]> {
  const refs: string[] = [];
  for await (const ref of blobs.olderThan(time)) refs.push(ref);
  return refs.sort();
}
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no error',
    (error: { code?: string }) => error.code ?? String(error),
  );

describe.each(Object.keys(KINDS))('blobs in %s', (kind) => {
  let blobs: BlobStore;
  // The server of these tests keeps what it got of a request that broke off; S3 itself does not.
  const isAtomic = kind === 'files';
  beforeAll(() => {
    blobs = KINDS[kind]?.() as BlobStore;
  });

  it('come back as they were stored, under the hash of their content', async () => {
    for (const bytes of [new Uint8Array(), Buffer.from('héllo'), Buffer.alloc(3_000_000, 'relay')]) {
      const ref = await putBytes(blobs, bytes);
      expect(ref).toBe(hashOf(bytes));
      expect(await blobs.size(ref)).toBe(bytes.length);
      expect(Buffer.from(await getBytes(blobs, ref)).equals(bytes)).toBe(true);
      expect(await putBytes(blobs, bytes)).toBe(ref);
    }
  });

  it('are stored piece by piece', async () => {
    const bytes = Buffer.alloc(1_000_001, 'piece by piece');
    const name = { ref: hashOf(bytes), bytes: bytes.length };
    await blobs.write(name, inPieces(bytes, 65_536));
    expect(Buffer.from(await getBytes(blobs, name.ref)).equals(bytes)).toBe(true);
  });

  it('that are not what they were called leave nothing', async () => {
    // Each has a content of its own: the server of the test may keep what was broken off, and show it a moment later.
    const contents = ['one name', 'too short', 'too long'].map((text) =>
      Buffer.from(`what really comes: ${text}`),
    );
    const [one, short, long] = contents.map((bytes) => ({ ref: hashOf(bytes), bytes: bytes.length }));
    const wrong = [
      { ...one, ref: hashOf(Buffer.from('something else')) },
      { ...short, bytes: (short?.bytes ?? 0) + 1 },
      { ...long, bytes: (long?.bytes ?? 0) - 1 },
    ] as BlobName[];
    for (const [index, name] of wrong.entries()) {
      const bytes = contents[index] as Buffer;
      expect(await codeOf(blobs.write(name, bytes))).toBe('USAGE');
      expect(await blobs.size(name.ref)).toBeNull();
      expect(await codeOf(blobs.write(name, inPieces(bytes, 4)))).toBe('USAGE');
      if (isAtomic) expect(await blobs.size(name.ref)).toBeNull();
    }
  });

  it('that break off leave nothing', async () => {
    const bytes = Buffer.alloc(500_000, 'x');
    async function* broken() {
      yield bytes.subarray(0, 200_000);
      await Promise.reject(new TypeError('the sender has gone'));
    }
    const name = { ref: hashOf(bytes), bytes: bytes.length };
    expect(await codeOf(blobs.write(name, broken()))).not.toBe('no error');
    if (isAtomic) expect(await blobs.size(name.ref)).toBeNull();
  });

  it('that are not there are said to be missing, and may be removed', async () => {
    expect(await codeOf(blobs.read(MISSING))).toBe('NOT_FOUND');
    expect(await blobs.size(MISSING)).toBeNull();
    await blobs.remove(MISSING);
    await blobs.remove(MISSING, 1);
  });

  it('are listed by age, and only removed while they are as old as was thought', async () => {
    const hour = 3_600_000;
    const ref = await putBytes(blobs, Buffer.from('to be removed'));
    const now = s3.options.clock.now();
    expect(await listed(blobs, now - hour)).toEqual([]);
    expect(await listed(blobs, now + hour)).toContain(ref);
    await blobs.remove(ref, now - hour);
    expect(await blobs.size(ref)).not.toBeNull();
    await blobs.remove(ref, now + hour);
    expect(await blobs.size(ref)).toBeNull();
    expect(await listed(blobs, now + hour)).not.toContain(ref);
  });
});

describe('blobs in files', () => {
  it('leave no drafts of writers that were killed', async () => {
    const blobs = new FileBlobStore(join(folder, 'drafts'));
    const ref = await putBytes(blobs, Buffer.from('whole'));
    const draft = join(folder, 'drafts', ref.slice(0, 2), `${ref}.abandoned`);
    writeFileSync(draft, 'half');
    utimesSync(draft, 1, 1);
    expect(await listed(blobs, 10_000)).toEqual([]);
    expect(readdirSync(join(folder, 'drafts', ref.slice(0, 2)))).toEqual([ref]);
  });
});

describe('blobs in a bucket', () => {
  it('are more than one page of a list', async () => {
    const blobs = new S3BlobStore({ ...s3.options, prefix: 'many/' });
    const contents = Array.from({ length: 1_100 }, (_, n) => Buffer.from(`blob ${n}`));
    for (let at = 0; at < contents.length; at += 50)
      await Promise.all(contents.slice(at, at + 50).map((bytes) => putBytes(blobs, bytes)));
    expect(await listed(blobs, s3.options.clock.now() + 3_600_000)).toEqual(contents.map(hashOf).sort());
  }, 60_000);

  it('need the right keys and an existing bucket, and say so', async () => {
    const stranger = new S3BlobStore({ ...s3.options, secretKey: 'wrong' });
    await expect(putBytes(stranger, Buffer.from('x'))).rejects.toMatchObject({
      code: 'STORE_NOT_WRITABLE',
      message: expect.stringContaining('SignatureDoesNotMatch') as string,
    });
    const nowhere = new S3BlobStore({ ...s3.options, bucket: 'no-such-bucket' });
    await expect(putBytes(nowhere, Buffer.from('x'))).rejects.toMatchObject({
      code: 'STORE_NOT_WRITABLE',
      message: expect.stringContaining('NoSuchBucket') as string,
    });
  });

  it('are tried again while the bucket is away', async () => {
    let calls = 0;
    const flaky = createServer((request, answer) => {
      calls += 1;
      request.resume().on('end', () => answer.writeHead(calls < 3 ? 503 : 200).end());
    });
    await new Promise<void>((done) => flaky.listen(0, '127.0.0.1', done));
    const endpoint = `http://127.0.0.1:${(flaky.address() as AddressInfo).port}`;
    const blobs = new S3BlobStore({ ...s3.options, endpoint });
    await putBytes(blobs, Buffer.from('x'));
    expect(calls).toBe(3);
    flaky.closeAllConnections();
    flaky.close();
    await expect(putBytes(blobs, Buffer.from('x'))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });
});
