/** What is written down: events, outputs, payloads, text of any kind, secrets, retention (SPEC S12, S14.4, S14.5). */
import { readdirSync, readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { getBytes } from '../../src/stores/blob-store.ts';
import { CRASHED, type Harness, HOPELESS } from '../support/harness.ts';
import { conformance, expectSound, refusal } from './suite.ts';

/** Text that stores are known to choke on. */
const AWKWARD = 'nul \u0000, lone \ud83d and \udc00, whole 😀, quote " \\ \u2028 \u007f é 中';

conformance('records', (open) => {
  // SPEC S12.1, I4
  it('a life is told event by event: from, to, via, attempt, and a version without gaps', async () => {
    const h = await open();
    const run = await h.start({ a: { retry: { jitter: 0 } } });
    await h.fail(await h.claimOne('a'), CRASHED);
    await h.leap(1_000);
    await h.complete(await h.claimOne('a'));
    const told = (await h.eventsOf(run, 'a')).map(({ type, data }) => [
      type,
      data.from,
      data.to,
      data.attempt,
      data.version,
    ]);
    expect(told).toEqual([
      ['task.queued', 'PENDING', 'QUEUED', 0, 1],
      ['task.claimed', 'QUEUED', 'RUNNING', 1, 2],
      ['task.retry_scheduled', 'RUNNING', 'QUEUED', 1, 3],
      ['task.claimed', 'QUEUED', 'RUNNING', 2, 4],
      ['task.completed', 'RUNNING', 'SUCCESS', 2, 5],
    ]);
    await expectSound(h, run);
  });

  // SPEC S12.1
  it('a task that moves several times in one transaction has one event, named after the last state', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {}, c: { needs: 'b' } });
    const [a, b] = await h.claimAll(2);
    await h.settle(
      { kind: 'complete', lease_id: b.lease_id, output: 1 },
      { kind: 'fail', lease_id: a.lease_id, failure: HOPELESS },
    );
    const events = await h.eventsOf(run, 'c');
    expect(events.map(({ type, data }) => [type, data.from, data.via, data.to, data.reason])).toEqual([
      ['task.cancelled', 'PENDING', ['READY', 'QUEUED'], 'CANCELLED', 'run_stopped'],
    ]);
  });

  // SPEC S12.2
  it('pages of events never skip one, filters included, and an empty page is empty', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { needs: 'a' }, c: { needs: 'b' } });
    const seen: string[] = [];
    let after: string | undefined;
    const page = async (limit: number) => {
      const rows = await h.store.read((tx) => tx.events.page({ limit, ...(after && { after }) }));
      seen.push(...rows.map(({ cursor }) => cursor));
      after = rows.at(-1)?.cursor ?? after;
      return rows.length;
    };
    for (const _ of 'abc') {
      await page(2);
      await h.complete(await h.claimOne());
    }
    while ((await page(2)) > 0);
    const all = await h.store.read((tx) => tx.events.page({ limit: 1_000 }));
    expect(seen).toEqual(all.map(({ cursor }) => cursor));
    expect(await h.store.read((tx) => tx.events.page({ after: after ?? '', limit: 5 }))).toEqual([]);
    expect(await refusal(h.store.read((tx) => tx.events.page({ after: 'no cursor', limit: 5 })))).toBe(
      'USAGE',
    );
    expect(await h.events(run, 'task.completed')).toHaveLength(3);
  });

  // SPEC S12.2
  it('listeners hear of committed events only', async () => {
    let isBroken = false;
    const h = await open({
      onStatement: (name) => {
        if (isBroken && name === 'commit') throw new TypeError('the commit fails');
      },
    });
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    const mark = h.engine.changed.mark();
    isBroken = true;
    await h.complete(lease).catch(() => {});
    expect(h.engine.changed.mark()).toBe(mark);
    isBroken = false;
    expect(await h.complete(lease)).toMatchObject({ ok: true });
    expect(h.engine.changed.mark()).toBeGreaterThan(mark);
    await expectSound(h, run);
  });

  // SPEC S1.2 outputs
  it('outputs are worked out at the end, null where a task did not succeed', async () => {
    const h = await open();
    const outputs = {
      brief: '{{ tasks.a.output.x }}',
      list: ['{{ tasks.a.output }}'],
      gone: '{{ tasks.b.output.y }}',
    };
    const run = await h.start({ a: {}, b: { if: false } }, { outputs });
    await h.idle();
    await h.complete(await h.claimOne('a'), { x: 7 });
    expect(await h.run(run)).toMatchObject({ status: 'RUNNING', finishing: 1 });
    await expectSound(h, run);
    await h.idle();
    const done = await h.run(run);
    expect(done.status).toBe('SUCCESS');
    expect(JSON.parse(done.outputs ?? '')).toEqual({ brief: 7, list: [{ x: 7 }], gone: null });
    await expectSound(h, run);
  });

  // SPEC S3.3
  it('outputs that cannot be worked out fail the run with the reason outputs, and a retry works them out again', async () => {
    const h = await open();
    const run = await h.start({ a: {} }, { outputs: { x: '{{ tasks.a.output.x.y }}' } });
    await h.complete(await h.claimOne('a'), {});
    await h.idle();
    expect(await h.run(run)).toMatchObject({ status: 'FAILED', stop_reason: 'outputs' });
    expect(JSON.parse((await h.run(run)).error ?? '')).toMatchObject({ class: 'template' });
    await h.engine.retryRun(run, 'me');
    await h.idle();
    expect(await h.run(run)).toMatchObject({ status: 'FAILED', stop_reason: 'outputs' });
    await expectSound(h, run);
  });

  // SPEC S3.3
  it('a failed run works out its outputs too and keeps its own reason', async () => {
    const h = await open();
    const run = await h.start(
      { a: {}, b: {} },
      { on_failure: 'continue', outputs: { a: '{{ tasks.a.output }}', b: '{{ tasks.b.output }}' } },
    );
    const [a, b] = await h.claimAll(2);
    await h.complete(a, 1);
    await h.fail(b, HOPELESS);
    await h.idle();
    const done = await h.run(run);
    expect(done).toMatchObject({ status: 'FAILED', stop_reason: null });
    expect(JSON.parse(done.outputs ?? '')).toEqual({ a: 1, b: null });
  });

  // SPEC S4.5, S9.1
  it('usage is summed over attempts, tasks and the run; an unknown cost makes the sum unknown', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {} });
    const [a, b] = await h.claimAll(2);
    await h.fail(a, CRASHED, { tokens_in: 1, tokens_out: 2, cost_usd: 0.25 });
    await h.complete(b, 1, { tokens_in: 10, cost_usd: 0.5 });
    await h.leap(2_000);
    expect(JSON.parse((await h.run(run)).usage ?? '')).toMatchObject({
      tokens_in: 11,
      tokens_out: 2,
      cost_usd: 0.75,
    });
    await h.complete(await h.claimOne('a'), 1, { tokens_in: 1, cost_usd: null });
    expect(JSON.parse((await h.run(run)).usage ?? '')).toMatchObject({ tokens_in: 12, cost_usd: null });
    expect(JSON.parse((await h.task(run, 'a')).usage ?? '')).toMatchObject({ tokens_in: 2, tokens_out: 2 });
  });

  // SPEC S14.5
  it('a payload over 256 KiB goes to the blob store and comes back whole', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: { with: { value: '{{ tasks.a.output.text | length }}' } } });
    const big = { text: 'é'.repeat(200_000) };
    await h.complete(await h.claimOne('a'), big);
    const { key } = await h.task(run, 'a');
    const [artifact] = await h.store.read((tx) => tx.artifacts.ofTask(key));
    expect(artifact).toMatchObject({ inline: null, bytes: Buffer.byteLength(JSON.stringify(big)) });
    expect(artifact?.blob_ref).toMatch(/^[0-9a-f]{64}$/);
    await h.restart();
    expect(await h.output(run, 'a')).toEqual(big);
    expect((await h.claimOne('b')).config.value).toBe(200_000);
  });

  // SPEC S9.3, S14.5
  it('files of an attempt are stored byte by byte, small and large', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const { lease_id } = await h.claimOne('a');
    const small = Uint8Array.from({ length: 256 }, (_, n) => n);
    const large = new Uint8Array(300_000).fill(7);
    const content_type = 'application/octet-stream';
    const artifacts = [
      { name: 'small.bin', content_type, bytes: small },
      { name: 'large.bin', content_type, bytes: large },
    ];
    await h.settle({ kind: 'complete', lease_id, output: null, artifacts });
    const { key } = await h.task(run, 'a');
    const [, one, two] = await h.store.read((tx) => tx.artifacts.ofTask(key));
    expect(Buffer.from(one?.inline as Uint8Array)).toEqual(Buffer.from(small));
    expect(Buffer.from(await getBytes(h.blobs, two?.blob_ref ?? ''))).toEqual(Buffer.from(large));
    expect([one?.name, two?.name]).toEqual(['small.bin', 'large.bin']);
    await expectSound(h, run);
  });

  it('files of a failed attempt are kept, and a failure that is repeated without them gets the first answer', async () => {
    const h = await open();
    const run_id = await h.start({ a: { retry: { max_attempts: 2, initial: '1s' } } });
    const { lease_id } = await h.claimOne('a');
    const artifacts = [{ name: 'raw', content_type: 'text/plain', bytes: Buffer.from('not JSON') }];
    const [first] = await h.settle({ kind: 'fail', lease_id, failure: CRASHED, artifacts });
    expect(await h.settle({ kind: 'fail', lease_id, failure: CRASHED })).toEqual([first]);
    await h.leap(1_000);
    await h.complete(await h.claimOne('a'), 1);
    const { key } = await h.task(run_id, 'a');
    const kept = await h.store.read((tx) => tx.artifacts.ofTask(key));
    expect(kept.map(({ attempt, name }) => `${attempt} ${name}`).sort()).toEqual(['1 raw', '2 output']);
    expect(await h.output(run_id, 'a')).toBe(1);
  });

  // SPEC S14.5
  it('awkward text in inputs, outputs, answers, checkpoints and labels comes back as it was', async () => {
    const h = await open();
    const inputs = { text: { type: 'string' } };
    const run = await h.start(
      {
        a: { with: { value: '{{ inputs.text }}' }, gate: { message: 'x' } },
        b: { with: { value: '{{ tasks.a.output }}' } },
      },
      { inputs, outputs: { b: '{{ tasks.b.output }}' } },
      { inputs: { text: AWKWARD }, labels: { l: AWKWARD } },
    );
    await h.idle();
    await h.engine.decide((await h.task(run, 'a')).id, { kind: 'approve', by: 'ann', answer: AWKWARD });
    const a = await h.claimOne('a');
    expect(a.config.value).toBe(AWKWARD);
    expect(a.answers).toEqual({ gate: AWKWARD });
    await h.beat(a, { checkpoint: { AWKWARD } });
    await h.complete(a, AWKWARD);
    await h.restart();
    const b = await h.claimOne('b');
    expect(b.config.value).toBe(AWKWARD);
    await h.complete(b, { [AWKWARD]: [AWKWARD] });
    await h.idle();
    const done = await h.run(run);
    expect(JSON.parse(done.inputs)).toEqual({ text: AWKWARD });
    expect(JSON.parse(done.labels)).toEqual({ l: AWKWARD });
    expect(JSON.parse(done.outputs ?? '')).toEqual({ b: { [AWKWARD]: [AWKWARD] } });
    expect(JSON.parse((await h.task(run, 'a')).checkpoint ?? '')).toEqual({ AWKWARD });
    await expectSound(h, run);
  });

  // SPEC S14.5
  it('awkward text in errors, messages, logs and notes harms no neighbour', async () => {
    const h = await open();
    const run = await h.start({ a: {}, b: {} }, { on_failure: 'continue' });
    const [a, b] = await h.claimAll(2);
    await h.source.extend([
      { lease_id: a.lease_id, progress: 0.5, message: AWKWARD },
      { lease_id: b.lease_id, message: 'plain' },
    ]);
    await h.source.log([
      { lease_id: a.lease_id, stream: 'stdout', text: AWKWARD },
      { lease_id: b.lease_id, stream: 'stdout', text: 'plain' },
    ]);
    const said = await h.settle(
      { kind: 'fail', lease_id: a.lease_id, failure: { ...HOPELESS, message: AWKWARD } },
      { kind: 'complete', lease_id: b.lease_id, output: 1 },
    );
    expect(said).toMatchObject([{ status: 'FAILED' }, { status: 'SUCCESS' }]);
    await h.engine.appendContext(run, { data: AWKWARD, label: AWKWARD, by: AWKWARD });
    const task = await h.task(run, 'a');
    expect(JSON.parse(task.error ?? '')).toMatchObject({ message: AWKWARD });
    const logs = await h.store.read((tx) => tx.logs.page(task.key, { after: 0, limit: 10 }));
    expect(logs).toHaveLength(1);
    expect(logs[0]?.text).toContain('whole 😀');
    expect((await h.task(run, 'b')).message).toBe('plain');
    expect(task.message).toContain('whole 😀');
    await expectSound(h, run);
  });

  // SPEC S2.2
  it('number-like strings stay strings', async () => {
    const h = await open();
    const run = await h.start(
      { a: {}, b: { with: { value: '{{ tasks.a.output }}' } } },
      { outputs: { a: '{{ tasks.a.output }}' } },
      { labels: { zip: '00123' } },
    );
    await h.complete(await h.claimOne('a'), '007');
    const b = await h.claimOne('b');
    expect(b.config.value).toBe('007');
    await h.complete(b, '1e3');
    await h.idle();
    expect(JSON.parse((await h.run(run)).outputs ?? '')).toEqual({ a: '007' });
    expect(await h.output(run, 'b')).toBe('1e3');
    expect(JSON.parse((await h.run(run)).labels)).toEqual({ zip: '00123' });
  });

  // SPEC S14.4, I14
  it('a secret reaches the worker and no stored row', async () => {
    const secret = 'sk-very-secret-value';
    const h = await open({ secrets: { KEY: secret } });
    const run = await h.start(
      {
        a: { with: { value: 'Bearer {{ secrets.KEY }}' } },
        b: { uses: 'approval', with: { message: 'use {{ secrets.KEY }}?' }, needs: 'a' },
      },
      { secrets: ['KEY'] },
    );
    const lease = await h.claimOne('a');
    expect(lease.config.value).toBe(`Bearer ${secret}`);
    // Told apart, so that a worker elsewhere can mask what it keeps.
    expect(lease.secrets).toEqual([secret]);
    await h.complete(lease, 'done');
    await h.idle();
    expect(JSON.parse((await h.task(run, 'b')).question ?? '')).toMatchObject({ message: 'use ***?' });
    expect(await traces(h, secret)).toEqual([]);
    expect([...h.engine.secretValues()]).toEqual([secret]);
  });

  // SPEC S12.6
  it('pruning removes old terminal runs with everything that is theirs; a dry run only tells', async () => {
    const h = await open();
    const old = await h.start({ a: {}, b: { needs: 'a' } });
    await h.source.log([{ lease_id: (await h.claimOne('a')).lease_id, stream: 'log', text: 'x' }]);
    await h.engine.appendContext(old, { data: 1, by: 'me' });
    await h.complete((await h.tasks(old))[0] ?? { lease_id: null });
    await h.finish(old);
    const failed = await h.start({ a: {} });
    await h.fail(await h.claimOne('a'), HOPELESS);
    await h.leap(86_400_000);
    const active = await h.start({ a: {} });
    const filter = { statuses: ['SUCCESS'], before: h.clock.now() - 1_000, limit: 10 };
    expect(await h.engine.prune({ ...filter, dryRun: true })).toEqual([old]);
    expect((await h.run(old)).status).toBe('SUCCESS');
    const { key } = await h.run(old);
    const [early, ...others] = await h.store.read((tx) => tx.events.page({ limit: 1_000 }));
    const late = others.at(-1);
    expect(await h.engine.prune({ ...filter, dryRun: false })).toEqual([old]);
    const left = await h.store.read(async (tx) => ({
      run: await tx.runs.byId(old),
      tasks: await tx.tasks.ofRun(key, { after: 0, limit: 10 }),
      events: await tx.events.page({ run_key: key, limit: 10 }),
      contexts: await tx.contexts.ofRun(key),
    }));
    expect(left).toEqual({ run: null, tasks: [], events: [], contexts: [] });
    const isExpired = (cursor: string) => h.store.read((tx) => tx.events.isExpired(cursor));
    expect(await isExpired(early?.cursor ?? '')).toBe(true);
    expect(await isExpired(late?.cursor ?? '')).toBe(false);
    expect(await h.engine.prune({ ...filter, dryRun: false })).toEqual([]);
    for (const id of [failed, active]) await expectSound(h, id);
  });

  // SPEC S12.6
  it('with retention set, runs that ended long ago go by themselves, and active ones stay', async () => {
    const h = await open({ retentionMs: 3_600_000 });
    const old = await h.start({ a: {} });
    await h.finish(old);
    const active = await h.start({ a: {} });
    await h.leap(3_600_001);
    expect(await h.store.read((tx) => tx.runs.byId(old))).toBeNull();
    expect((await h.run(active)).status).toBe('RUNNING');
  });

  // SPEC S12.6
  it('a blob goes a day after nobody refers to it any more, and not before', async () => {
    const h = await open();
    const big = 'x'.repeat(300_000);
    const ids = [];
    for (let n = 0; n < 2; n++) {
      ids.push(await h.start({ a: {} }));
      await h.complete(await h.claimOne('a'), big);
      await h.leap(1_000);
    }
    const folder = join(h.opened.folder, 'blobs');
    const blobs = () => readdirSync(folder, { recursive: true }).filter((name) => String(name).length > 60);
    const prune = (limit: number) =>
      h.engine.prune({ statuses: ['SUCCESS'], before: h.clock.now() + 1, limit, dryRun: false });
    const [blob] = blobs();
    const age = (ms: number) => utimesSync(join(folder, String(blob)), 0, (h.clock.now() - ms) / 1_000);
    age(90_000_000);
    expect(await prune(1)).toEqual([ids[0]]);
    expect(blobs()).toHaveLength(1);
    age(80_000_000);
    expect(await prune(1)).toEqual([ids[1]]);
    expect(blobs()).toHaveLength(1);
    age(90_000_000);
    await prune(1);
    expect(blobs()).toHaveLength(0);
  });

  // SPEC S9.5
  it('logs of attempts are kept in order and paged; those of strangers are dropped', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const { lease_id } = await h.claimOne('a');
    for (const text of ['one', 'two', 'three']) await h.source.log([{ lease_id, stream: 'stdout', text }]);
    await h.source.log([{ lease_id: 'nonsense', stream: 'stdout', text: 'x' }]);
    const { key } = await h.task(run, 'a');
    const first = await h.store.read((tx) => tx.logs.page(key, { after: 0, limit: 2 }));
    const rest = await h.store.read((tx) => tx.logs.page(key, { after: first.at(-1)?.key ?? 0, limit: 2 }));
    expect([...first, ...rest].map(({ text }) => text)).toEqual(['one', 'two', 'three']);
  });
});

/** Files of the store that hold a text. */
async function traces(h: Harness, text: string): Promise<string[]> {
  const files = readdirSync(h.opened.folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return files
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(text));
}
