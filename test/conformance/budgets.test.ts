/** The budget of a run (SPEC S8.2): it stops before the call that would exceed it. */
import { expect, it } from 'vitest';
import type { Harness } from '../support/harness.ts';
import { conformance, expectSound } from './suite.ts';

/** An llm task that asks for this many tokens: 25 for the prompt and its frame, the rest for the answer. */
const call = (tokens: number, more: object = {}) => ({
  uses: 'llm',
  with: { model: 'offline/brief', prompt: 'hi', max_tokens: tokens - 25 },
  ...more,
});

async function claimAll(h: Harness): Promise<Record<string, string>> {
  await h.idle();
  return Object.fromEntries((await h.claim(10)).map(({ task_id, lease_id }) => [task_id, lease_id]));
}

conformance('budgets', (open) => {
  // SPEC S8.2
  it('a call that does not fit is not made, and the run fails with BUDGET_EXCEEDED', async () => {
    const h = await open();
    const tasks = { a: call(500), b: call(500, { needs: ['a'] }), c: call(100, { needs: ['b'] }) };
    const run = await h.start(tasks, { budget: { tokens: 1_000 } });
    const { a } = await claimAll(h);
    await h.complete({ lease_id: a ?? '' }, 'x', { tokens_in: 25, tokens_out: 576 });
    expect(await claimAll(h)).toEqual({});
    expect(await h.statuses(run)).toEqual({ a: 'SUCCESS', b: 'FAILED terminal', c: 'CANCELLED budget' });
    const stored = await h.run(run);
    expect(stored).toMatchObject({ status: 'FAILED', stop_reason: 'budget' });
    expect(JSON.parse(stored.error ?? '')).toMatchObject({ class: 'budget', code: 'BUDGET_EXCEEDED' });
    expect(JSON.parse((await h.task(run, 'b')).error ?? '').message).toBe(
      'the run has used 601 tokens; this call may need 500 more, and its budget is 1000',
    );
    await expectSound(h, run);
  });

  // SPEC S8.2
  it('reservations in flight make others wait, and they go on when a call used less', async () => {
    const h = await open();
    const run = await h.start({ a: call(600), b: call(600), c: {} }, { budget: { tokens: 1_000 } });
    const first = await claimAll(h);
    expect(Object.keys(first).sort()).toEqual(['a', 'c']);
    expect(await h.task(run, 'b')).toMatchObject({ status: 'READY', waiting_for: 'budget' });
    expect(await claimAll(h)).toEqual({});
    await expectSound(h, run);
    await h.complete({ lease_id: first.a ?? '' }, 'x', { tokens_in: 25, tokens_out: 75 });
    expect(Object.keys(await claimAll(h))).toEqual(['b']);
    await expectSound(h, run);
  });

  // SPEC S8.2
  it('leased work finishes and counts, `when: done` runs, and the rest is cancelled', async () => {
    const h = await open();
    const run = await h.start(
      {
        big: call(900),
        slow: { uses: 'shell', with: { run: 'sleep' } },
        after: { needs: ['slow'] },
        cleanup: { needs: ['slow', 'big'], when: 'done' },
      },
      { budget: { tokens: 500 }, on_failure: 'continue' },
    );
    const { lease_id: slow } = await h.claimOne('slow');
    expect(await claimAll(h)).toEqual({});
    expect(await h.statuses(run)).toMatchObject({ big: 'FAILED terminal', slow: 'RUNNING' });
    expect(await h.beat({ lease_id: slow })).toMatchObject({ order: 'continue' });
    expect(await h.complete({ lease_id: slow }, 'done', { tokens_in: 7, tokens_out: 0 })).toMatchObject({
      ok: true,
      status: 'SUCCESS',
    });
    await h.finish(run);
    expect(await h.statuses(run)).toEqual({
      big: 'FAILED terminal',
      slow: 'SUCCESS',
      after: 'CANCELLED budget',
      cleanup: 'SUCCESS',
    });
    const stored = await h.run(run);
    expect(stored).toMatchObject({ status: 'FAILED', stop_reason: 'budget' });
    expect(JSON.parse(stored.usage ?? '')).toMatchObject({ tokens_in: 7 });
    await expectSound(h, run);
  });

  // SPEC S8.2
  it('an attempt that fails after the budget is used up is not tried again', async () => {
    const h = await open();
    const run = await h.start(
      { a: call(400), b: call(900) },
      { budget: { tokens: 1_000 }, on_failure: 'continue' },
    );
    const { a } = await claimAll(h);
    await h.fail({ lease_id: a ?? '' }, undefined, { tokens_in: 150, tokens_out: 100 });
    expect(await h.statuses(run)).toMatchObject({ a: 'QUEUED' });
    await claimAll(h);
    expect(await h.statuses(run)).toEqual({ a: 'CANCELLED budget', b: 'FAILED terminal' });
    expect((await h.run(run)).status).toBe('FAILED');
    await expectSound(h, run);
  });

  // SPEC S8.2
  it('a leased attempt that fails in a run whose budget is used up ends with it', async () => {
    const h = await open();
    const run = await h.start(
      { slow: { uses: 'shell', with: { run: 'sleep' } }, big: call(900) },
      { budget: { tokens: 500 }, on_failure: 'continue' },
    );
    const { slow } = await claimAll(h);
    await claimAll(h);
    await h.fail({ lease_id: slow ?? '' });
    expect(await h.statuses(run)).toEqual({ slow: 'CANCELLED budget', big: 'FAILED terminal' });
    expect((await h.run(run)).status).toBe('FAILED');
    await expectSound(h, run);
  });

  // SPEC S8.2
  it('a retry with a larger budget goes on where the run stopped', async () => {
    const h = await open();
    const tasks = { a: call(500), b: call(500, { needs: ['a'] }) };
    const run = await h.start(tasks, { budget: { tokens: 700 } });
    const { a } = await claimAll(h);
    await h.complete({ lease_id: a ?? '' }, 'x', { tokens_in: 100, tokens_out: 300 });
    await claimAll(h);
    expect((await h.run(run)).status).toBe('FAILED');
    await h.engine.retryRun(run, 'test');
    await claimAll(h);
    expect((await h.run(run)).status).toBe('FAILED');
    await h.engine.retryRun(run, 'test', { budget: { tokens: 900 } });
    const { b } = await claimAll(h);
    await h.complete({ lease_id: b ?? '' });
    expect(await h.run(run)).toMatchObject({ status: 'SUCCESS', stop_reason: null, error: null });
    await expectSound(h, run);
  });

  // SPEC S8.2, S4.5: usage of an attempt that was lost or cancelled counts
  it('what a stale attempt used counts against the budget', async () => {
    const h = await open();
    const run = await h.start({ a: call(300), b: call(300, { needs: ['a'] }) }, { budget: { tokens: 700 } });
    const { a } = await claimAll(h);
    await h.pass(40_000);
    await h.complete({ lease_id: a ?? '' }, 'late', { tokens_in: 200, tokens_out: 200 });
    const again = await claimAll(h);
    await h.complete({ lease_id: again.a ?? '' }, 'x', { tokens_in: 10, tokens_out: 10 });
    await claimAll(h);
    expect(await h.statuses(run)).toMatchObject({ a: 'SUCCESS', b: 'FAILED terminal' });
    await expectSound(h, run);
  });

  // SPEC S8.2
  it('cost is reserved by the price of the model, and an unknown price is told', async () => {
    const lines: string[] = [];
    const h = await open({ log: (line) => lines.push(line) });
    const priced = { model: 'openai/gpt-4o-mini', prompt: 'hi', max_tokens: 1_000_000 };
    const run = await h.start({ a: { uses: 'llm', with: priced } }, { budget: { cost_usd: 0.1 } });
    expect(await claimAll(h)).toEqual({});
    expect(JSON.parse((await h.run(run)).error ?? '').message).toMatch(
      /^the run has used 0 USD; this call may need 0\.6\d* more, and its budget is 0\.1$/,
    );
    const unknown = { model: 'lab/own', prompt: 'hi' };
    const free = await h.start({ a: { uses: 'llm', with: unknown } }, { budget: { cost_usd: 0.1 } });
    const { a } = await claimAll(h);
    expect(lines.filter((line) => line.includes('budget.unpriced')).length).toBe(1);
    await h.complete({ lease_id: a ?? '' }, 'x', { tokens_in: 1, tokens_out: 1, cost_usd: null });
    expect(await h.run(free)).toMatchObject({ status: 'SUCCESS' });
    await expectSound(h, free);
  });

  // SPEC S8.2, S2.4
  it('an input that cannot be put together fails alone, and keeps no other from being estimated', async () => {
    const h = await open();
    const missing = { uses: 'llm', with: { model: 'offline/brief', prompt: '{{ inputs.topic.deep.down }}' } };
    const run = await h.start(
      { a: missing, b: call(100) },
      { budget: { tokens: 1_000 }, on_failure: 'continue', inputs: { topic: { default: 'x' } } },
    );
    expect(Object.keys(await claimAll(h))).toEqual(['b']);
    expect(await h.statuses(run)).toMatchObject({ a: 'FAILED terminal', b: 'RUNNING' });
    expect(JSON.parse((await h.task(run, 'a')).error ?? '')).toMatchObject({ class: 'template' });
    await expectSound(h, run);
  });

  // SPEC S8.2
  it('a run without a budget, or without model calls, asks nothing', async () => {
    const statements: string[] = [];
    const h = await open({ onStatement: (name) => statements.push(name) });
    const run = await h.start({ a: {}, b: call(100) }, {});
    await h.finish(run);
    expect((await h.run(run)).status).toBe('SUCCESS');
    const asked = statements.filter((name) => name.startsWith('limits.') || name.startsWith('held.'));
    // Which limits there are is read once by a process.
    expect(asked.filter((name) => name !== 'limits.all')).toEqual([]);
    expect(asked.length).toBeLessThanOrEqual(1);
  });
});
