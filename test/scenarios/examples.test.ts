/** Every example runs offline to its end from one command, and the demo shows it. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { RunView } from '../../src/app/api.ts';
import { builtRelay, ROOT, runNode } from '../support/built-cli.ts';

const data = mkdtempSync(join(tmpdir(), 'relay-examples-'));
afterAll(() => rmSync(data, { recursive: true, force: true }));

describe('an example', () => {
  const names = readdirSync(join(ROOT, 'examples')).filter((name) => /\.(yaml|json)$/.test(name));
  for (const name of names) {
    it(`${name} runs to its end`, () => {
      const { code, out } = builtRelay(['run', `examples/${name}`, '--yes', '--json', '--data', data], {
        cwd: ROOT,
      });
      expect(code).toBe(0);
      const run = JSON.parse(out) as RunView;
      expect(run.status).toBe('SUCCESS');
      expect(run.tasks.every(({ status }) => status === 'SUCCESS')).toBe(true);
    });
  }
});

it('npm run demo shows a run with a retry, a gate, outputs and a timeline', () => {
  const { code, out } = runNode([join(ROOT, 'scripts/demo.mjs')], { cwd: ROOT, env: { HOME: data } });
  expect(code).toBe(0);
  expect(out).toContain('will be tried again');
  expect(out).toContain('draft  BLOCKED');
  expect(out).toMatch(/Outputs:\n {2}brief:/);
  expect(out).toContain('Timeline');
  expect(out).toContain('✓ examples/diamond.yaml is valid');
});
