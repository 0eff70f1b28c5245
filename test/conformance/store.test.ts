/** The store itself: transactions, lists, migrations, backup, the limbo query (SPEC S3.4, S14.1). */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { TaskRow } from '../../src/stores/rows.ts';
import { openDriver } from '../../src/stores/sqlite/driver.ts';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import { CRASHED, type Harness } from '../support/harness.ts';
import { STORES } from './stores.ts';
import { conformance, expectSound, refusal } from './suite.ts';

conformance('a store', (open) => {
  // DESIGN contracts
  it('a transaction that fails leaves nothing behind, and what it read before stays true', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const before = await h.run(run);
    const failed = h.store.write(async (tx) => {
      const [row] = await tx.runs.byKeys([before.key]);
      if (row === undefined) throw new TypeError('the run is there');
      row.n_failed = 99;
      await tx.runs.save([row]);
      expect((await tx.runs.byId(run))?.n_failed).toBe(99);
      throw new TypeError('stop');
    });
    await expect(failed).rejects.toThrow('stop');
    expect(await h.run(run)).toEqual(before);
    expect((await h.store.write((tx) => tx.runs.byKeys([before.key])))[0]).toEqual(before);
    expect((await h.finish(run)).status).toBe('SUCCESS');
  });

  // DESIGN contracts
  it('a reader sees one moment while others write', async () => {
    const h = await open();
    const run = await h.start({ a: {} });
    const lease = await h.claimOne('a');
    const { key } = await h.run(run);
    await h.store.read(async (tx) => {
      const first = await tx.runs.byKeys([key]);
      const done = h.engine.context.committer.tick({ settlements: [], claim: null });
      await done;
      await h.complete(lease);
      expect(await tx.runs.byKeys([key])).toEqual(first);
    });
    expect((await h.run(run)).status).toBe('SUCCESS');
  });

  // SPEC S13.1
  it('runs are listed newest first, by status, workflow and label, page by page', async () => {
    const h = await open();
    const ids = [];
    for (let n = 0; n < 4; n++)
      ids.push(await h.start({ a: {} }, { name: n % 2 === 0 ? 'even' : 'odd' }, { labels: { n: `${n}` } }));
    await h.engine.cancelRun(ids[3] ?? '', 'me');
    const list = async (filter: object) =>
      (await h.store.read((tx) => tx.runs.list({ limit: 10, ...filter }))).map((run) => run.id);
    expect(await list({})).toEqual(ids.toReversed());
    expect(await list({ workflow_name: 'odd' })).toEqual([ids[3], ids[1]]);
    expect(await list({ status: 'CANCELLED' })).toEqual([ids[3]]);
    expect(await list({ status: 'CANCELLED', workflow_name: 'odd' })).toEqual([ids[3]]);
    expect(await list({ status: 'CANCELLED', workflow_name: 'even' })).toEqual([]);
    expect(await list({ status: 'RUNNING', label: ['n', '1'] })).toEqual([ids[1]]);
    expect(await list({ workflow_name: 'even', label: ['n', '1'] })).toEqual([]);
    expect(await list({ workflow_name: 'eve' })).toEqual([]);
    expect(await list({ label: ['n', '2'] })).toEqual([ids[2]]);
    const [first] = await h.store.read((tx) => tx.runs.list({ limit: 1 }));
    for (const filter of [{}, { status: 'RUNNING' }])
      expect(await list({ ...filter, before: first?.key, limit: 2 })).toEqual([ids[2], ids[1]]);
    expect(await list({ workflow_name: 'odd', before: first?.key })).toEqual([ids[1]]);
  });

  // DESIGN hot path 3
  it.each([1, 2, 3, 48])('of %i rows every value is saved, however the rows agree', async (rows) => {
    const h = await open();
    const run = await h.start(Object.fromEntries(Array.from({ length: rows }, (_, n) => [`t${n}`, {}])));
    const keys = (await h.tasks(run)).map(({ key }) => key);
    const change = (with_: (task: TaskRow, n: number) => void) =>
      h.store.write(async (tx) => {
        const tasks = await tx.tasks.byKeys(keys);
        for (const [n, task] of tasks.entries()) with_(task, n);
        await tx.tasks.save(tasks);
        return tasks;
      });
    const rounds: ((task: TaskRow, n: number) => void)[] = [
      // The same columns: alike in all rows, then the first of them not, then the last; then others, and many combinations.
      (task) => Object.assign(task, { version: 5, losses: 1 }),
      (task, n) => Object.assign(task, { version: 6, losses: 2 + (n % 2) }),
      (task, n) => Object.assign(task, { version: 7 + (n % 2), losses: 9 }),
      (task, n) => Object.assign(task, { version: 9, losses: 4 + (n % 3), releases: 5 }),
      (task, n) => Object.assign(task, { version: 100 + n, unstarted: n % 2, losses: 8 }),
      // One row alone, and then one that is unlike all others in the first of these columns.
      (task, n) => (n === 0 ? Object.assign(task, { version: 200, losses: 20 }) : task),
      (task, n) => Object.assign(task, { version: 201, losses: n === 0 ? 21 : 22 }),
      // Numbers beside texts and nothing at all.
      (task, n) => Object.assign(task, { version: 11, progress: n % 2 === 0 ? 0.5 : null, message: 'null' }),
      (task, n) => Object.assign(task, { message: n % 2 === 0 ? null : '' }),
      (task, n) => (n % 4 === 0 ? Object.assign(task, { generation: 2 }) : task),
    ];
    for (const round of rounds) {
      const saved = await change(round);
      expect(await h.tasks(run)).toEqual(saved);
      expect(await h.store.write((tx) => tx.tasks.byKeys(keys))).toEqual(saved);
    }
  });

  // DESIGN hot path 3
  it('who waits for whom is the same to the process that linked them and to others, also after an undone link', async () => {
    const h = await open();
    const run = await h.start({
      a: {},
      b: {},
      c: { needs: ['a', 'b'] },
      d: { needs: 'a' },
      e: { needs: 'd' },
    });
    const tasks = await h.tasks(run);
    const [a = 0, b = 0, c = 0, d = 0, e = 0] = tasks.map(({ key }) => key);
    const both = async (parents: readonly number[], page: { after: number; limit: number }) => {
      const linked = await h.store.write((tx) => tx.tasks.childrenOf(parents, page));
      expect(await h.store.read((tx) => tx.tasks.childrenOf(parents, page))).toEqual(linked);
      return linked.map(({ parent, child }) => [parent, child]);
    };
    const all = { after: 0, limit: 10 };
    expect(await both([b, a], all)).toEqual([
      [a, c],
      [b, c],
      [a, d],
    ]);
    expect(await both([a, b], { after: 0, limit: 2 })).toHaveLength(2);
    expect(await both([a, b], { after: c, limit: 2 })).toEqual([[a, d]]);
    expect(await both([e], all)).toEqual([]);
    // Out of order.
    await h.store.write((tx) => tx.tasks.link([[b, e]]));
    await h.store.write((tx) => tx.tasks.link([[b, d]]));
    expect(await both([b], all)).toEqual([
      [b, c],
      [b, d],
      [b, e],
    ]);
    const undone = h.store.write(async (tx) => {
      await tx.tasks.link([[a, e]]);
      throw new TypeError('stop');
    });
    await expect(undone).rejects.toThrow('stop');
    expect(await both([a], all)).toEqual([
      [a, c],
      [a, d],
    ]);
  });

  // SPEC S14.1
  it('migrating again changes nothing', async () => {
    const h = await open();
    expect(await h.store.migrate()).toEqual({ applied: [] });
  });

  // DESIGN hot path 2
  it('the change mark moves when somebody else has committed', async () => {
    const h = await open();
    const before = await h.store.changeMark();
    expect(await h.store.changeMark()).toBe(before);
  });

  // SPEC S3.4, I6
  it('the limbo query finds nothing in any normal state', async () => {
    const h = await open();
    const run = await h.start(
      {
        busy: {},
        delayed: {},
        held: {},
        queued: {},
        child: { needs: 'busy' },
        asked: { gate: { message: '?' } },
        asking: {},
        later: { uses: 'wait', with: { for: '1h' } },
      },
      { max_parallel: 2, outputs: { x: '{{ tasks.busy.output }}' } },
    );
    const limbo = () => h.store.read((tx) => tx.tasks.limbo(10));
    expect(await limbo()).toEqual([]);
    await h.idle();
    await h.claimOne('busy');
    await h.fail(await h.claimOne('delayed'), CRASHED);
    expect(await limbo()).toEqual([]);
    await h.engine.pauseRun(run, 'me');
    expect(await limbo()).toEqual([]);
    await h.claim(5);
    await h.engine.cancelRun(run, 'me');
    expect(await limbo()).toEqual([]);
  });

  // SPEC S3.4
  it.each([
    ['a queued task that is in no queue', breakQueue],
    ['a delayed task without a timer', breakTimer],
    ['a task that waits for parents that are over', breakCount],
    ['a ready task that nobody would admit', breakReady],
  ])('the sweep finds %s, tells of it, and gets it going by moves of the table', async (_name, breakIt) => {
    const lines: string[] = [];
    const h = await open({ log: (line) => lines.push(line) });
    const run = await h.start({ a: { retry: { jitter: 0 } }, b: { needs: 'a' } });
    await breakIt(h, run);
    expect(await h.store.read((tx) => tx.tasks.limbo(10))).toHaveLength(1);
    await h.idle();
    expect(lines.filter((line) => line.includes('limbo.found'))).toHaveLength(1);
    expect(await h.store.read((tx) => tx.tasks.limbo(10))).toEqual([]);
    await expectSound(h, run);
    await h.leap(5_000);
    expect((await h.finish(run)).status).toBe('SUCCESS');
  });
});

const SQLITE = STORES.filter(({ name }) => name === 'sqlite');

describe.each(SQLITE)('backup of $name', (kind) => {
  // SPEC S14.1
  it('a copy of a live store opens and is complete', async () => {
    const { Harness } = await import('../support/harness.ts');
    const h = await Harness.on(kind);
    const run = await h.start({ a: {}, b: { needs: 'a' } });
    await h.complete(await h.claimOne('a'), 'kept');
    const path = join(h.opened.folder, 'copy.db');
    const reading = h.store.read(async (tx) => {
      await new Promise((resolve) => setImmediate(resolve));
      return tx.runs.byId(run);
    });
    await Promise.all([reading, h.store.backup(path), h.start({ c: {} })]);
    const copy = new SqliteStore({ path });
    await copy.migrate();
    const found = await copy.read(async (tx) => {
      const row = await tx.runs.byId(run);
      return { row, tasks: await tx.tasks.ofRun(row?.key ?? 0, { after: 0, limit: 10 }) };
    });
    expect(found.row?.status).toBe('RUNNING');
    expect(found.tasks.map(({ status }) => status)).toEqual(['SUCCESS', 'QUEUED']);
    await copy.close();
    await h.close();
  });
});

describe.each(SQLITE)('migrations of $name', (kind) => {
  const change = async (statement: string): Promise<string> => {
    const opened = await kind.open();
    await opened.store.close();
    const path = join(opened.folder, 'relay.db');
    const driver = openDriver(path);
    driver.exec(statement);
    driver.close();
    const store = new SqliteStore({ path });
    try {
      return await refusal(store.migrate());
    } finally {
      await store.close();
      await opened.close();
    }
  };

  // SPEC S14.1
  it('a migration that was applied with another content is refused', async () => {
    expect(await change("update schema_migrations set checksum = 'other'")).toBe('STORE_CORRUPT');
  });

  // SPEC S14.1
  it('an unknown breaking migration is refused, an unknown compatible one is not', async () => {
    const later = (isBreaking: number) =>
      `insert into schema_migrations values ('9999_later', 'x', ${isBreaking}, '')`;
    expect(await change(later(1))).toBe('STORE_TOO_NEW');
    expect(await change(later(0))).toBe('nothing was refused');
  });
});

async function breakQueue(h: Harness, run: string): Promise<void> {
  const { key, queue_key, priority, run_key } = await h.task(run, 'a');
  await h.store.write((tx) => tx.claimable.remove([{ queue_key, rank: -priority, task_key: key, run_key }]));
}

async function breakTimer(h: Harness, run: string): Promise<void> {
  await h.fail(await h.claimOne('a'), CRASHED);
  const { key, not_before } = await h.task(run, 'a');
  await h.store.write((tx) => tx.timers.remove([{ due_at: not_before ?? 0, kind: 'retry', subject: key }]));
}

async function breakCount(h: Harness, run: string): Promise<void> {
  const { key } = await h.task(run, 'b');
  await h.store.write(async (tx) => {
    const [row] = await tx.tasks.byKeys([key]);
    if (row === undefined) return;
    row.deps_remaining = 2;
    await tx.tasks.save([row]);
  });
  await h.complete(await h.claimOne('a'));
}

async function breakReady(h: Harness, run: string): Promise<void> {
  await h.engine.pauseRun(run, 'me');
  await h.claim(1);
  const { key } = await h.run(run);
  await h.store.write(async (tx) => {
    const [row] = await tx.runs.byKeys([key]);
    if (row === undefined) return;
    row.paused = 0;
    await tx.runs.save([row]);
  });
}
