/** Payloads as they are stored: JSON text, inline when small, in the blob store when large (SPEC S14.5). */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { RelayError } from '../base/errors.ts';
import { type BlobName, type BlobStore, getBytes, putBytes } from '../stores/blob-store.ts';
import type { ArtifactRow } from '../stores/rows.ts';

/** Content beyond this goes to the blob store. */
const INLINE_BYTES_MAX = 256 * 1024;
/** The largest output of a task, and the largest file that is handed over in memory. */
export const PAYLOAD_BYTES_MAX = 64 * 1024 * 1024;

/** The content columns of an artifact. */
export type StoredPayload = Pick<ArtifactRow, 'content_type' | 'bytes' | 'inline' | 'blob_ref'>;

/** Stores a JSON value. JSON.stringify escapes NUL and lone surrogates, so every store can hold the text. */
export async function storeJson(value: unknown, blobs: BlobStore): Promise<StoredPayload> {
  return storeText(JSON.stringify(value ?? null), blobs);
}

/** Stores text that is JSON already. */
export async function storeText(text: string, blobs: BlobStore): Promise<StoredPayload> {
  return inlineText(text) ?? storeBytes(Buffer.from(text), 'application/json', blobs);
}

/** JSON text that is small enough to stand in the row; null when it is not. */
export function inlineText(text: string): StoredPayload | null {
  const bytes = Buffer.byteLength(text);
  if (bytes > INLINE_BYTES_MAX) return null;
  return { content_type: 'application/json', bytes, inline: text, blob_ref: null };
}

/** Stores bytes as they are. */
export async function storeBytes(
  bytes: Uint8Array,
  content_type: string,
  blobs: BlobStore,
): Promise<StoredPayload> {
  if (bytes.length > PAYLOAD_BYTES_MAX) {
    const message = `a payload of ${bytes.length} bytes is over the limit of ${PAYLOAD_BYTES_MAX}`;
    throw new RelayError('PAYLOAD_TOO_LARGE', message);
  }
  if (bytes.length <= INLINE_BYTES_MAX)
    return { content_type, bytes: bytes.length, inline: bytes, blob_ref: null };
  return { content_type, bytes: bytes.length, inline: null, blob_ref: await putBytes(blobs, bytes) };
}

/** Content that was stored before anybody spoke of it; a small one is taken out again, so that it needs no second place. */
export async function storedBlob(
  { ref, bytes }: BlobName,
  content_type: string,
  blobs: BlobStore,
): Promise<StoredPayload> {
  if (bytes > INLINE_BYTES_MAX) return { content_type, bytes, inline: null, blob_ref: ref };
  return { content_type, bytes, inline: await getBytes(blobs, ref), blob_ref: null };
}

/** The bytes of an artifact. */
export async function readBytes(artifact: StoredPayload, blobs: BlobStore): Promise<Uint8Array> {
  if (artifact.blob_ref !== null) return getBytes(blobs, artifact.blob_ref);
  return inlineBytes(artifact);
}

/** The value of a JSON artifact. */
export async function readJson(artifact: StoredPayload, blobs: BlobStore): Promise<unknown> {
  return JSON.parse(Buffer.from(await readBytes(artifact, blobs)).toString('utf8'));
}

/** An artifact to be read piece by piece. */
export function contentOf(
  artifact: StoredPayload,
  blobs: BlobStore,
): {
  readonly content_type: string;
  readonly size: number;
  readonly etag: string;
  readonly read: () => Promise<AsyncIterable<Uint8Array>>;
} {
  const { content_type, bytes: size, blob_ref } = artifact;
  if (blob_ref !== null)
    return { content_type, size, etag: quoted(blob_ref), read: () => blobs.read(blob_ref) };
  const inline = inlineBytes(artifact);
  const etag = quoted(createHash('sha256').update(inline).digest('hex'));
  return { content_type, size: inline.length, etag, read: async () => Readable.from([inline]) };
}

function inlineBytes({ inline }: StoredPayload): Uint8Array {
  return typeof inline === 'string' ? Buffer.from(inline) : (inline ?? new Uint8Array());
}

function quoted(hash: string): string {
  return `"${hash}"`;
}
