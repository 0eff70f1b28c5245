/** Stores by URL scheme. Adding one is a folder and a line here. */
import { resolve } from 'node:path';
import { RelayError } from '../base/errors.ts';
import type { Store } from './store.ts';

type OpenStore = (url: string, cwd: string) => Promise<Store>;

const openPostgres: OpenStore = async (url) => {
  const { PostgresStore } = await import('./postgres/postgres-store.ts');
  return new PostgresStore({ url });
};

const STORES: Readonly<Record<string, OpenStore>> = {
  sqlite: async (url, cwd) => {
    const { SqliteStore } = await import('./sqlite/sqlite-store.ts');
    return new SqliteStore({ path: resolve(cwd, url.slice('sqlite:'.length)) });
  },
  postgres: openPostgres,
  postgresql: openPostgres,
};

/** Opens the store that a URL names; the schema is not touched. */
export async function openStore(url: string, cwd: string): Promise<Store> {
  const open = STORES[url.split(':', 1)[0] ?? ''];
  if (open !== undefined) return open(url, cwd);
  const hint = `this version knows ${Object.keys(STORES)
    .map((scheme) => `${scheme}:…`)
    .join(', ')}`;
  throw new RelayError('INVALID_CONFIG', `the store ${url.split('@').at(-1)} cannot be opened`, { hint });
}
