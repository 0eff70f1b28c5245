/** The contract for large payloads outside the database, named by their content. A blob is durable before anything refers to it (I3). */
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { RelayError } from '../base/errors.ts';

/** A blob is called by the SHA-256 of its content, in hex. */
export interface BlobName {
  readonly ref: string;
  readonly bytes: number;
}

/** Content as it comes, or all of it. */
export type BlobContent = AsyncIterable<Uint8Array> | Uint8Array;

/** Keeps bytes under the hash of their content. */
export interface BlobStore {
  /** Stores content, which is read once and never held as a whole. What is not as announced is USAGE, and leaves nothing. */
  write(name: BlobName, content: BlobContent): Promise<void>;
  /** The content; a blob that is not there is NOT_FOUND. */
  read(ref: string): Promise<Readable>;
  /** How large a blob is; null when it is not there. */
  size(ref: string): Promise<number | null>;
  /** Removes a blob, unless it was stored again after `before`. */
  remove(ref: string, before?: number): Promise<void>;
  /** Blobs that were last stored before a time. Storing one again makes it young. */
  olderThan(time: number): AsyncIterable<string>;
}

/** Stores bytes that are at hand; gives their name. */
export async function putBytes(blobs: BlobStore, bytes: Uint8Array): Promise<string> {
  const ref = createHash('sha256').update(bytes).digest('hex');
  await blobs.write({ ref, bytes: bytes.length }, bytes);
  return ref;
}

/** All of a blob; only for what has to be in memory anyway. */
export async function getBytes(blobs: BlobStore, ref: string): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of await blobs.read(ref)) pieces.push(piece as Uint8Array);
  return Buffer.concat(pieces);
}

/**
 * The same content piece by piece, or an error once it is not what its name says. The last piece is held back until that is
 * known, so that nobody who takes it in can mistake a wrong content for a whole one.
 */
export async function* verified(
  { ref, bytes }: BlobName,
  content: BlobContent,
): AsyncGenerator<Uint8Array, void, undefined> {
  const hash = createHash('sha256');
  let count = 0;
  let held: Uint8Array | null = null;
  for await (const piece of content instanceof Uint8Array ? [content] : content) {
    count += piece.length;
    if (count > bytes)
      throw new RelayError('USAGE', `the content is longer than the ${bytes} bytes announced`);
    hash.update(piece);
    if (held !== null) yield held;
    held = piece;
  }
  if (count < bytes) throw new RelayError('USAGE', `the content broke off after ${count} of ${bytes} bytes`);
  const actual = hash.digest('hex');
  if (actual !== ref)
    throw new RelayError('USAGE', `the content is not what its name says: its SHA-256 is ${actual}`);
  if (held !== null) yield held;
}

/** The error of a blob that is not there. */
export function blobMissing(ref: string, cause?: unknown): RelayError {
  return new RelayError('NOT_FOUND', `the blob ${ref} is not there`, { cause });
}
