/** The `llm` handler with the offline model (SPEC S9.1, S9.2). */
import { describe, expect, it } from 'vitest';
import { logged, runHandler, type Said } from '../../test/support/handler-bench.ts';
import type { OutputSpec } from '../worker/work-source.ts';
import type { HandlerContext } from './handler.ts';
import { llm } from './llm.ts';

const run = (
  config: Record<string, unknown>,
  output: OutputSpec | null = null,
  given: Partial<HandlerContext<unknown>> = {},
): Promise<{ output: unknown; said: Said }> =>
  runHandler(llm, { model: 'offline/brief', ...config }, { output, ...given });

const echo = (prompt: string, output: OutputSpec): ReturnType<typeof run> =>
  run({ model: 'offline/echo', prompt }, output);

const contentOf = (said: Said, name: string): string =>
  Buffer.from(said.artifacts.find((each) => each.name === name)?.bytes ?? []).toString();

describe('text', () => {
  it('the answer is the output, and its tokens stream to the log', async () => {
    const { output, said } = await run({ prompt: 'Tell me about tides' });
    expect(output).toMatch(/^\[offline model\] brief: .*Tell me about tides$/);
    expect(logged(said, 'token')).toBe(output);
    expect(said.logs.length).toBeGreaterThan(3);
  });

  it('what was used is recorded', async () => {
    const { said } = await run({
      messages: [{ role: 'user', content: 'x'.repeat(40) }],
      system: 'y'.repeat(40),
    });
    expect(said.usage).toEqual([
      {
        tokens_in: 20,
        tokens_out: expect.any(Number) as number,
        tokens_cached: 0,
        cost_usd: 0,
        model: 'offline/brief',
        provider: 'offline',
        latency_ms: expect.any(Number) as number,
        prompt_hash: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
        finish: 'stop',
        models: {
          'offline/brief': {
            calls: 1,
            tokens_in: 20,
            tokens_out: expect.any(Number) as number,
            tokens_cached: 0,
            cost_usd: 0,
          },
        },
      },
    ]);
  });

  it('an empty answer fails unless it is allowed', async () => {
    await expect(run({ model: 'offline/echo', prompt: '' })).rejects.toMatchObject({
      facts: { kind: 'output', problem: 'empty' },
    });
    expect((await echo('', { allow_empty: true })).output).toBe('');
  });

  it('an answer that was cut fails unless that is allowed', async () => {
    await expect(run({ prompt: 'long', max_tokens: 2 })).rejects.toMatchObject({
      facts: { kind: 'output', problem: 'truncated' },
    });
    expect((await run({ prompt: 'long', max_tokens: 2 }, { allow_truncated: true })).output).toBe('[offline');
  });

  it('an aborted attempt asks nothing', async () => {
    await expect(run({ prompt: 'x' }, null, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: 'AbortError',
    });
  });
});

describe('JSON', () => {
  const schema = {
    type: 'object',
    properties: { points: { type: 'array', items: { type: 'string' }, minItems: 3 } },
    required: ['points'],
  };

  it('a model with structured output gives JSON that fits the schema', async () => {
    const { output, said } = await run({ prompt: 'points please' }, { format: 'json', schema });
    expect(output).toMatchObject({
      points: [expect.any(String), expect.any(String), expect.any(String)] as unknown[],
    });
    expect(JSON.parse(contentOf(said, 'raw'))).toEqual(output);
  });

  it('JSON is found in text, and the text is kept', async () => {
    const text = 'Sure! Here you are:\n```json\n{"points": ["a", "b", "c"]}\n```\nAnything else?';
    const { output, said } = await echo(text, { schema });
    expect(output).toEqual({ points: ['a', 'b', 'c'] });
    expect(contentOf(said, 'raw')).toBe(text);
  });

  it('text without JSON fails, and JSON that does not fit fails otherwise', async () => {
    await expect(echo('no idea', { format: 'json' })).rejects.toMatchObject({
      facts: { kind: 'output', problem: 'not_json' },
    });
    await expect(echo('{"points": "none"}', { schema })).rejects.toMatchObject({
      facts: { kind: 'output', problem: 'schema' },
    });
  });

  it('a repair feeds the error back as often as allowed', async () => {
    const given = { output: { format: 'json', repair: 2 } as const };
    const failing = runHandler(llm, { model: 'offline/echo', prompt: 'no' }, given);
    await expect(failing).rejects.toMatchObject({
      message: expect.stringContaining('Your answer cannot be used') as string,
    });
  });
});

describe('models', () => {
  it('a provider that is not there, or has no key, fails for good and says what to do', async () => {
    await expect(run({ model: 'openai/gpt-5-mini', prompt: 'x' })).rejects.toMatchObject({
      facts: { kind: 'terminal' },
      message: 'the provider `openai` has no key: OPENAI_API_KEY is not set in the environment of the worker',
      extra: { hint: expect.stringContaining('Set OPENAI_API_KEY there') as string },
    });
    await expect(run({ model: 'lab/small', prompt: 'x' })).rejects.toMatchObject({
      facts: { kind: 'terminal' },
      message: 'there is no model provider `lab`; known: offline, openai, anthropic, google',
      extra: { hint: 'add it to `providers` of the config' },
    });
    await expect(run({ model: 'ofline/x', prompt: 'x' })).rejects.toMatchObject({
      extra: { hint: 'did you mean `offline`?' },
    });
  });

  it('the flaky model fails on the first attempt only', async () => {
    const config = { model: 'offline/flaky', prompt: 'x' };
    await expect(run(config)).rejects.toMatchObject({ facts: { kind: 'http', status: 503 } });
    const task = { run_id: 'r', task_run_id: 't', task_id: 't', map_index: null, attempt: 2 };
    expect((await run(config, null, { task })).output).toMatch(/^\[offline model\] flaky/);
  });

  it('a fallback is asked when a model cannot be reached, not when its answer is wrong', async () => {
    const fallbacks = ['offline/spare'];
    const { output, said } = await run({ model: 'offline/flaky', fallbacks, prompt: 'x' });
    expect(output).toMatch(/^\[offline model\] spare/);
    expect(logged(said, 'log')).toContain('trying offline/spare');
    await expect(
      run({ model: 'offline/echo', fallbacks, prompt: 'no' }, { format: 'json' }),
    ).rejects.toMatchObject({ facts: { kind: 'output' } });
  });
});
