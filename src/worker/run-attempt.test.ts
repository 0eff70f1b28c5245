/** From lease to settlement: config, outputs, errors, questions. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { makeLease } from '../../test/support/fake-source.ts';
import { startWorker } from '../../test/support/worker-bench.ts';
import { AttemptFailure } from '../domain/attempt-failure.ts';
import {
  defineHandler,
  type Handler,
  type HandlerContext,
  RetryAfter,
  TerminalError,
} from '../handlers/handler.ts';
import type { Lease, Settlement } from './work-source.ts';

type Context = HandlerContext<Readonly<Record<string, unknown>>>;

/** Runs one attempt and gives its settlement. */
async function attempt(
  run: (context: Context) => Promise<unknown>,
  lease: Partial<Lease> = {},
  options: Parameters<typeof startWorker>[2] = {},
): Promise<Settlement | undefined> {
  const { worker, source } = await startWorker(run, [makeLease({ lease_id: 'l1', ...lease })], options);
  await worker.idle();
  await worker.stop();
  return source.settled[0];
}

/** The failure that a thrown value becomes. */
async function failing(thrown: unknown, options?: Parameters<typeof startWorker>[2]): Promise<unknown> {
  const run = (): Promise<never> => Promise.reject(thrown);
  const settlement = await attempt(run, {}, options);
  return settlement?.kind === 'fail' ? settlement.failure : settlement;
}

// SPEC S5.1, S5.2
describe('errors', () => {
  it('facts are classified and keep what they add', async () => {
    const error = new AttemptFailure({ kind: 'http', status: 503 }, 'busy', {
      status: 503,
      retryAfterMs: 5_000,
    });
    expect(await failing(error)).toEqual({
      class: 'http',
      code: 'HTTP_STATUS',
      message: 'busy',
      status: 503,
      retryAfterMs: 5_000,
      attempt: 1,
    });
  });

  it('a TerminalError is final, also one from another copy of the module', async () => {
    class TerminalCopy extends Error {
      override readonly name = 'TerminalError';
    }
    const expected = { class: 'handler', code: 'HANDLER_TERMINAL', message: 'never' };
    expect(await failing(new TerminalError('never'))).toMatchObject(expected);
    expect(await failing(new TerminalCopy('never'))).toMatchObject(expected);
  });

  it('RetryAfter says how long to wait', async () => {
    expect(await failing(new RetryAfter(2_500, 'later'))).toMatchObject({
      class: 'handler',
      code: 'HANDLER_THREW',
      message: 'later',
      retryAfterMs: 2_500,
    });
  });

  it('anything else that is thrown is a failure of the handler', async () => {
    const expected = { class: 'handler', code: 'HANDLER_THREW' };
    expect(await failing(new TypeError('no such thing'))).toMatchObject({
      ...expected,
      message: 'TypeError: no such thing',
    });
    expect(await failing('just text')).toMatchObject({ ...expected, message: 'just text' });
    expect(await failing(undefined)).toMatchObject({ ...expected, message: 'undefined' });
  });

  it('an error that contradicts itself still settles the attempt', async () => {
    expect(await failing(new AttemptFailure({ kind: 'http', status: 200 }, 'odd'))).toMatchObject({
      class: 'handler',
      code: 'HANDLER_THREW',
    });
  });

  // SPEC S14.4, S14.5
  it('messages are masked, bounded, and free of what a store cannot hold', async () => {
    const redact = (text: string): string => text.replaceAll('hunter2hunter2', '***');
    const long = `key hunter2hunter2 \0 \uD800 ${'x'.repeat(10_000)} the end`;
    const failure = (await failing(new TypeError(long), { redact })) as { message: string };
    expect(failure.message.length).toBeLessThanOrEqual(4_000);
    expect(failure.message).toMatch(/^TypeError: key \*\*\* \uFFFD \uFFFD x+ \[…\] x+ the end$/);
  });
});

describe('config and output', () => {
  it('a config that the handler does not take fails for good and names the key', async () => {
    const strict = defineHandler({
      name: 'work',
      summary: 'for tests',
      config: z.strictObject({ url: z.string() }),
      run: async () => 1,
    });
    const handlers = new Map([['work', strict as Handler]]);
    const settlement = await attempt(async () => 1, { config: { url: 7 } }, { handlers });
    expect(settlement).toMatchObject({ kind: 'fail', failure: { code: 'HANDLER_TERMINAL' } });
    expect(JSON.stringify(settlement)).toContain('`url`');
  });

  it('a handler gets its config, task, answers, checkpoint and folder', async () => {
    const settlement = await attempt(
      async ({ config, task, lastCheckpoint, workdir, env }) => ({
        config,
        task,
        lastCheckpoint,
        workdir,
        env,
      }),
      { config: { a: 1 }, checkpoint: { row: 9 }, attempt: 2, map_index: 4 },
      { workdir: '/work', env: { HOME: '/home' } },
    );
    expect(settlement).toMatchObject({
      output: {
        config: { a: 1 },
        task: { run_id: 'run-1', task_run_id: 'task-run-l1', task_id: 'task', map_index: 4, attempt: 2 },
        lastCheckpoint: { row: 9 },
        workdir: '/work',
        env: { HOME: '/home' },
      },
    });
  });

  it('nothing returned is null, unless the task asks for an output', async () => {
    expect(await attempt(async () => undefined)).toMatchObject({ kind: 'complete', output: null });
    expect(await attempt(async () => undefined, { output: {} })).toMatchObject({
      failure: { code: 'OUTPUT_MISSING' },
    });
  });

  it('an output that is not what was asked for fails with class output', async () => {
    const output = { schema: { type: 'object', required: ['points'] } };
    expect(await attempt(async () => ({ points: [] }), { output })).toMatchObject({ kind: 'complete' });
    expect(await attempt(async () => ({}), { output })).toMatchObject({
      failure: { class: 'output', code: 'OUTPUT_SCHEMA' },
    });
  });

  it('an output becomes what JSON carries, and what JSON cannot carry fails', async () => {
    const when = new Date(0);
    expect(await attempt(async () => ({ when, gone: undefined }))).toMatchObject({
      output: { when: '1970-01-01T00:00:00.000Z' },
    });
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    for (const value of [circle, 1n, () => 1, { deep: [1n] }]) {
      expect(await attempt(async () => value)).toMatchObject({ failure: { code: 'OUTPUT_NOT_JSON' } });
    }
  });

  it('usage adds up and artifacts go along', async () => {
    const settlement = await attempt(async ({ usage, artifact }) => {
      usage({ tokens_in: 10, tokens_out: 1, cost_usd: 0.5, model: 'a' });
      usage({ tokens_in: 5, cost_usd: 0.25, model: 'b' });
      artifact({ name: 'raw', content_type: 'text/plain', bytes: Buffer.from('x') });
      return 1;
    });
    expect(settlement).toMatchObject({
      usage: { tokens_in: 15, tokens_out: 1, cost_usd: 0.75, model: 'b' },
      artifacts: [{ name: 'raw' }],
    });
  });

  it('a failed attempt reports what it used', async () => {
    const settlement = await attempt(async ({ usage }) => {
      usage({ tokens_in: 10 });
      throw new TypeError('after the call');
    });
    expect(settlement).toMatchObject({ kind: 'fail', usage: { tokens_in: 10 } });
  });
});

// SPEC S7.2
describe('questions', () => {
  const question = { key: 'go', message: 'Go on?', schema: { type: 'boolean' } };

  it('a question without an answer pauses the task', async () => {
    expect(await attempt(async ({ ask }) => ask(question))).toEqual({
      kind: 'pause',
      lease_id: 'l1',
      status: 'WAITING_INPUT',
      question,
    });
    expect(await attempt(async ({ ask }) => ask({ ...question, status: 'BLOCKED' }))).toMatchObject({
      kind: 'pause',
      status: 'BLOCKED',
    });
  });

  it('a question that has an answer gives it, also when the answer is false or null', async () => {
    for (const answer of ['yes', false, null]) {
      const settlement = await attempt(async ({ ask }) => ({ answer: ask(question) }), {
        answers: { go: answer },
      });
      expect(settlement).toMatchObject({ kind: 'complete', output: { answer } });
    }
  });

  it('an error wrapped around a question still pauses the task', async () => {
    const settlement = await attempt(async ({ ask }) => {
      try {
        return ask(question);
      } catch (cause) {
        throw new TypeError('wrapped', { cause });
      }
    });
    expect(settlement).toMatchObject({ kind: 'pause' });
  });
});
