// `npm run bench [NAME…]`: bench/run.ts as plain JavaScript in one file, so that what is measured runs like the program that is shipped;
// a loader for TypeScript costs a tenth.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { build } from 'esbuild';
import { ensureInstalled, ROOT } from './project.mjs';

ensureInstalled();
// As deep as the sources, which find sql/ from where they are.
const outfile = join(ROOT, '.cache', 'bench', 'run.mjs');
await build({
  entryPoints: [join(ROOT, 'bench', 'run.ts')],
  outfile,
  bundle: true,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  alias: { '#client': join(ROOT, 'client', 'src', 'index.ts') },
  logLevel: 'warning',
});
const { status } = spawnSync(process.execPath, [outfile, ...process.argv.slice(2)], {
  cwd: ROOT,
  stdio: 'inherit',
});
process.exit(status ?? 1);
