// What the project's own commands share: where it is, how to run a step, and installing what is missing.
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Runs one command in the project's folder and ends this process when it fails. */
export function step(title, command, args, options = {}) {
  const started = performance.now();
  if (title !== '') console.log(`\n── ${title}`);
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit', ...options });
  if (error !== undefined) console.error(`${command}: ${error.message}`);
  if (status !== 0) {
    console.error(`\n${title || command} failed`);
    process.exit(status ?? 1);
  }
  if (title !== '') console.log(`   ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

/** A tool of node_modules, run by this Node. */
export function tool(title, name, args, options) {
  step(title, join(ROOT, 'node_modules', '.bin', name), args, options);
}

/** Installs the locked dependencies unless they are there already. */
export function ensureInstalled() {
  const marker = join(ROOT, 'node_modules', '.package-lock.json');
  const lock = join(ROOT, 'package-lock.json');
  if (existsSync(marker) && statSync(marker).mtimeMs >= statSync(lock).mtimeMs) return;
  // Not `npm ci`: it refuses a lock without every platform's optional binaries, and not every registry carries them all.
  // Without saving, `install` takes the locked versions and leaves the lock file as it is.
  step('Install dependencies', 'npm', [
    'install',
    '--no-save',
    '--no-fund',
    '--no-audit',
    '--loglevel=error',
  ]);
}

/** Compiles src/ to dist/. */
export function build() {
  step('Build', process.execPath, ['scripts/build.mjs']);
}
