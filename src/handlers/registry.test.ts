/** The registry: what a definition may use, what a worker runs, and that neither loads what only running needs. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runHandler } from '../../test/support/handler-bench.ts';
import { BUILT_IN_HANDLERS, WORKER_HANDLERS } from './registry.ts';
import { transform } from './transform.ts';

describe('registry', () => {
  it('a definition may use every handler; the engine settles `wait` and `approval` itself', () => {
    expect([...WORKER_HANDLERS.keys()]).toEqual(['llm', 'http', 'shell', 'script', 'transform']);
    expect([...BUILT_IN_HANDLERS.keys()]).toEqual([...WORKER_HANDLERS.keys(), 'wait', 'approval']);
  });

  // SPEC S9.3
  it('transform gives its value back', async () => {
    expect((await runHandler(transform, { value: [1, { a: null }] })).output).toEqual([1, { a: null }]);
    expect(transform.config.safeParse({}).success).toBe(false);
  });

  it('loading the registry loads nothing that only running needs', () => {
    const loaded = importsOf(fileURLToPath(new URL('./registry.ts', import.meta.url)), new Set());
    expect([...loaded].filter((name) => !name.endsWith('.ts'))).toEqual(['zod']);
  });
});

/** Everything that a module imports as it loads, directly and indirectly; types and `import()` do not count. */
function importsOf(file: string, seen: Set<string>): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(/^import (?!type )[^;]*from '([^']+)'/gm)) {
    if (name.startsWith('.')) importsOf(join(dirname(file), name), seen);
    else seen.add(name);
  }
  return seen;
}
