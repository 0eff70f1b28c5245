/** Decisions of people: gates, approvals, questions of workers (SPEC S7, TRANSITIONS 8, 24, 28–32). */
import { expect, it } from 'vitest';
import type { Decision } from '../../src/engine/answer.ts';
import type { Harness } from '../support/harness.ts';
import { conformance, expectSound, refusal } from './suite.ts';

const decide = async (
  h: Harness,
  run: string,
  task_id: string,
  decision: Omit<Decision, 'by'>,
): Promise<void> => h.engine.decide((await h.task(run, task_id)).id, { by: 'ann', ...decision });

conformance('people', (open) => {
  // TRANSITIONS 8, SPEC S7.1
  it('a gated task is BLOCKED once its dependencies and `if` hold, with its message rendered', async () => {
    const h = await open();
    const gate = { message: 'Spend {{ tasks.a.output }}?' };
    const run = await h.start({ a: {}, b: { needs: 'a', if: 'true', gate } });
    await h.idle();
    expect((await h.task(run, 'b')).status).toBe('PENDING');
    await h.complete(await h.claimOne('a'), 5);
    await h.idle();
    const task = await h.task(run, 'b');
    expect(task).toMatchObject({ status: 'BLOCKED', waiting_for: 'person' });
    expect(JSON.parse(task.question ?? '')).toMatchObject({ kind: 'gate', message: 'Spend 5?' });
    expect((await h.run(run)).status).toBe('WAITING');
    const asking = await h.store.read((tx) => tx.tasks.asking({ after: 0, limit: 10 }));
    expect(asking.map(({ task_id }) => task_id)).toEqual(['b']);
    await expectSound(h, run);
  });

  // TRANSITIONS 28
  it('an approved gate lets the task run; who and what are in the event', async () => {
    const h = await open();
    const run = await h.start({ a: { gate: { message: '?' } } });
    await h.idle();
    await decide(h, run, 'a', { kind: 'approve', answer: { ok: 1 } });
    expect((await h.task(run, 'a')).status).toBe('QUEUED');
    const [event] = await h.events(run, 'task.approved');
    expect(event?.data).toMatchObject({
      from: 'BLOCKED',
      to: 'QUEUED',
      via: ['READY'],
      by: 'ann',
      answer: { ok: 1 },
    });
    expect((await h.finish(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  // TRANSITIONS 28, S1.2
  it('an approved gate without room waits as READY and keeps its event', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { gate: { message: '?' } } }, { max_parallel: 1 });
    await h.idle();
    await decide(h, run, 'b', { kind: 'approve' });
    expect(await h.task(run, 'b')).toMatchObject({ status: 'READY', waiting_for: 'capacity' });
    expect(await h.events(run, 'task.approved')).toHaveLength(1);
    expect((await h.finish(run)).status).toBe('SUCCESS');
  });

  // TRANSITIONS 29
  it('a rejected gate fails the task as rejected, for good', async () => {
    const h = await open();
    const run = await h.start({ a: { gate: { message: '?' } } });
    await h.idle();
    await decide(h, run, 'a', { kind: 'reject', reason: 'too dear' });
    const task = await h.task(run, 'a');
    expect(task).toMatchObject({ status: 'FAILED', reason: 'terminal', attempts_spent: 0 });
    expect(JSON.parse(task.error ?? '')).toMatchObject({
      class: 'rejected',
      message: 'rejected by ann: too dear',
    });
    expect((await h.run(run)).status).toBe('FAILED');
  });

  // TRANSITIONS 29
  it('a rejected gate with on_reject: skip skips the task', async () => {
    const h = await open();
    const run = await h.start({ a: { gate: { message: '?', on_reject: 'skip' } }, b: { needs: 'a' } });
    await h.idle();
    await decide(h, run, 'a', { kind: 'reject' });
    expect(await h.statuses(run)).toEqual({ a: 'SKIPPED rejected', b: 'SKIPPED upstream_skipped' });
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  // TRANSITIONS 28, 29
  it.each([
    ['reject', 'FAILED terminal'],
    ['approve', 'QUEUED'],
  ])('an unanswered gate is decided by on_timeout: %s', async (on_timeout, status) => {
    const h = await open();
    const run = await h.start({ a: { gate: { message: '?', timeout: '24h', on_timeout } } });
    await h.idle();
    await h.leap(86_399_999);
    expect((await h.task(run, 'a')).status).toBe('BLOCKED');
    await h.leap(1);
    expect(await h.statuses(run)).toEqual({ a: status });
    await expectSound(h, run);
  });

  // SPEC S7.1
  it('a timeout that was set for a question that is decided does nothing', async () => {
    const h = await open();
    const run = await h.start({ a: { gate: { message: '?', timeout: '1h' } } });
    await h.idle();
    await decide(h, run, 'a', { kind: 'approve' });
    const lease = await h.claimOne('a');
    await h.leap(3_600_000);
    expect(await h.complete(lease)).toMatchObject({ ok: true, status: 'SUCCESS' });
  });

  // SPEC S7.1, S7.2
  it('an answer must fit the form; one that does not decides nothing', async () => {
    const h = await open();
    const form = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } };
    const run = await h.start({ a: { gate: { message: '?', form } } });
    await h.idle();
    for (const answer of [undefined, { n: 'x' }, 5])
      expect(await refusal(decide(h, run, 'a', { kind: 'approve', answer }))).toBe('INVALID_ANSWER');
    expect((await h.task(run, 'a')).status).toBe('BLOCKED');
    await decide(h, run, 'a', { kind: 'approve', answer: { n: 1 } });
    expect((await h.task(run, 'a')).status).toBe('QUEUED');
  });

  // SPEC S7.2
  it('the first decision wins, another is ALREADY_DECIDED; a task that asks nothing is NOT_WAITING', async () => {
    const h = await open();
    const run = await h.start({ a: { gate: { message: '?' } }, b: {} });
    await h.idle();
    const both = await Promise.allSettled([
      decide(h, run, 'a', { kind: 'approve' }),
      decide(h, run, 'a', { kind: 'reject' }),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await refusal(decide(h, run, 'a', { kind: 'reject' }))).toBe('ALREADY_DECIDED');
    expect(await refusal(decide(h, run, 'b', { kind: 'approve' }))).toBe('NOT_WAITING');
    await expectSound(h, run);
  });

  // SPEC S4.7
  it('a decision with a key may be repeated', async () => {
    const h = await open();
    const run = await h.start({ a: { gate: { message: '?' } } });
    await h.idle();
    const { id } = await h.task(run, 'a');
    const say = (kind: 'approve' | 'reject') => h.engine.decide(id, { kind, by: 'ann' }, 'k');
    await say('approve');
    await say('approve');
    expect(await refusal(say('reject'))).toBe('IDEMPOTENCY_CONFLICT');
    expect(await h.events(run, 'task.approved')).toHaveLength(1);
  });

  // TRANSITIONS 30, SPEC S7.1
  it.each(['approve', 'reject'] as const)(
    'an approval task ends as SUCCESS when somebody says %s',
    async (kind) => {
      const h = await open();
      const run = await h.start({
        a: { uses: 'approval', with: { message: 'ship it?' } },
        b: { with: { value: '{{ tasks.a.output.approved }}' } },
      });
      await h.idle();
      await decide(h, run, 'a', { kind, answer: 'x' });
      expect(await h.output(run, 'a')).toEqual({ approved: kind === 'approve', by: 'ann', answer: 'x' });
      expect((await h.claimOne('b')).config.value).toBe(kind === 'approve');
      await expectSound(h, run);
    },
  );

  // TRANSITIONS 30
  it('an approval that nobody answers ends as its on_timeout says', async () => {
    const h = await open();
    const run = await h.start({
      a: { uses: 'approval', with: { message: '?', timeout: '1h', on_timeout: 'approve' } },
    });
    await h.idle();
    await h.leap(3_600_000);
    expect(await h.output(run, 'a')).toMatchObject({ approved: true, by: 'timeout' });
  });

  // TRANSITIONS 28 then 8
  it('an approval behind a gate asks both questions, one after the other', async () => {
    const h = await open();
    const run = await h.start({
      a: { uses: 'approval', with: { message: 'second?' }, gate: { message: 'first?' } },
    });
    await h.idle();
    const first = await h.task(run, 'a');
    await decide(h, run, 'a', { kind: 'approve' });
    const second = await h.task(run, 'a');
    expect(second.status).toBe('BLOCKED');
    expect(JSON.parse(second.question ?? '')).toMatchObject({ kind: 'approval', message: 'second?' });
    const late = { kind: 'approve', by: 'bob', question_id: first.question_id ?? '' } as const;
    expect(await refusal(h.engine.decide(second.id, late))).toBe('ALREADY_DECIDED');
    await decide(h, run, 'a', { kind: 'approve' });
    expect((await h.run(run)).status).toBe('SUCCESS');
    await expectSound(h, run);
  });

  // TRANSITIONS 24, 31, SPEC S7.2
  it.each(['BLOCKED', 'WAITING_INPUT'] as const)(
    'a worker may pause as %s; the answer goes to the next attempt',
    async (status) => {
      const h = await open();
      const run = await h.start({ a: { retry: { max_attempts: 1 } } });
      const schema = { type: 'string' };
      await h.pause(await h.claimOne('a'), { key: 'colour', message: 'which colour?', schema }, status);
      expect(await h.task(run, 'a')).toMatchObject({ status, attempts_spent: 0, waiting_for: 'person' });
      expect((await h.run(run)).status).toBe('WAITING');
      expect(await refusal(decide(h, run, 'a', { kind: 'approve', answer: 3 }))).toBe('INVALID_ANSWER');
      await decide(h, run, 'a', { kind: 'approve', answer: 'red' });
      expect(await h.events(run, 'task.resumed')).toHaveLength(1);
      const next = await h.claimOne('a');
      expect(next).toMatchObject({ attempt: 2, answers: { colour: 'red' } });
      expect(await h.complete(next)).toMatchObject({ ok: true });
      await expectSound(h, run);
    },
  );

  // TRANSITIONS 32
  it('a rejected question of a worker fails the task as rejected', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.pause(await h.claimOne('a'));
    await decide(h, run, 'a', { kind: 'reject' });
    expect(JSON.parse((await h.task(run, 'a')).error ?? '')).toMatchObject({ class: 'rejected' });
    await expectSound(h, run);
  });

  // TRANSITIONS 32
  it('a question of a worker that nobody answers in time fails the task as rejected', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.pause(await h.claimOne('a'), { key: 'q', message: 'anybody?', timeout: '1h' });
    await h.leap(3_599_000);
    expect((await h.task(run, 'a')).status).toBe('WAITING_INPUT');
    await h.restart();
    await h.leap(1_000);
    expect(await h.task(run, 'a')).toMatchObject({ status: 'FAILED', attempts_spent: 0 });
    expect(JSON.parse((await h.task(run, 'a')).error ?? '')).toMatchObject({
      class: 'rejected',
      message: 'rejected by timeout: nobody answered in time',
    });
    await expectSound(h, run);
  });

  // TRANSITIONS 31
  it('an answer in time leaves nothing of the timeout, and a later question has its own', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.pause(await h.claimOne('a'), { key: 'q', message: 'first?', timeout: '1h' });
    await decide(h, run, 'a', { kind: 'approve', answer: 1 });
    await h.pause(await h.claimOne('a'), { key: 'r', message: 'second?', timeout: '3h' });
    await h.leap(7_200_000);
    expect((await h.task(run, 'a')).status).toBe('WAITING_INPUT');
    await h.leap(3_600_000);
    expect((await h.task(run, 'a')).status).toBe('FAILED');
    await expectSound(h, run);
  });

  // SPEC S1.2, TRANSITIONS 31
  it('an answered task does not exceed max_parallel', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {} }, { max_parallel: 1 });
    await h.pause(await h.claimOne('a'));
    const b = await h.claimOne('b');
    await decide(h, run, 'a', { kind: 'approve' });
    expect(await h.task(run, 'a')).toMatchObject({ status: 'READY', waiting_for: 'capacity' });
    await expectSound(h, run);
    await h.complete(b);
    expect((await h.claimOne('a')).attempt).toBe(2);
  });

  // SPEC S4.11
  it('people may answer while the run is paused', async () => {
    const h = await open();
    const run = await h.start({ a: { gate: { message: '?' } } });
    await h.idle();
    await h.engine.pauseRun(run, 'me');
    await decide(h, run, 'a', { kind: 'approve' });
    expect(await h.task(run, 'a')).toMatchObject({ status: 'READY', waiting_for: 'paused' });
    await h.engine.resumeRun(run, 'me');
    expect((await h.finish(run)).status).toBe('SUCCESS');
  });

  // SPEC S7.2
  it('a question survives a restart', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    await h.pause(await h.claimOne('a'), { key: 'q', message: 'still here?' });
    await h.restart();
    await decide(h, run, 'a', { kind: 'approve', answer: 'yes' });
    expect((await h.claimOne('a')).answers).toEqual({ q: 'yes' });
  });
});
