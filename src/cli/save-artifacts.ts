/** Artifacts out of the store: to a folder, or to stdout. */
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path';
import type { ArtifactView, RelayApi } from '../app/api.ts';
import { RelayError } from '../base/errors.ts';
import { didYouMean } from '../base/suggest.ts';
import type { Io } from './io.ts';

/** Writes the newest artifact of each name; gives the paths. */
export async function saveArtifacts(
  api: RelayApi,
  artifacts: readonly ArtifactView[],
  folder: string,
  io: Io,
): Promise<readonly string[]> {
  const root = resolve(io.cwd, folder);
  const paths: string[] = [];
  for (const artifact of newest(artifacts)) {
    const path = placeIn(root, artifact.name);
    const content = await api.tasks.artifact(artifact.id);
    try {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, await content.read());
    } catch (cause) {
      if (cause instanceof RelayError) throw cause;
      const message = `${path} cannot be written: ${(cause as Error).message}`;
      throw new RelayError('FILE_NOT_WRITABLE', message, { cause });
    }
    paths.push(join(folder, relative(root, path)));
  }
  return paths;
}

/** Prints one artifact as it is. */
export async function printArtifact(
  api: RelayApi,
  artifacts: readonly ArtifactView[],
  name: string,
  io: Io,
): Promise<void> {
  const list = newest(artifacts);
  const found = list.find((artifact) => artifact.name === name);
  if (found === undefined) {
    const names = list.map((artifact) => artifact.name);
    throw new RelayError('NOT_FOUND', `there is no artifact \`${name}\``, {
      hint: didYouMean(name, names) ?? (names.length === 0 ? 'the task has left none' : names.join(', ')),
    });
  }
  for await (const piece of await (await api.tasks.artifact(found.id)).read()) io.out.write(piece);
}

function newest(artifacts: readonly ArtifactView[]): readonly ArtifactView[] {
  const byName = new Map<string, ArtifactView>();
  for (const artifact of artifacts) {
    const known = byName.get(artifact.name);
    if (known === undefined || known.attempt <= artifact.attempt) byName.set(artifact.name, artifact);
  }
  return [...byName.values()];
}

/** Names come from tasks; none may lead out of the folder. */
function placeIn(root: string, name: string): string {
  const path = resolve(root, name);
  const inside = relative(root, path);
  const isInside = inside !== '' && !isAbsolute(inside) && !/^\.\.([/\\]|$)/.test(inside);
  return isInside ? path : join(root, basename(name) || 'artifact');
}
