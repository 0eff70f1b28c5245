/** Every example runs offline to its end from one command, and the demo shows it. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunView } from '../../src/app/api.ts';
import { builtRelay, ROOT, runNode } from '../support/built-cli.ts';
import { KEYS, providersAt } from '../support/model-bench.ts';
import { start } from '../support/server-process.ts';

const FACTS = '{"place": "North Quay", "closed_from": "06:00", "closed_until": "18:30", "channel": 12}';

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

describe('an example that takes its models as inputs', () => {
  let mock: LLMock;
  beforeAll(async () => {
    mock = new LLMock({ port: 0 });
    mock
      .on({ model: /^claude/, userMessage: 'Explain' }, { error: { message: 'busy' }, status: 529 })
      .onMessage('Take the facts', { content: FACTS })
      .onMessage('List three facts', { content: '{"points": ["a", "b", "c"]}' })
      .onMessage(/./, { content: 'Said by a model elsewhere.' });
    await mock.start();
    writeFileSync(join(data, 'config.yaml'), JSON.stringify({ providers: providersAt(mock.url) }));
  });
  afterAll(() => mock.stop());

  for (const [name, models, answered] of [
    ['research-brief', ['model=openai/gpt-5-mini', 'sources_model=google/gemini-3.5-flash'], 2],
    ['extract', ['model=google/gemini-3.5-flash'], 1],
    ['approve-spending', ['cheap=openai/gpt-5-mini', 'dear=anthropic/claude-opus-5'], 2],
    ['folder-summary', ['model=openai/gpt-5-mini'], 1],
    ['fallback', ['model=anthropic/claude-opus-5', 'spare=openai/gpt-5-mini'], 1],
  ] as const) {
    it(`${name}.yaml works with a key`, async () => {
      const inputs = models.flatMap((model) => ['-i', model]);
      const where = ['--data', data, '--config', join(data, 'config.yaml')];
      const argv = ['run', `examples/${name}.yaml`, '--yes', '--json', ...where, ...inputs];
      const running = start(argv, { cwd: ROOT, env: KEYS });
      expect(await running.ended).toBe(0);
      const run = JSON.parse(running.printed()) as RunView;
      expect(run.status).toBe('SUCCESS');
      expect(Object.keys(run.usage?.models ?? {})).toHaveLength(answered);
      expect(JSON.stringify(run.outputs)).not.toContain('offline');
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
