/** The files that a command leaves behind as artifacts: found by pattern, inside the task's folder, bounded in number and size. */
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, realpath } from 'node:fs/promises';
import { isAbsolute, join, sep } from 'node:path';
import { AttemptFailure } from '../../domain/attempt-failure.ts';
import type { NewArtifact } from '../../worker/work-source.ts';
import { TerminalError } from '../handler.ts';
import { contentTypeOf } from './content-type.ts';
import { compileGlob, type Glob } from './glob.ts';

const FILES_MAX = 64;
const FILE_BYTES_MAX = 16 * 1024 * 1024;
/** Entries looked at before a pattern counts as too wide. */
const ENTRIES_MAX = 100_000;

/** Reads every file that a pattern names, sorted by name. A plain name must exist; a pattern may find nothing. */
export async function collectFiles(
  folder: string,
  patterns: readonly string[],
): Promise<readonly NewArtifact[]> {
  if (patterns.length === 0) return [];
  for (const pattern of patterns) requireInside(pattern);
  const globs = patterns.map(compileGlob);
  const root = await realpath(folder);
  const found = await findFiles(root, globs);
  for (const glob of globs) requireFound(glob, found);
  if (found.length > FILES_MAX) {
    const message = `\`files\` names ${found.length} files; at most ${FILES_MAX} become artifacts`;
    throw new AttemptFailure({ kind: 'output', problem: 'too_long' }, message, {
      hint: 'pack them into one archive',
    });
  }
  const artifacts: NewArtifact[] = [];
  for (const path of found.toSorted()) artifacts.push(await readArtifact(root, path));
  return artifacts;
}

function requireInside(pattern: string): void {
  if (!isAbsolute(pattern) && !pattern.split('/').includes('..')) return;
  throw new TerminalError(`\`files\` may only name what is inside the task's folder: ${pattern}`);
}

function requireFound(glob: Glob, found: readonly string[]): void {
  if (glob.hasWildcard || found.some((path) => glob.matches(path))) return;
  const message = `the command did not write ${glob.pattern}, which \`files\` names`;
  throw new AttemptFailure({ kind: 'output', problem: 'missing' }, message);
}

async function findFiles(root: string, globs: readonly Glob[]): Promise<string[]> {
  const found: string[] = [];
  const folders = [''];
  let seen = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
      seen += 1;
      if (seen > ENTRIES_MAX) throw new TerminalError('`files` looks through too many files; narrow it');
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      // Links to folders are not followed: they could lead out, or round in circles.
      if (entry.isDirectory()) {
        if (globs.some((glob) => glob.mayContain(path))) folders.push(path);
      } else if (globs.some((glob) => glob.matches(path))) found.push(path);
    }
  }
  return found;
}

async function readArtifact(root: string, path: string): Promise<NewArtifact> {
  const real = await realpath(join(root, path));
  if (!real.startsWith(root.endsWith(sep) ? root : root + sep)) {
    throw new TerminalError(`${path} is a link to a file outside the task's folder`);
  }
  // A pipe without a writer would otherwise block the open for ever.
  const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const bytes = await readBounded(file, path);
    return { name: path, content_type: contentTypeOf(path), bytes };
  } finally {
    await file.close();
  }
}

/** Never reads past the bound, even when the file grows meanwhile or is not a plain one. */
async function readBounded(file: FileHandle, path: string): Promise<Uint8Array> {
  const about = await file.stat();
  if (!about.isFile()) throw new TerminalError(`${path} is not a plain file`);
  if (about.size <= FILE_BYTES_MAX) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(about.size), 0, about.size, 0);
    return buffer.subarray(0, bytesRead);
  }
  const message = `${path} has ${about.size} bytes; at most ${FILE_BYTES_MAX} become an artifact`;
  throw new AttemptFailure({ kind: 'output', problem: 'too_long' }, message);
}
