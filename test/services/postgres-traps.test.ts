/** The two traps of a queue in Postgres, by name: a planner that has seen the queues empty, and dead rows that nobody may remove. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import type { LogChunk, Settlement } from '../../src/worker/work-source.ts';
import { Harness } from '../support/harness.ts';
import { createDatabase } from '../support/postgres.ts';

const place = inject('postgres');
const skipped = 'reason' in place ? `, skipped: ${place.reason}` : '';
const closing: (() => unknown)[] = [];
let url = '';
let admin: Client;

beforeEach(async () => {
  const database = await createDatabase('url' in place ? place.url : '');
  url = database.url;
  closing.push(database.drop);
  admin = await connect();
});
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  closing.push(() => client.end());
  return client;
}

/** Uses an engine on the database and closes it again: its sessions report what they have read when they end. */
async function withEngine(use: (h: Harness) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'relay-traps-'));
  const store = new PostgresStore({ url });
  await store.migrate();
  const h = new Harness({ store, folder, reopen: async () => store, close: async () => {} });
  await h.connect();
  await use(h);
  await store.close();
  rmSync(folder, { recursive: true, force: true });
  for (let others = 1; others > 0; ) {
    const { rows } = await admin.query<{ n: string }>(
      "select count(*) as n from pg_stat_activity where datname = current_database() and application_name = 'relay'",
    );
    others = Number(rows[0]?.n);
  }
}

/** What has been read since the last reset: rows met by walking tables, and entries met in indexes, dead or alive, by table. */
async function reads(): Promise<{ walked: Record<string, number>; entries: Record<string, number> }> {
  const { rows } = await admin.query<{ name: string; walked: string; entries: string }>(
    `select t.relname as name, t.seq_tup_read as walked,
       coalesce((select sum(i.idx_tup_read) from pg_stat_user_indexes i where i.relid = t.relid), 0) as entries
     from pg_stat_user_tables t`,
  );
  // A handful of rows, read whole on purpose.
  const big = rows.filter(({ name }) => !['workers', 'schema_migrations', 'queues'].includes(name));
  const some = (key: 'walked' | 'entries'): Record<string, number> =>
    Object.fromEntries(big.flatMap((row) => (row[key] === '0' ? [] : [[row.name, Number(row[key])]])));
  return { walked: some('walked'), entries: some('entries') };
}

/** Starts to count anew; what this session has read itself is counted first. */
async function forgetReads(): Promise<void> {
  await admin.query('select pg_stat_force_next_flush()');
  await admin.query('select pg_stat_reset()');
}

/** Fills a table with finished rows that differ from its first row only in their keys. */
async function multiply(table: string, rows: number): Promise<void> {
  const { rows: columns } = await admin.query<{ name: string }>(
    "select column_name as name from information_schema.columns where table_name = $1 and column_name not in ('key', 'id')",
    [table],
  );
  const names = columns.map(({ name }) => name).join(', ');
  await admin.query(
    `insert into ${table} (id, ${names}) select 'copy-' || n, ${names} from (select * from ${table} limit 1) t, generate_series(1, ${rows}) n`,
  );
}

/** Works like a worker: what it has finished goes out with the next claim. */
async function workOff(h: Harness, total: number, limit = 50): Promise<void> {
  let settlements: Settlement[] = [];
  for (let done = 0; done < total; ) {
    const { results, leases } = await h.source.next({ limit, settlements, signal: AbortSignal.abort() });
    done += results.filter(({ ok }) => ok).length;
    settlements = leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }));
    if (settlements.length > 0) await h.source.extend(settlements.map(({ lease_id }) => ({ lease_id })));
  }
}

const logged = async (h: Harness): Promise<LogChunk[]> =>
  (await h.claim(1)).map(({ lease_id }) => ({ lease_id, stream: 'log', text: 'said' }));

/** What is not in the hot path and must still not look at the rows of others: logs, notes, pages, cancel, sweep, prune. */
async function useEverything(h: Harness): Promise<void> {
  const run = await h.start(DIAMOND);
  const { key } = await h.run(run);
  await h.source.log(await logged(h));
  await h.engine.appendContext(run, { data: 1, by: 'me', task_run_id: (await h.task(run, 'a')).id });
  await h.store.read(async (tx) => {
    await tx.logs.pageOfRun(key, { after: 0, limit: 100 });
    await tx.logs.page((1 + key) * 4, { after: 0, limit: 100 });
    await tx.tasks.byTaskIds(key, ['a', 'd']);
    await tx.contexts.ofRun(key);
  });
  expect(await h.tasks(run)).toHaveLength(4);
  await h.engine.runOnce();
  await h.engine.cancelRun(run, 'me');
  await h.store.write((tx) => tx.runs.remove([key]));
}

const DIAMOND = { a: {}, b: { needs: 'a' }, c: { needs: 'a' }, d: { needs: ['b', 'c'] } };
const chain = (length: number): Record<string, object> =>
  Object.fromEntries(
    Array.from({ length }, (_, n) => [`t${n}`, n === 0 ? {} : { needs: `t${n - 1}` }] as const),
  );

describe.skipIf(skipped !== '')(`postgres: traps${skipped}`, () => {
  /** Rows of others in every table that grows: finished tasks, their logs and blobs, and tasks of theirs that are READY. */
  const fill = async (rows: number): Promise<void> => {
    await multiply('runs', rows);
    await multiply('task_runs', rows);
    for (const sql of [
      'insert into edges select -n, -n - 1',
      "insert into attempt_logs (task_key, attempt, at, stream, text) select 1, 1, n, 'log', 'said'",
      "insert into artifacts (task_key, attempt, ordinal, kind, name, content_type, bytes, blob_ref, created_at) select -n, 1, 0, 'output', 'output', 'x', 1, 'blob' || n, 1",
      "insert into task_marks select 'ready', -n, -1, 0",
      "insert into context_snapshots (id, run_key, data, created_at) select 'note' || n, 1, '{}', 1",
    ])
      await admin.query(`${sql} from generate_series(1, $1::int) n`, [rows]);
  };

  const ROWS = 20_000;
  const DIAMONDS = 50;
  /** A day's work: small runs with READY tasks, and everything else once. */
  const work = async (h: Harness, diamonds: number): Promise<void> => {
    for (let n = 0; n < diamonds; n++) await h.start(DIAMOND, { max_parallel: 1 });
    await workOff(h, diamonds * 4);
    await useEverything(h);
  };
  /** A few entries for each task, and never once around a table. */
  const expectFewReads = async (): Promise<void> => {
    const { walked, entries } = await reads();
    expect(walked).toEqual({});
    for (const [table, count] of Object.entries(entries))
      expect(count / (DIAMONDS * 4 + 4), table).toBeLessThan(40);
  };

  it.each([
    ['while the queues were empty', ['fill', 'analyze']],
    ['while everything was empty', ['analyze', 'fill']],
  ])('statistics taken %s: no statement walks a table, or an index, from end to end', async (_, steps) => {
    await withEngine((h) => work(h, 1));
    for (const step of steps) await (step === 'fill' ? fill(ROWS) : admin.query('analyze'));
    await forgetReads();
    await withEngine((h) => work(h, DIAMONDS));
    await expectFewReads();
  });

  it('plans made while everything was empty, and kept: no statement walks a table, or an index, from end to end', async () => {
    await withEngine(async (h) => {
      await admin.query('analyze');
      await h.engine.runOnce();
      await work(h, 1);
      await fill(ROWS);
      await forgetReads();
      await work(h, DIAMONDS);
    });
    await expectFewReads();
  });

  it('the dead left edge under a held snapshot: a claim from an empty queue does not walk over it', async () => {
    const [dead, hops] = [5_000, 200];
    await withEngine(async () => {});
    const report = await connect();
    await report.query('begin isolation level repeatable read');
    await report.query('select count(*) from runs');
    await withEngine(async (h) => {
      await h.start(Object.fromEntries(Array.from({ length: dead }, (_, n) => [`t${n}`, {}])));
      await workOff(h, dead, 500);
      // What nobody may remove while the snapshot is held.
      await admin.query('vacuum claimable');
    });
    await forgetReads();
    await withEngine(async (h) => {
      await h.start(chain(hops));
      await workOff(h, hops);
    });
    const { entries } = await reads();
    // The first claim looks into the queue, and finds out that nothing else is there; without that, each of them would.
    expect(entries.claimable).toBeGreaterThanOrEqual(dead);
    expect(entries.claimable).toBeLessThan(dead * 3);
    await report.query('commit');
  });
});
