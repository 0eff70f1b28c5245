/** Every store that the conformance suite runs on. A new store registers itself here and writes no test of its own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import { openDriver } from '../../src/stores/sqlite/driver.ts';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import type { Store } from '../../src/stores/store.ts';
import { createDatabase, emptyDatabase, execute, type PostgresPlace } from '../support/postgres.ts';

/** An empty, migrated store with a folder beside it for blobs. */
export interface OpenedStore {
  readonly store: Store;
  readonly folder: string;
  /** Gives the store up as a dead process would and opens what is left of it. */
  reopen(): Promise<Store>;
  /** The same store once more, as another process opens it. */
  another?(): Promise<Store>;
  /** Changes rows as another program would. */
  execute?(sql: string): Promise<void>;
  /** Closes it and removes all traces. */
  close(): Promise<void>;
}

/** A kind of store. */
export interface StoreKind {
  readonly name: string;
  /** Why its tests are skipped here, when they are. */
  readonly skipped?: string;
  /** `onStatement` is called before every statement of a write transaction, and with `begin` and `commit`. */
  open(options?: { onStatement?: (name: string) => void; parent?: string }): Promise<OpenedStore>;
}

const sqlite: StoreKind = {
  name: 'sqlite',
  open: async ({ onStatement, parent = tmpdir() } = {}) => {
    const folder = mkdtempSync(join(parent, 'relay-conformance-'));
    const path = join(folder, 'relay.db');
    let current = new SqliteStore({ path, ...(onStatement === undefined ? {} : { onStatement }) });
    const others: Store[] = [];
    await current.migrate();
    return {
      store: current,
      folder,
      reopen: async () => {
        await current.close();
        current = new SqliteStore({ path });
        await current.migrate();
        return current;
      },
      another: async () => {
        const store = new SqliteStore({ path });
        others.push(store);
        return store;
      },
      execute: async (sql) => {
        const driver = openDriver(path);
        driver.exec(sql);
        driver.close();
      },
      close: async () => {
        for (const store of [current, ...others]) await store.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  },
};

/** A database of its own on the server that the project has started (test/support/postgres-setup.ts). */
function postgresOf(place: PostgresPlace): StoreKind {
  if ('reason' in place)
    return { name: 'postgres', skipped: place.reason, open: () => Promise.reject(place) };
  const emptied: string[] = [];
  return {
    name: 'postgres',
    open: async ({ onStatement, parent = tmpdir() } = {}) => {
      const folder = mkdtempSync(join(parent, 'relay-conformance-'));
      // Making a database takes longer than most tests, so that one is emptied and used again.
      const url = emptied.pop() ?? (await createDatabase(place.url)).url;
      let current = new PostgresStore({ url, ...(onStatement === undefined ? {} : { onStatement }) });
      const others: Store[] = [];
      await current.migrate();
      return {
        store: current,
        folder,
        reopen: async () => {
          await current.close();
          current = new PostgresStore({ url });
          await current.migrate();
          return current;
        },
        another: async () => {
          const store = new PostgresStore({ url });
          others.push(store);
          return store;
        },
        execute: (sql) => execute(url, sql),
        close: async () => {
          for (const store of [current, ...others]) await store.close();
          await emptyDatabase(url);
          emptied.push(url);
          rmSync(folder, { recursive: true, force: true });
        },
      };
    },
  };
}

/** The registry. Which of them a run of the tests is about is said by its project (vitest.config.ts). */
export const STORES: readonly StoreKind[] =
  process.env.RELAY_TEST_STORE === 'postgres' ? [postgresOf(inject('postgres'))] : [sqlite];
