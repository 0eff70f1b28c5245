/** A server that speaks S3 on loopback and checks signatures, with an empty bucket; everything ends with `close`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from '@20minutes/s3rver';
import { systemClock } from '../../src/base/clock.ts';
import type { S3Options } from '../../src/stores/blobs/s3-blob-store.ts';

/** A bucket that can be used, and what the server is called. */
export interface S3Server {
  readonly options: S3Options;
  close(): Promise<void>;
}

/** The only keys that this server knows. */
const KEY = 'S3RVER';

/** Starts a server. */
export async function startS3(): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), 'relay-s3-'));
  const server = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    configureBuckets: [{ name: 'relay' }],
  });
  const { port } = await server.run();
  return {
    options: {
      endpoint: `http://127.0.0.1:${port}`,
      bucket: 'relay',
      region: 'us-east-1',
      accessKey: KEY,
      secretKey: KEY,
      prefix: 'some/blobs/',
      clock: systemClock,
    },
    close: async () => {
      await server.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
