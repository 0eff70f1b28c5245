/** A user's module and everything it imports as one file, so that a run keeps its code for ever (SPEC S1.1). */
import { createHash } from 'node:crypto';
import { basename, dirname, isAbsolute, relative, resolve } from 'node:path';
import type { BuildFailure, Plugin } from 'esbuild';
import { TerminalError } from '../handler.ts';

const BUNDLE_BYTES_MAX = 16 * 1024 * 1024;

/** The path of a task's module; it must lie in the workflow's folder, because a definition may come from elsewhere. */
export function resolveScript(folder: string, module: string): string {
  const path = resolve(folder, module);
  const inside = relative(folder, path);
  if (inside !== '' && !isAbsolute(inside) && !/^\.\.([/\\]|$)/.test(inside)) return path;
  throw new TerminalError(`\`module\` must be a file in the workflow's folder: ${module}`);
}

/** Bundles a JavaScript or TypeScript file; only Node's own modules stay imports. Equal sources give equal code. */
export async function bundleScript(path: string): Promise<{ readonly code: string; readonly hash: string }> {
  const { build } = await import('esbuild');
  const result = await build({
    // Paths in the code are relative to this folder, so that they do not depend on where a machine keeps it.
    absWorkingDir: dirname(path),
    entryPoints: [`./${basename(path)}`],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'silent',
    // CommonJS packages inside the bundle call `require` for Node's own modules.
    banner: {
      js: `import { createRequire as __relayRequire } from 'node:module';const require = __relayRequire(import.meta.url);`,
    },
    plugins: [relayModule],
  }).catch((error: unknown) => {
    throw new TerminalError(`the script cannot be bundled: ${describeFailure(error)}`, { cause: error });
  });
  const code = result.outputFiles[0]?.text ?? '';
  const bytes = Buffer.byteLength(code);
  if (bytes > BUNDLE_BYTES_MAX) {
    throw new TerminalError(
      `${basename(path)} has ${bytes} bytes with its imports; at most ${BUNDLE_BYTES_MAX}`,
    );
  }
  return { code, hash: createHash('sha256').update(code).digest('hex') };
}

/** `import … from 'relay'` in a script gives the errors that end an attempt; the rest of Relay has no business in there. */
const relayModule: Plugin = {
  name: 'relay',
  setup: (build) => {
    build.onResolve({ filter: /^relay$/ }, () => ({ path: 'relay', namespace: 'relay' }));
    build.onLoad({ filter: /.*/, namespace: 'relay' }, () => ({ contents: RELAY_MODULE, loader: 'js' }));
  },
};

const RELAY_MODULE = `class TerminalError extends Error { name = 'TerminalError'; }
class RetryAfter extends Error {
  name = 'RetryAfter';
  constructor(delayMs, message = 'asked to be tried again later') { super(message); this.delayMs = delayMs; }
}
export { TerminalError, RetryAfter };`;

function describeFailure(error: unknown): string {
  if (!isBuildFailure(error)) return error instanceof Error ? error.message : String(error);
  return error.errors
    .slice(0, 5)
    .map(({ text, location }) =>
      location === null ? text : `${location.file}:${location.line}:${location.column + 1}: ${text}`,
    )
    .join('; ');
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && 'errors' in error && Array.isArray(error.errors);
}
