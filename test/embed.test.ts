/** The embedding example is true (SPEC S13.5). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LLMock } from '@copilotkit/aimock';
import { afterAll, describe, expect, it } from 'vitest';
import { trendAt } from '../examples/typescript/embed.ts';
import { openRelay } from '../src/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-embed-'));
const store = `sqlite:${join(folder, 'embed.db')}`;
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('openRelay', () => {
  it('asks providers of the program’s own, at its own prices', async () => {
    const mock = new LLMock({ port: 0 });
    mock.onMessage('tides', { content: 'The sea.', usage: { prompt_tokens: 1_000, completion_tokens: 100 } });
    await mock.start();
    const lab = { kind: 'openai_compatible', base_url: `${mock.url}/v1` } as const;
    const prices = { 'lab/small': { input: 1, output: 10, cached_input: null } };
    const relay = await openRelay({ store, models: { providers: { lab }, prices } });
    const ask = { uses: 'llm', with: { model: 'lab/small', prompt: 'tides?' } };
    const run = await relay.run({ name: 'lab', tasks: { ask } });
    const { status, usage } = await run.result();
    await relay.close();
    await mock.stop();
    expect({ status, cost: usage?.cost_usd }).toEqual({ status: 'SUCCESS', cost: 0.002 });
  });
});

describe('examples/typescript/embed.ts', () => {
  it('runs its workflow with a handler of its own', async () => {
    expect(await trendAt(6, store)).toEqual({ trend: 'rising', height_cm: 101 });
    expect(await trendAt(12, store)).toMatchObject({ trend: 'falling' });
  });

  it('a terminal error is not tried again', async () => {
    expect(await trendAt(30, store)).toMatchObject({
      status: 'FAILED',
      errors: expect.arrayContaining([
        expect.objectContaining({ code: 'HANDLER_TERMINAL', message: 'a day has no hour 30', attempt: 1 }),
      ]),
    });
  });
});
