/** Reads text files with the errors people meet: no such file, a folder, binary, too large, no permission. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { RelayError } from '../base/errors.ts';

const CHUNK_BYTES = 256 * 1024;

/** The text of a file, at most `bytesMax` bytes of valid UTF-8; `name` is what messages call it. */
export function readTextFile(path: string, bytesMax: number, name = path): string {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (cause) {
    throw openError(name, cause as NodeJS.ErrnoException);
  }
  try {
    const stat = fstatSync(file);
    if (stat.isDirectory()) {
      throw new RelayError('FILE_NOT_READABLE', `${name} is a folder`, { hint: 'name a file in it' });
    }
    if (stat.size > bytesMax) throw tooLarge(name, bytesMax, stat.size);
    return decodeText(name, readAll(file, name, bytesMax));
  } finally {
    closeSync(file);
  }
}

/** Text of bytes that came from elsewhere, under the same rules; `name` is what messages call it. */
export function decodeText(name: string, bytes: Uint8Array): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (!text.includes('\0')) return text;
  } catch {
    // Not UTF-8; reported below together with NUL bytes.
  }
  const hint = 'save it as UTF-8 text (YAML or JSON)';
  throw new RelayError('FILE_NOT_READABLE', `${name} is not a text file`, { hint });
}

/** A file beyond its bound; of a pipe only that is known. */
export function tooLarge(name: string, bytesMax: number, bytes?: number): RelayError {
  const message =
    bytes === undefined
      ? `${name} has more than the limit of ${inUnits(bytesMax)}`
      : `${name} has ${inUnits(bytes)}; the limit is ${inUnits(bytesMax)}`;
  return new RelayError('FILE_TOO_LARGE', message);
}

function inUnits(bytes: number): string {
  return bytes < 100_000 ? `${bytes} bytes` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** Reads to the end or to the bound, whichever is first: a device or a pipe need not have an end. */
function readAll(file: number, name: string, bytesMax: number): Buffer {
  const chunks: Buffer[] = [];
  let total = 0;
  for (;;) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const count = readChunk(file, chunk, name);
    if (count === 0) return Buffer.concat(chunks);
    total += count;
    if (total > bytesMax) throw tooLarge(name, bytesMax);
    chunks.push(chunk.subarray(0, count));
  }
}

function readChunk(file: number, chunk: Buffer, name: string): number {
  try {
    return readSync(file, chunk);
  } catch (cause) {
    throw openError(name, cause as NodeJS.ErrnoException);
  }
}

function openError(name: string, cause: NodeJS.ErrnoException): RelayError {
  if (cause.code === 'ENOENT') return new RelayError('FILE_NOT_FOUND', `there is no file ${name}`, { cause });
  const reasons: Readonly<Record<string, string>> = {
    EACCES: 'permission denied',
    EISDIR: 'it is a folder',
    ENOTDIR: 'a part of the path is not a folder',
    ENAMETOOLONG: 'the name is too long',
    ELOOP: 'its symbolic links lead in a circle',
  };
  const reason = reasons[cause.code ?? ''] ?? cause.message;
  return new RelayError('FILE_NOT_READABLE', `${name} cannot be read: ${reason}`, { cause });
}
