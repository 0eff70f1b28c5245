/** Readers of the event feed beside processes that write it: no event is skipped, none is seen twice, versions only grow (SPEC S12.2). */
import { Client } from 'pg';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import type { EventRow } from '../../src/stores/rows.ts';
import { Actor } from '../support/actors.ts';
import { createDatabase } from '../support/postgres.ts';

const place = inject('postgres');
const skipped = 'reason' in place ? `, skipped: ${place.reason}` : '';
const CANCELS = 400;
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function open(): Promise<{ url: string; store: PostgresStore }> {
  const { url, drop } = await createDatabase('url' in place ? place.url : '');
  closing.push(drop);
  const store = new PostgresStore({ url });
  closing.push(() => store.close());
  await store.migrate();
  return { url, store };
}

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  closing.push(() => client.end());
  return client;
}

/** Follows the feed page by page until it is told that nothing more will come, and has seen the end. */
class Reader {
  readonly seen: EventRow[] = [];
  readonly done: Promise<void>;
  isLast = false;

  constructor(store: PostgresStore, onPage: (rows: readonly EventRow[]) => Promise<void> = async () => {}) {
    this.done = this.#follow(store, onPage);
  }

  async #follow(store: PostgresStore, onPage: (rows: readonly EventRow[]) => Promise<void>): Promise<void> {
    for (let after = '0'; ; ) {
      const { isLast } = this;
      const rows = await store.read((tx) => tx.events.page({ after, limit: 37 }));
      if (rows.length === 0 && isLast) return;
      this.seen.push(...rows);
      await onPage(rows);
      after = rows.at(-1)?.cursor ?? after;
    }
  }
}

/** A writer in another database of the cluster: holds transactions open, commits some, rolls others back. */
async function disturb(url: string, stop: AbortSignal): Promise<void> {
  const client = await connect(url);
  await client.query('create table noise (n int)');
  for (let n = 0; !stop.aborted; n++) {
    await client.query('begin');
    await client.query('insert into noise values ($1)', [n]);
    await client.query('select pg_sleep(0.02)');
    await client.query(n % 3 === 0 ? 'rollback' : 'commit');
  }
}

/** Events of one task, and those of one run itself, are numbered one after the other. */
function gaps(events: readonly EventRow[]): string[] {
  const last = new Map<string, number>();
  return events.flatMap(({ run_id, task_run_id, data, cursor }) => {
    const name = task_run_id ?? run_id ?? '';
    const { version } = JSON.parse(data) as { version: number };
    const before = last.get(name);
    last.set(name, version);
    return before === undefined || version === before + 1
      ? []
      : [`${cursor}: ${name} ${before} → ${version}`];
  });
}

describe.skipIf(skipped !== '')(`postgres: event cursors beside processes${skipped}`, () => {
  it('work, cancels, rollbacks, pruning and a writer in another database: the feed has no hole and no echo', async () => {
    const [{ url, store }, other] = [await open(), await open()];
    const pruner = new PostgresStore({ url });
    closing.push(() => pruner.close());
    const actors = await Actor.start(url, 3);
    closing.push(() => Promise.all(actors.map((actor) => actor.stop())));
    const [one, two, three] = actors as [Actor, Actor, Actor];
    const stopping = new AbortController();
    const noise = disturb(other.url, stopping.signal);
    const pruned = new Set<string>();
    // Whatever the first reader has seen to the end is removed, while others insert.
    const first = new Reader(store, async (rows) => {
      const ended = rows.filter(
        ({ type, data }) => type === 'run.status.changed' && /"to":"(SUCCESS|CANCELLED)"/.test(data),
      );
      for (const { run_id } of ended.filter((_, index) => index % 2 === 0))
        await pruner.write(async (tx) => {
          const run = run_id === null ? null : await tx.runs.byId(run_id);
          if (run === null) return;
          await tx.runs.remove([run.key]);
          pruned.add(run.id);
        });
    });
    const second = new Reader(pruner);
    const churning = [one, two].map((actor) => actor.do('churn', { width: 5 }));
    await three.do('cancelAll', { count: CANCELS });
    for (const actor of [one, two]) await actor.do('rest', {});
    await Promise.all(churning);
    await one.do('drain', { limit: 50 });
    stopping.abort();
    await noise;
    first.isLast = true;
    await first.done;
    second.isLast = true;
    await second.done;
    expect(pruned.size).toBeGreaterThan(20);
    const left = await connect(url);
    const { rows } = await left.query<{ cursor: string }>(
      "select xid::text || '.' || seq as cursor from events",
    );
    for (const { seen } of [first, second]) {
      const cursors = new Set(seen.map(({ cursor }) => cursor));
      expect(cursors.size, 'nothing is seen twice').toBe(seen.length);
      expect(rows.filter(({ cursor }) => !cursors.has(cursor))).toEqual([]);
      expect(gaps(seen)).toEqual([]);
    }
  });
});
