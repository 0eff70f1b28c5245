/** Blobs as files, two levels deep. A file gets its name when it is whole and synced, so a kill leaves drafts at most. */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { RelayError } from '../../base/errors.ts';
import { type BlobContent, type BlobName, type BlobStore, blobMissing, verified } from '../blob-store.ts';

/** What the file system says, and what it means for a store. */
const CODES: Readonly<Record<string, 'STORE_FULL' | 'STORE_NOT_WRITABLE'>> = {
  ENOSPC: 'STORE_FULL',
  EDQUOT: 'STORE_FULL',
  EFBIG: 'STORE_FULL',
  EACCES: 'STORE_NOT_WRITABLE',
  EPERM: 'STORE_NOT_WRITABLE',
  EROFS: 'STORE_NOT_WRITABLE',
};

/** Keeps blobs in a folder. */
export class FileBlobStore implements BlobStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async write(name: BlobName, content: BlobContent): Promise<void> {
    const path = this.#path(name.ref);
    const draft = `${path}.${randomUUID()}`;
    try {
      const isNewFolder = (await mkdir(dirname(path), { recursive: true, mode: 0o700 })) !== undefined;
      const file = await open(draft, 'wx', 0o600);
      try {
        for await (const piece of verified(name, content)) await file.writeFile(piece);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(draft, path);
      await syncFolder(dirname(path));
      if (isNewFolder) await syncFolder(this.#folder);
    } catch (error) {
      await rm(draft, { force: true }).catch(() => {});
      throw toStoreError(error);
    }
  }

  async read(ref: string): Promise<Readable> {
    try {
      return (await open(this.#path(ref), 'r')).createReadStream();
    } catch (cause) {
      throw blobMissing(ref, cause);
    }
  }

  async size(ref: string): Promise<number | null> {
    return (await stat(this.#path(ref)).catch(() => null))?.size ?? null;
  }

  async remove(ref: string, before = Number.POSITIVE_INFINITY): Promise<void> {
    const path = this.#path(ref);
    if (await isOlder(path, before)) await rm(path, { force: true });
  }

  async *olderThan(time: number): AsyncGenerator<string, void, undefined> {
    for (const name of await readdir(this.#folder, { recursive: true }).catch(() => [])) {
      const [ref = '', draft] = basename(name).split('.');
      if (!/^[0-9a-f]{64}$/.test(ref)) continue;
      const path = join(this.#folder, name);
      if (!(await isOlder(path, time))) continue;
      // Whoever wrote a draft for so long has died over it.
      if (draft === undefined) yield ref;
      else await rm(path, { force: true });
    }
  }

  #path(ref: string): string {
    return join(this.#folder, ref.slice(0, 2), ref);
  }
}

async function isOlder(path: string, time: number): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  return found !== null && found.mtimeMs < time;
}

/** A name is durable when its folder is. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function toStoreError(error: unknown): unknown {
  const { code: text = '', message } = error as NodeJS.ErrnoException;
  const code = CODES[text];
  if (code === undefined) return error;
  return new RelayError(code, `the blob cannot be written: ${message}`, { cause: error });
}
