/** Bundles as files that Node can import, kept by their hash so that many attempts share one. */
import { createHash, randomUUID } from 'node:crypto';
import { lstat, mkdir, mkdtemp, rename, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getuid } from 'node:process';

/** Writes the code once and gives its path. */
export async function writeBundle(code: string): Promise<string> {
  const hash = createHash('sha256').update(code).digest('hex');
  const path = join(await bundleFolder(), `${hash}.mjs`);
  if ((await stat(path).catch(() => null))?.size === Buffer.byteLength(code)) return path;
  // Two attempts may write at once, and one may be killed half-way: only whole files get the name.
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, code, { mode: 0o600 });
  await rename(draft, path);
  return path;
}

/** A folder that only this user can write to; a folder of that name that somebody else made is not trusted. */
async function bundleFolder(): Promise<string> {
  const uid = getuid?.() ?? 0;
  const path = join(tmpdir(), `relay-scripts-${uid}`);
  await mkdir(path, { recursive: true, mode: 0o700 });
  const found = await lstat(path);
  const isOurs = found.isDirectory() && found.uid === uid && (found.mode & 0o022) === 0;
  return isOurs ? path : await mkdtemp(`${path}-`);
}
