// src/ → dist/, client/src/ → dist/client/ (which `#client` of package.json names): the compiler's own output, file by file.
import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ensureInstalled, ROOT, tool } from './project.mjs';

ensureInstalled();
rmSync(join(ROOT, 'dist'), { recursive: true, force: true });
tool('', 'tsc', ['-p', 'client', '--outDir', 'dist/client']);
tool('', 'tsc', ['-p', 'tsconfig.build.json']);
chmodSync(join(ROOT, 'dist', 'cli', 'main.js'), 0o755);
