/** What only the Postgres store has: its migrations, its cursor, its lock order, its answer to text that it cannot hold. */
import { Client } from 'pg';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import { openStore } from '../../src/stores/registry.ts';
import { STORES } from '../conformance/stores.ts';
import { refusal } from '../conformance/suite.ts';
import { Harness } from '../support/harness.ts';
import { createDatabase, execute } from '../support/postgres.ts';

const place = inject('postgres');
const skipped = 'reason' in place ? `, skipped: ${place.reason}` : '';
const closing: (() => unknown)[] = [];
let url = '';

beforeEach(async () => {
  const database = await createDatabase('url' in place ? place.url : '');
  url = database.url;
  closing.push(database.drop);
});
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function open(): Promise<PostgresStore> {
  const store = new PostgresStore({ url });
  closing.push(() => store.close());
  await store.migrate();
  return store;
}

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  closing.push(() => client.end());
  return client;
}

const event = (run_key: number, type: string) => ({ run_key, task_key: null, type, at: 1, data: '{}' });

describe.skipIf(skipped !== '')(`postgres: the schema${skipped}`, () => {
  // SPEC S14.1
  it('several processes migrate at once, and one of them does it', async () => {
    const stores = Array.from({ length: 5 }, () => new PostgresStore({ url }));
    closing.push(() => Promise.all(stores.map((store) => store.close())));
    const applied = await Promise.all(stores.map((store) => store.migrate()));
    expect(applied.filter((result) => result.applied.length > 0)).toHaveLength(1);
  });

  // SPEC S14.1
  it('a migration that was applied with another content is refused', async () => {
    const store = await open();
    await execute(url, "update schema_migrations set checksum = 'other'");
    expect(await refusal(store.migrate())).toBe('STORE_CORRUPT');
  });

  // SPEC S14.1
  it('an unknown breaking migration is refused, an unknown compatible one is not', async () => {
    const store = await open();
    await execute(url, "insert into schema_migrations values ('9998_later', 'x', false)");
    expect(await refusal(store.migrate())).toBe('nothing was refused');
    await execute(url, "insert into schema_migrations values ('9999_later', 'x', true)");
    expect(await refusal(store.migrate())).toBe('STORE_TOO_NEW');
  });

  it('a copy is the business of pg_dump', async () => {
    const store = await open();
    expect(await refusal(store.backup())).toBe('USAGE');
  });

  it('a URL opens it, and its password is not shown', async () => {
    const secret = new URL(url);
    secret.password = 'hunter2';
    const store = await openStore(secret.href.replace('postgres:', 'postgresql:'), '/');
    closing.push(() => store.close());
    expect(store.description).not.toContain('hunter2');
    expect((await store.migrate()).applied.length).toBeGreaterThan(0);
  });

  it('a server that is not there is STORE_UNAVAILABLE', async () => {
    const nowhere = new URL(url);
    nowhere.port = '1';
    const store = new PostgresStore({ url: nowhere.href });
    closing.push(() => store.close());
    expect(await refusal(store.migrate())).toBe('STORE_UNAVAILABLE');
  });
});

describe.skipIf(skipped !== '')(`postgres: the event cursor${skipped}`, () => {
  // SPEC S12.2, DESIGN "Data model"
  it('an event that is numbered first and committed last is not passed over', async () => {
    const [first, second] = [await open(), await open()];
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let isWritten = (): void => {};
    const written = new Promise<void>((resolve) => {
      isWritten = resolve;
    });
    const slow = first.write(async (tx) => {
      await tx.events.append([event(1, 'slow')]);
      // A read sends what waits: the event has its number and its transaction now.
      await tx.workflows.list();
      isWritten();
      await held;
    });
    await written;
    await second.write((tx) => tx.events.append([event(2, 'quick')]));
    const early = await second.read((tx) => tx.events.page({ limit: 10 }));
    expect(early.map(({ type }) => type)).toEqual([]);
    expect(await second.read((tx) => tx.events.newest())).toBe('0');
    // Of its own run, a reader sees at once what is committed.
    expect(await second.read((tx) => tx.events.page({ run_key: 2, limit: 10 }))).toHaveLength(1);
    release();
    await slow;
    const late = await second.read((tx) => tx.events.page({ limit: 10 }));
    expect(late.map(({ type }) => type)).toEqual(['slow', 'quick']);
  });

  // SPEC S12.2
  it('a reader among many writers sees every event once, whatever is rolled back', async () => {
    const stores = await Promise.all(Array.from({ length: 4 }, open));
    const reader = await open();
    const seen: string[] = [];
    let after: string | undefined;
    let isDone = false;
    const follow = async (): Promise<void> => {
      for (let last = false; !last; ) {
        last = isDone;
        const rows = await reader.read((tx) => tx.events.page({ limit: 7, ...(after && { after }) }));
        seen.push(...rows.map(({ data }) => data));
        after = rows.at(-1)?.cursor ?? after;
        if (rows.length > 0) last = false;
      }
    };
    const following = follow();
    const expected: string[] = [];
    await Promise.all(
      stores.map(async (store, writer) => {
        for (let n = 0; n < 100; n++) {
          const data = JSON.stringify({ writer, n });
          const written = store.write(async (tx) => {
            await tx.events.append([{ ...event(writer, 'x'), data }]);
            if (n % 3 === 0) await tx.workflows.list();
            if (n % 10 === 9) throw new TypeError('rolled back');
          });
          if (n % 10 === 9) await expect(written).rejects.toThrow('rolled back');
          else {
            await written;
            expected.push(data);
          }
        }
      }),
    );
    isDone = true;
    await following;
    expect(seen.length).toBe(expected.length);
    expect(new Set(seen)).toEqual(new Set(expected));
    for (let writer = 0; writer < 4; writer++) {
      const own = seen.map((text) => JSON.parse(text) as { writer: number; n: number });
      const numbers = own.filter((each) => each.writer === writer).map(({ n }) => n);
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    }
  });

  // SPEC S12.2
  it('a cursor whose events were pruned is expired, one that has missed nothing is not', async () => {
    const store = await open();
    for (const run_key of [1, 2, 3]) await store.write((tx) => tx.events.append([event(run_key, 'x')]));
    const [one, two, three] = await store.read((tx) => tx.events.page({ limit: 3 }));
    await store.write((tx) => tx.runs.remove([1, 2]));
    const isExpired = (cursor = ''): Promise<boolean> => store.read((tx) => tx.events.isExpired(cursor));
    expect([
      await isExpired(one?.cursor),
      await isExpired(two?.cursor),
      await isExpired(three?.cursor),
    ]).toEqual([true, false, false]);
    expect(await refusal(isExpired('12'))).toBe('USAGE');
  });
});

describe.skipIf(skipped !== '')(`postgres: locks${skipped}`, () => {
  const harness = async (): Promise<Harness> => {
    const [kind] = STORES;
    if (kind === undefined) throw new TypeError('there is a store');
    const h = await Harness.on(kind);
    closing.push(() => h.close());
    return h;
  };

  // docs/decisions/0006
  it('a claim passes over a run that somebody holds, and takes from the others', async () => {
    const h = await harness();
    const held = await h.start({ a: {}, b: {} });
    const free = await h.start({ c: {} });
    const client = new Client({ connectionString: h.store.description });
    await client.connect();
    await client.query('begin');
    await client.query('select 1 from runs where id = $1 for no key update', [held]);
    expect((await h.claim(5)).map(({ task_id }) => task_id)).toEqual(['c']);
    await client.query('rollback');
    await client.end();
    expect((await h.claim(5)).map(({ task_id }) => task_id)).toEqual(['a', 'b']);
    expect((await h.run(free)).n_leased).toBe(1);
  });

  // docs/decisions/0006
  it('transactions that need runs in opposite orders do not deadlock', async () => {
    const h = await harness();
    const keys: number[] = [];
    for (let n = 0; n < 4; n++) keys.push((await h.run(await h.start({ a: {} }))).key);
    const other = new PostgresStore({ url: h.store.description });
    closing.push(() => other.close());
    const bump = (store: typeof h.store, order: readonly number[]): Promise<void> =>
      store.write(async (tx) => {
        for (const key of order) {
          const [run] = await tx.runs.byKeys([key]);
          if (run === undefined) throw new TypeError('the run is there');
          run.version += 1;
          await tx.runs.save([run]);
        }
      });
    const rounds = Array.from({ length: 200 });
    await Promise.all([
      (async () => {
        for (const _ of rounds) await bump(h.store, keys);
      })(),
      (async () => {
        for (const _ of rounds) await bump(other, keys.toReversed());
      })(),
    ]);
    const versions = await h.store.read((tx) => tx.runs.byKeys(keys));
    expect(new Set(versions.map(({ version }) => version - 402))).toEqual(new Set([0]));
    expect(await deadlocks(h.store.description)).toBe(0);
  });
});

describe.skipIf(skipped !== '')(`postgres: text${skipped}`, () => {
  // SPEC S14.5
  it('text that Postgres cannot hold is stored with a replacement, and harms nobody else', async () => {
    const store = await open();
    const row = (text: string) => ({ task_key: 1, attempt: 1, at: 1, stream: 'log', text });
    await store.write((tx) =>
      tx.logs.append([row('a\0b'), row('c\ud800d'), row('"q" \\ {x}, null'), row('')]),
    );
    const texts = await store.read((tx) => tx.logs.page(1, { after: 0, limit: 10 }));
    expect(texts.map(({ text }) => text)).toEqual(['a\ufffdb', 'c\ufffdd', '"q" \\ {x}, null', '']);
  });

  // reference: the dead left edge
  it('queue tables are vacuumed by whoever removes many rows from them', async () => {
    const store = await open();
    const rows = Array.from({ length: 6_000 }, (_, n) => ({ due_at: n, kind: 'retry', subject: n }) as const);
    await store.write((tx) => tx.timers.add(rows));
    await store.write((tx) => tx.timers.remove(rows));
    await store.close();
    const client = await connect();
    // What a vacuum has seen to be free of dead rows is marked so.
    const { rows: found } = await client.query<{ pages: number }>(
      "select relallvisible as pages from pg_class where relname = 'timers'",
    );
    expect(Number(found[0]?.pages)).toBeGreaterThan(0);
  });

  // SPEC S14.1
  it('a process whose tables are migrated beneath it goes on with new connections', async () => {
    const [kind] = STORES;
    if (kind === undefined) throw new TypeError('there is a store');
    const h = await Harness.on(kind);
    closing.push(() => h.close());
    const run = await h.start({ a: {}, b: { needs: 'a' } });
    await h.task(run, 'a');
    await h.opened.execute?.('alter table task_runs alter column status type varchar');
    await h.opened.execute?.('alter table runs alter column status type varchar');
    expect(await refusal(h.task(run, 'a'))).toBe('STORE_UNAVAILABLE');
    expect(await h.task(run, 'a')).toMatchObject({ status: 'QUEUED' });
    await h.complete(await h.claimOne('a'));
    await h.complete(await h.claimOne('b'));
    expect(await h.run(run)).toMatchObject({ status: 'SUCCESS' });
    await h.opened.execute?.('alter table task_runs alter column status type task_status');
    await h.opened.execute?.('alter table runs alter column status type run_status');
  });

  it('takes no state that is none, and no table that every step writes has a check of its own', async () => {
    await open();
    const client = await connect();
    for (const [type, value] of [
      ['run_status', 'LEASED'],
      ['task_status', 'DONE'],
    ])
      await expect(client.query(`select '${value}'::${type}`)).rejects.toThrow(/violates check constraint/);
    const { rows: typed } = await client.query<{ of: string }>(
      "select table_name || ' ' || domain_name as of from information_schema.columns where column_name = 'status' and domain_name is not null order by 1",
    );
    expect(typed.map((row) => row.of)).toEqual(['runs run_status', 'task_runs task_status']);
    // Every statement that writes a table reads and plans its checks again (docs/decisions/0005).
    const { rows: checked } = await client.query<{ of: string }>(
      "select conrelid::regclass::text as of from pg_constraint where contype = 'c' and conrelid <> 0 order by 1",
    );
    expect(checked.map((row) => row.of)).toEqual(expect.not.arrayContaining(['runs', 'task_runs', 'events']));
  });

  it('task_runs has no index on anything that changes', async () => {
    await open();
    const client = await connect();
    const { rows } = await client.query<{ indexdef: string }>(
      "select indexdef from pg_indexes where tablename = 'task_runs' order by 1",
    );
    // Key, id, run, and whose item it is: one on a column that changes would cost every change of a status (docs/decisions/0005).
    const columns = rows.map(({ indexdef }) => /\((.*?)\)/.exec(indexdef)?.[1]);
    expect(columns.toSorted()).toEqual(['id', 'key', 'map_key, map_index', 'run_key, key']);
  });
});

async function deadlocks(database: string): Promise<number> {
  const client = new Client({ connectionString: database });
  await client.connect();
  const { rows } = await client.query<{ deadlocks: string }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  );
  await client.end();
  return Number(rows[0]?.deadlocks);
}
