/** Large payloads outside the database, named by their content. A blob is durable before anything refers to it (I3). */
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { RelayError } from '../base/errors.ts';

/** Keeps bytes under the hash of their content. */
export interface BlobStore {
  put(bytes: Uint8Array): Promise<string>;
  get(ref: string): Promise<Uint8Array>;
  remove(ref: string): Promise<void>;
  /** Blobs that were last stored before a time. Storing one again makes it young. */
  olderThan(time: number): Promise<readonly string[]>;
}

/** Blobs as files, two levels deep. */
export class FileBlobStore implements BlobStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async put(bytes: Uint8Array): Promise<string> {
    const ref = createHash('sha256').update(bytes).digest('hex');
    const path = this.#path(ref);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const draft = `${path}.${randomUUID()}`;
    const file = await open(draft, 'w', 0o600);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
    return ref;
  }

  async get(ref: string): Promise<Uint8Array> {
    try {
      return await readFile(this.#path(ref));
    } catch (cause) {
      throw new RelayError('NOT_FOUND', `the blob ${ref} is not there`, { cause });
    }
  }

  async remove(ref: string): Promise<void> {
    await rm(this.#path(ref), { force: true });
  }

  async olderThan(time: number): Promise<readonly string[]> {
    const refs: string[] = [];
    for (const name of await readdir(this.#folder, { recursive: true }).catch(() => [])) {
      const ref = basename(name);
      if (!/^[0-9a-f]{64}$/.test(ref)) continue;
      const found = await stat(this.#path(ref)).catch(() => null);
      if (found !== null && found.mtimeMs < time) refs.push(ref);
    }
    return refs;
  }

  #path(ref: string): string {
    return join(this.#folder, ref.slice(0, 2), ref);
  }
}
