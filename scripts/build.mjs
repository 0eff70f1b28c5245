// src/ → dist/: the compiler's own output, one file per source file.
import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ensureInstalled, ROOT, tool } from './project.mjs';

ensureInstalled();
rmSync(join(ROOT, 'dist'), { recursive: true, force: true });
tool('', 'tsc', ['-p', 'tsconfig.build.json']);
chmodSync(join(ROOT, 'dist', 'cli', 'main.js'), 0o755);
