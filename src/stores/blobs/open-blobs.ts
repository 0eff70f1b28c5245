/** Blob stores by the kind that the settings name. Adding one is a file and a line here. */
import type { Clock } from '../../base/clock.ts';
import { RelayError } from '../../base/errors.ts';
import type { BlobStore } from '../blob-store.ts';
import { FileBlobStore } from './file-blob-store.ts';

/** Where blobs are kept. Keys are named by the variables that hold them. */
export type BlobSettings =
  | { readonly kind: 'files' }
  | {
      readonly kind: 's3';
      readonly endpoint: string;
      readonly bucket: string;
      readonly region: string;
      readonly access_key_env: string;
      readonly secret_key_env: string;
      readonly prefix: string;
    };

/** What the kinds need of their surroundings. */
export interface BlobSurroundings {
  /** Where files go. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

/** Opens the store that the settings name; nothing is asked of it yet. */
export async function openBlobs(
  settings: BlobSettings,
  { folder, env, clock }: BlobSurroundings,
): Promise<BlobStore> {
  if (settings.kind === 'files') return new FileBlobStore(folder);
  const { access_key_env, secret_key_env, ...place } = settings;
  const { S3BlobStore } = await import('./s3-blob-store.ts');
  const accessKey = keyOf(access_key_env, env);
  return new S3BlobStore({ ...place, accessKey, secretKey: keyOf(secret_key_env, env), clock });
}

function keyOf(name: string, env: BlobSurroundings['env']): string {
  const value = env[name] ?? '';
  if (value !== '') return value;
  throw new RelayError('INVALID_CONFIG', `the environment variable ${name} is not set`, {
    hint: 'it holds a key of the bucket; `blobs` in the config file may name another variable',
  });
}
