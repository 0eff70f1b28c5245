/** Handlers of a user's own (SPEC S9.4): a module whose exports are made with `defineHandler`. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { RelayError } from '../base/errors.ts';
import type { Handler } from '../handlers/handler.ts';

/** Every handler that the files export, by any name or in a list. */
export async function loadHandlers(files: readonly string[], cwd: string): Promise<readonly Handler[]> {
  const loaded = await Promise.all(files.map((file) => loadFile(resolve(cwd, file), file)));
  return loaded.flat();
}

async function loadFile(path: string, file: string): Promise<readonly Handler[]> {
  let exported: Readonly<Record<string, unknown>>;
  try {
    exported = (await import(pathToFileURL(await runnable(path)).href)) as Record<string, unknown>;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RelayError('FILE_NOT_READABLE', `${file} cannot be loaded: ${reason}`, { cause });
  }
  const handlers = Object.values(exported).flat().filter(isHandler);
  if (handlers.length > 0) return handlers;
  throw new RelayError('USAGE', `${file} exports no handler`, {
    hint: "export const train = defineHandler({ name: 'train', config: z.object({}), run: async () => … })",
  });
}

/** TypeScript becomes JavaScript first; what it imports stays an import of the file's own folder. */
async function runnable(path: string): Promise<string> {
  if (!/\.[mc]?ts$/.test(path)) return path;
  const { build } = await import('esbuild');
  const result = await build({
    entryPoints: [path],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'silent',
  });
  const out = join(mkdtempSync(join(tmpdir(), 'relay-handlers-')), 'handlers.mjs');
  writeFileSync(out, result.outputFiles[0]?.text ?? '');
  return out;
}

function isHandler(value: unknown): value is Handler {
  if (typeof value !== 'object' || value === null) return false;
  const { name, run, config } = value as Partial<Handler>;
  return typeof name === 'string' && typeof run === 'function' && typeof config?.safeParse === 'function';
}
