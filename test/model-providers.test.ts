/**
 * The providers against an independent server that speaks their wires: what comes back, how each failure is classified, whether it is
 * tried again, and how many requests that took (SPEC S5.1–S5.3, S9.1, S9.2).
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ModelBench } from './support/model-bench.ts';
import { eventually } from './support/processes.ts';

let bench: ModelBench;
beforeEach(async () => {
  bench = await ModelBench.open();
});
afterEach(() => bench.close());

const WIRES = {
  openai: 'openai/gpt-5-mini',
  anthropic: 'anthropic/claude-sonnet-4-5',
  google: 'google/gemini-3.5-flash',
} as const;

const SCHEMA = {
  type: 'object',
  properties: { level: { type: 'integer' } },
  required: ['level'],
  additionalProperties: false,
};

for (const [wire, model] of Object.entries(WIRES)) {
  describe(`${wire}: an answer`, () => {
    // SPEC S9.1, S9.5
    it('streams into the log and becomes the output, with what it used and cost', async () => {
      const content = 'The sea rises and falls twice a day, and nobody can help it.';
      bench.mock.onMessage(
        'tides',
        {
          content,
          usage:
            wire === 'google'
              ? { promptTokenCount: 1_000, candidatesTokenCount: 200 }
              : wire === 'openai'
                ? { prompt_tokens: 1_000, completion_tokens: 200 }
                : { input_tokens: 1_000, output_tokens: 200 },
        },
        { chunkSize: 8 },
      );
      await bench.start({ model, prompt: 'about tides', system: 'be brief' });
      const { task, tokens } = await bench.attempt();
      expect(task.status).toBe('SUCCESS');
      expect(await bench.output()).toBe(content);
      expect(tokens.length).toBeGreaterThan(5);
      expect(tokens.join('')).toBe(content);
      const costs = { openai: 0.00065, anthropic: 0.006, google: 0.0033 };
      expect(JSON.parse(task.usage ?? '{}')).toEqual({
        tokens_in: 1_000,
        tokens_out: 200,
        tokens_cached: 0,
        cost_usd: costs[wire as keyof typeof costs],
        models: {
          [model]: expect.objectContaining({ calls: 1, tokens_in: 1_000, tokens_out: 200 }) as unknown,
        },
      });
      const [attempt] = await bench.harness.attempts(task);
      expect(JSON.parse(attempt?.usage ?? '{}')).toMatchObject({
        provider: wire,
        model,
        finish: 'stop',
        prompt_hash: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
        latency_ms: expect.any(Number) as number,
      });
    });

    // SPEC S9.2
    it('as JSON is held to the schema by the provider and becomes a value', async () => {
      bench.mock.onMessage('level', { content: '{"level": 7}' });
      await bench.start({ model, prompt: 'which level?' }, { output: { format: 'json', schema: SCHEMA } });
      expect((await bench.attempt()).task.status).toBe('SUCCESS');
      expect(await bench.output()).toEqual({ level: 7 });
    });

    // SPEC S9.2
    it('that does not fit is sent back as often as `repair` says, and all of it is counted', async () => {
      bench.mock.onTurn(0, 'level', { content: 'It is {"level": "high"}.' });
      bench.mock.onTurn(1, /./, { content: '```json\n{"level": 7}\n```' });
      await bench.start(
        { model, prompt: 'which level?' },
        { output: { format: 'json', schema: SCHEMA, repair: 1 } },
      );
      const { task } = await bench.attempt();
      expect(task.status).toBe('SUCCESS');
      expect(await bench.output()).toEqual({ level: 7 });
      expect(bench.requests).toBe(2);
      expect(JSON.stringify(bench.mock.getLastRequest()?.body)).toContain('/level must be integer');
      const { models } = JSON.parse(task.usage ?? '{}') as { models: Record<string, { calls: number }> };
      expect(models[model]?.calls).toBe(2);
    });

    // SPEC S9.1, S5.2
    it('cut at max_tokens is OUTPUT_TRUNCATED and tried again', async () => {
      bench.mock.onMessage('tides', { content: 'The sea', finishReason: 'length' });
      await bench.start({ model, prompt: 'about tides', max_tokens: 2 });
      const { task, error } = await bench.attempt();
      expect(error).toMatchObject({ class: 'output', code: 'OUTPUT_TRUNCATED' });
      expect(task).toMatchObject({ status: 'QUEUED', attempts_spent: 1 });
      expect(bench.requests).toBe(1);
    });
  });

  describe(`${wire}: a failure`, () => {
    for (const status of [401, 403, 400] as const) {
      // SPEC S5.2
      it(`${status} fails the task at once, with one request made`, async () => {
        bench.mock.onMessage('tides', { error: { message: 'not for you', type: 'some_error' }, status });
        await bench.start({ model, prompt: 'about tides' });
        const { task, error } = await bench.attempt();
        expect(task).toMatchObject({ status: 'FAILED', reason: 'terminal', attempts_spent: 1 });
        expect(error).toMatchObject({
          class: 'http',
          code: 'HTTP_STATUS',
          status,
          provider_code: 'some_error',
          message: expect.stringMatching(new RegExp(`^${wire} answered ${status}.*: not for you$`)) as string,
        });
        if (status !== 400)
          expect(error?.hint).toMatch(/^Check [A-Z_]+_API_KEY in the environment of the worker/);
        expect(bench.requests).toBe(1);
      });
    }

    for (const [form, header, delayMs] of [
      ['seconds', 7, 7_000],
      ['a date', 'Thu, 01 Jan 2026 00:00:42 GMT', 42_000],
    ] as const) {
      // SPEC S5.3
      it(`429 with Retry-After as ${form} is due again to the millisecond`, async () => {
        const response = { error: { message: 'slow down' }, status: 429, retryAfter: header as never };
        bench.mock.onMessage('tides', response);
        await bench.start({ model, prompt: 'about tides' });
        const now = bench.harness.clock.now();
        expect(now).toBe(Date.UTC(2026, 0, 1));
        const { task, error } = await bench.attempt();
        expect(error).toMatchObject({ class: 'http', status: 429, retryAfterMs: delayMs });
        expect(task).toMatchObject({ status: 'QUEUED', attempts_spent: 1, not_before: now + delayMs });
        await bench.harness.leap(delayMs - 1);
        expect(await bench.harness.claim()).toEqual([]);
        bench.mock.clearFixtures().onMessage('tides', { content: 'now' });
        await bench.harness.leap(1);
        expect((await bench.attempt()).task.status).toBe('SUCCESS');
      });
    }

    for (const status of [500, 503] as const) {
      // SPEC S5.2, S5.4
      it(`${status} is tried again until the attempts are spent, one request each`, async () => {
        bench.mock.onMessage('tides', { error: { message: 'oops' }, status });
        await bench.start({ model, prompt: 'about tides' });
        for (const spent of [1, 2]) {
          const { task } = await bench.attempt();
          expect(task).toMatchObject({ status: 'QUEUED', attempts_spent: spent });
          await bench.harness.leap(60_000);
        }
        const { task, error } = await bench.attempt();
        expect(task).toMatchObject({ status: 'FAILED', reason: 'exhausted', attempts_spent: 3 });
        expect(error).toMatchObject({ class: 'http', status });
        expect(bench.requests).toBe(3);
      });
    }

    // SPEC S5.1, S5.2
    for (const [what, fixture, expected] of [
      ['a connection that is closed without an answer', { chaos: { disconnectRate: 1 } }, 'CONNECTION_RESET'],
      ['a body that is not the wire’s', { chaos: { malformedRate: 1 } }, 'ANSWER_MALFORMED'],
      [
        'a stream that is cut in the middle',
        { chunkSize: 4, latency: 5, truncateAfterChunks: 6 },
        'CONNECTION_RESET',
      ],
    ] as const) {
      it(`${what} is ${expected} and tried again`, async () => {
        bench.mock.onMessage('tides', { content: 'The sea rises and falls twice a day.' }, fixture);
        await bench.start({ model, prompt: 'about tides' });
        const { task, error, tokens } = await bench.attempt();
        expect(error).toMatchObject({ class: 'transport', code: expected });
        expect(task).toMatchObject({ status: 'QUEUED', attempts_spent: 1 });
        expect(bench.requests).toBe(1);
        if (what.startsWith('a stream')) expect(tokens.length).toBeGreaterThan(0);
      });
    }

    // SPEC S5.1, S5.2
    it('a stall past request_timeout is a timeout and tried again', async () => {
      bench.mock.onMessage('tides', { content: 'too late' }, { chaos: { latencyMs: 20_000 } });
      await bench.start({ model, prompt: 'about tides', request_timeout: '150ms' });
      const { task, error } = await bench.attempt();
      expect(error).toMatchObject({
        class: 'timeout',
        code: 'TIMEOUT',
        message: `${model} took longer than 150 ms (request_timeout)`,
      });
      expect(task).toMatchObject({ status: 'QUEUED', attempts_spent: 1 });
    });

    // SPEC S5.2, S6.1
    it('a stall past the timeout of the attempt ends the request with the attempt', async () => {
      bench.mock.onMessage('tides', { content: 'x'.repeat(200) }, { chunkSize: 1, latency: 50 });
      await bench.start({ model, prompt: 'about tides' }, { timeout: '1s' });
      const { task, error } = await bench.attempt(async (attempt, tokens) => {
        await eventually(() => tokens.length > 0);
        attempt.stop('timeout', bench.harness.clock.monotonic());
      });
      expect(error).toMatchObject({ class: 'timeout', message: 'the attempt took longer than 1000 ms' });
      expect(task).toMatchObject({ status: 'QUEUED', attempts_spent: 1 });
    });

    // SPEC S5.2
    it('a host where nobody listens is refused and tried again', async () => {
      await bench.start({ model, prompt: 'about tides' });
      await bench.mock.stop();
      const { task, error } = await bench.attempt();
      expect(error).toMatchObject({ class: 'transport', code: 'CONNECTION_REFUSED' });
      expect(task.status).toBe('QUEUED');
      await bench.mock.start();
    });
  });
}

// SPEC S9.1
it('what attempts used adds up by model, on the task and on the run; an unknown price makes the sum unknown', async () => {
  bench.mock.on(
    { model: /^gpt/ },
    { content: 'cut', finishReason: 'length', usage: { prompt_tokens: 10, completion_tokens: 2 } },
  );
  await bench.start(
    { model: WIRES.openai, prompt: 'about tides' },
    { retry: { max_attempts: 2, initial: '1s', jitter: 0 } },
  );
  await bench.attempt();
  await bench.harness.leap(1_000);
  const { task } = await bench.attempt();
  const cost_usd = 2 * (10 * 0.25 + 2 * 2) * 1e-6;
  const use = { tokens_in: 20, tokens_out: 4, tokens_cached: 0, cost_usd };
  const sum = { ...use, models: { [WIRES.openai]: { calls: 2, ...use } } };
  expect(JSON.parse(task.usage ?? '{}')).toEqual(sum);
  expect(JSON.parse((await bench.run()).usage ?? '{}')).toEqual(sum);
  await bench.start({ model: 'openai/unheard-of', prompt: 'about tides' });
  bench.mock.clearFixtures().onMessage('tides', { content: 'x' });
  expect(JSON.parse((await bench.attempt()).task.usage ?? '{}')).toMatchObject({
    cost_usd: null,
    models: { 'openai/unheard-of': { calls: 1, cost_usd: null } },
  });
});

describe('fallbacks', () => {
  const spare = WIRES.anthropic;
  const chain = { model: WIRES.openai, fallbacks: [spare], prompt: 'about tides' };
  const answer = (): void => void bench.mock.on({ model: /^claude/ }, { content: 'from the spare' });

  // SPEC S9.1
  for (const status of [404, 408, 429, 500, 503] as const) {
    it(`${status} of the first model asks the second in the same attempt`, async () => {
      bench.mock.on({ model: /^gpt/ }, { error: { message: 'not now' }, status });
      answer();
      await bench.start(chain);
      const { task } = await bench.attempt();
      expect(task).toMatchObject({ status: 'SUCCESS', attempt: 1, attempts_spent: 0 });
      expect(await bench.output()).toBe('from the spare');
      expect(bench.requests).toBe(2);
      expect(Object.keys((JSON.parse(task.usage ?? '{}') as { models: object }).models)).toEqual([spare]);
    });
  }

  for (const status of [400, 401, 403] as const) {
    it(`${status} is a mistake to mend: the second is not asked`, async () => {
      bench.mock.on({ model: /^gpt/ }, { error: { message: 'no' }, status });
      answer();
      await bench.start(chain);
      expect((await bench.attempt()).task).toMatchObject({ status: 'FAILED', reason: 'terminal' });
      expect(bench.requests).toBe(1);
    });
  }

  it('an answer that is wrong is not another model’s matter', async () => {
    bench.mock.on({ model: /^gpt/ }, { content: 'no JSON' });
    answer();
    await bench.start(chain, { output: { format: 'json' } });
    expect((await bench.attempt()).error?.code).toBe('OUTPUT_NOT_JSON');
    expect(bench.requests).toBe(1);
  });

  it('when all fail, the attempt waits for the first that may be asked again and tells of all', async () => {
    bench.mock.on({ model: /^gpt/ }, { error: { message: 'slow down' }, status: 429, retryAfter: 90 });
    bench.mock.on({ model: /^claude/ }, { error: { message: 'slow down too' }, status: 429, retryAfter: 20 });
    await bench.start(chain);
    const now = bench.harness.clock.now();
    const { task, error } = await bench.attempt();
    expect(task).toMatchObject({ status: 'QUEUED', attempts_spent: 1, not_before: now + 20_000 });
    expect(error?.message).toMatch(/^anthropic answered 429.*; then openai answered 429/);
  });

  it('a spare that refuses its key does not make a busy first model a lost cause', async () => {
    bench.mock.on({ model: /^gpt/ }, { error: { message: 'busy' }, status: 503 });
    bench.mock.on({ model: /^claude/ }, { error: { message: 'who are you?' }, status: 401 });
    await bench.start(chain);
    const { task, error } = await bench.attempt();
    expect(task).toMatchObject({ status: 'QUEUED', attempts_spent: 1 });
    expect(error).toMatchObject({ status: 503, message: expect.stringContaining('who are you?') as string });
  });
});
