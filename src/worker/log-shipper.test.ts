/** Logs of attempts: soon, in order, masked, bounded, and never in the way of a result. */
import { afterEach, describe, expect, it } from 'vitest';
import { makeLease } from '../../test/support/fake-source.ts';
import { settle, until } from '../../test/support/until.ts';
import { defer, startWorker, type WorkerBench } from '../../test/support/worker-bench.ts';
import type { HandlerContext } from '../handlers/handler.ts';

type Context = HandlerContext<Readonly<Record<string, unknown>>>;

let open: { bench: WorkerBench; end: () => void } | null = null;
afterEach(async () => {
  open?.end();
  await open?.bench.worker.stop();
  open = null;
});

/** A running attempt whose end the test decides. */
async function startLogging(
  options: Parameters<typeof startWorker>[2] = {},
): Promise<WorkerBench & { context: Context; end: () => void }> {
  const gate = defer();
  let context: Context | null = null;
  const bench = await startWorker(
    async (given) => {
      context = given;
      await gate.promise;
    },
    [makeLease({ lease_id: 'l1' })],
    options,
  );
  await until(() => context !== null);
  open = { bench, end: gate.resolve };
  return { ...bench, context: context as unknown as Context, end: gate.resolve };
}

// SPEC S9.5
describe('sending', () => {
  it('small chunks go together after 200 ms', async () => {
    const { context, source, pass } = await startLogging();
    context.log('one\n', 'stdout');
    context.log('two\n', 'stdout');
    context.log('oops\n', 'stderr');
    await pass(199);
    expect(source.chunks).toEqual([]);
    await pass(1);
    expect(source.chunks).toEqual([
      { lease_id: 'l1', stream: 'stdout', text: 'one\ntwo\n' },
      { lease_id: 'l1', stream: 'stderr', text: 'oops\n' },
    ]);
  });

  it('much text goes at once, in chunks of bounded size', async () => {
    const { context, source } = await startLogging();
    context.log(`${'x'.repeat(99)}\n`.repeat(1_000), 'stdout');
    await until(() => source.chunks.length > 0);
    expect(source.textOf('l1')).toHaveLength(100_000);
    expect(Math.max(...source.chunks.map(({ text }) => text.length))).toBeLessThanOrEqual(32 * 1024);
  });

  it('the rest of a log arrives before the settlement', async () => {
    const { context, source, worker, end } = await startLogging();
    context.log('last words without a line end');
    end();
    await worker.idle();
    expect(source.textOf('l1')).toBe('last words without a line end');
    expect(source.journal).toEqual(['log', 'settle']);
  });

  it('what is logged after the end is dropped', async () => {
    const { context, source, worker, end, pass } = await startLogging();
    end();
    await worker.idle();
    context.log('from the grave\n');
    await pass(1_000);
    expect(source.chunks).toEqual([]);
  });

  it('lines of two streams stay whole when they mix', async () => {
    const { context, source, pass } = await startLogging();
    context.log('half ', 'stdout');
    context.log('error\n', 'stderr');
    context.log('line\nnext\n', 'stdout');
    await pass(200);
    expect(source.chunks.map(({ stream, text }) => [stream, text])).toEqual([
      ['stdout', 'half line\n'],
      ['stderr', 'error\n'],
      ['stdout', 'next\n'],
    ]);
  });

  // SPEC S14.5
  it('a log is cut off after a mebibyte, and says so', async () => {
    const { context, source, worker, end } = await startLogging();
    for (let line = 0; line < 20_000; line++) context.log(`${'x'.repeat(99)}\n`);
    end();
    await worker.idle();
    const text = source.textOf('l1');
    expect(text.length).toBeLessThan(1024 * 1024 + 100);
    expect(text).toMatch(/cut off here, after 1 MiB\]\n$/);
  });
});

// SPEC S14.4
describe('masking', () => {
  const redact = (text: string): string => text.replaceAll('correcthorse', '***');

  it('a secret that arrives in pieces is masked', async () => {
    const { context, source, pass, worker, end } = await startLogging({ redact });
    context.log('the key is correct', 'stdout');
    await pass(200);
    expect(source.textOf('l1')).toBe('the key is ');
    context.log('horse, keep it\n', 'stdout');
    await pass(200);
    end();
    await worker.idle();
    expect(source.textOf('l1')).toBe('the key is ***, keep it\n');
  });

  it('a word that stays unfinished is shown all the same', async () => {
    const { context, source, pass } = await startLogging({ redact });
    context.log('Password:', 'stdout');
    await pass(200);
    expect(source.textOf('l1')).toBe('');
    await pass(200);
    expect(source.textOf('l1')).toBe('Password:');
  });
});

describe('a source that takes no logs', () => {
  it('chunks are kept and sent later, in order', async () => {
    const { context, source, pass } = await startLogging();
    source.isAway = true;
    context.log('one\n');
    await pass(200);
    source.isAway = false;
    context.log('two\n');
    await pass(400);
    expect(source.textOf('l1')).toBe('one\ntwo\n');
  });

  it('a result is handed over although its log cannot be', async () => {
    const { context, source, worker, end, events } = await startLogging();
    source.log = () => Promise.reject(new TypeError('no logs today'));
    context.log('lost\n');
    end();
    await worker.idle();
    await settle();
    expect(source.settled).toMatchObject([{ kind: 'complete' }]);
    expect(events).toContain('worker.logs_not_sent');
  });
});
