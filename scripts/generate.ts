/** Writes the pages that come from the code. `test/tidy.test.ts` fails when one is stale. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generatedPages } from './generated-pages.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

for (const { path, text } of generatedPages()) {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  if (existsSync(file) && readFileSync(file, 'utf8') === text) continue;
  writeFileSync(file, text);
  process.stdout.write(`wrote ${path}\n`);
}
