/** One settlement of a batch that a store cannot hold, at every position of the batch: its neighbours never feel it (DESIGN "Poison and doubt"). */
import { describe, expect, it } from 'vitest';
import type { Settlement } from '../../src/worker/work-source.ts';
import type { Harness } from '../support/harness.ts';
import { conformance, expectSound } from './suite.ts';

const SIZE = 8;
const POSITIONS = Array.from({ length: SIZE }, (_, index) => index);
const NUL = 'a\0b';
const LONE = 'c\ud800d';
/** One character more than the largest payload, quotes included. */
const OVERSIZED = 'x'.repeat(64 * 1024 * 1024);

/** What the offender says instead of its result, how it is answered, and where it ends. */
interface Poison {
  readonly settlement: (lease_id: string) => Settlement;
  readonly answer: object;
  readonly task: object;
  readonly output?: unknown;
}

const circle: Record<string, unknown> = {};
circle.self = circle;
const complete = (lease_id: string, output: unknown): Settlement => ({ kind: 'complete', lease_id, output });
const failed = (code: string) => ({
  answer: { ok: true, status: 'QUEUED' },
  task: { status: 'QUEUED', attempts_spent: 1, error: expect.stringContaining(code) },
});

const POISONS: Readonly<Record<string, Poison>> = {
  // SPEC S14.5: stored as bytes, as it is
  'a NUL in an output': {
    settlement: (lease_id) => complete(lease_id, { text: NUL }),
    answer: { ok: true, status: 'SUCCESS' },
    task: { status: 'SUCCESS' },
    output: { text: NUL },
  },
  'a lone surrogate in an output': {
    settlement: (lease_id) => complete(lease_id, [LONE]),
    answer: { ok: true, status: 'SUCCESS' },
    task: { status: 'SUCCESS' },
    output: [LONE],
  },
  'both in the name and the bytes of a file': {
    settlement: (lease_id) => ({
      ...complete(lease_id, 1),
      artifacts: [{ name: NUL + LONE, content_type: NUL, bytes: Buffer.from('a\0\xff', 'latin1') }],
    }),
    answer: { ok: true, status: 'SUCCESS' },
    task: { status: 'SUCCESS' },
    output: 1,
  },
  'both in the message of a failure': {
    settlement: (lease_id) => ({
      kind: 'fail',
      lease_id,
      failure: { class: 'handler', code: 'HANDLER_THREW', message: NUL + LONE },
    }),
    ...failed('HANDLER_THREW'),
  },
  // SPEC S14.5: what is over a bound gets a clear error
  'an oversized output': {
    settlement: (lease_id) => complete(lease_id, OVERSIZED),
    ...failed('OUTPUT_TOO_LONG'),
  },
  'an output that is not JSON': {
    settlement: (lease_id) => complete(lease_id, circle),
    ...failed('OUTPUT_NOT_JSON'),
  },
  'a time that no store can hold': {
    settlement: (lease_id) => ({ kind: 'release', lease_id, delay_ms: 1e300 }),
    answer: { ok: false, code: 'INTERNAL' },
    task: { status: 'RUNNING', attempts_spent: 0 },
  },
};

conformance('poison', (open) => {
  // SPEC S4.6
  describe.each(Object.entries(POISONS))('%s', (_name, poison) => {
    it('harms nobody else, wherever it stands in a batch', async () => {
      const h = await open();
      for (const position of POSITIONS) await settleBatch(h, poison, position);
    });
  });
});

async function settleBatch(h: Harness, poison: Poison, position: number): Promise<void> {
  const tasks = Object.fromEntries(POSITIONS.map((index) => [`t${index}`, {}]));
  const run = await h.start({ ...tasks, after: { needs: Object.keys(tasks) } }, { on_failure: 'continue' });
  const leases = await h.claim(SIZE);
  expect(leases).toHaveLength(SIZE);
  const results = await h.settle(
    ...leases.map(({ lease_id }, index) =>
      index === position ? poison.settlement(lease_id) : complete(lease_id, { index }),
    ),
  );
  for (const [index, lease] of leases.entries()) {
    const where = `offender at ${position}, task at ${index}`;
    const expected =
      index === position ? poison : { answer: { ok: true, status: 'SUCCESS' }, task: { status: 'SUCCESS' } };
    expect(results[index], where).toMatchObject({ lease_id: lease.lease_id, ...expected.answer });
    expect(await h.task(run, lease.task_id), where).toMatchObject(expected.task);
    if (index !== position) expect(await h.output(run, lease.task_id), where).toEqual({ index });
    else if ('output' in poison) expect(await h.output(run, lease.task_id), where).toEqual(poison.output);
  }
  await expectSound(h, run);
  await h.engine.cancelRun(run, 'me').catch(() => {});
}
