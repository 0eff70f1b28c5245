/** A real PostgreSQL of the tests' own: a port and a folder that nobody else has, no syncing, stopped by its pid. */
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');

/** Where the server is, or why there is none. */
export type PostgresPlace = { readonly url: string } | { readonly reason: string };

/** A running server. */
export interface PostgresServer {
  /** Of the database `postgres`. */
  readonly url: string;
  /** `immediate` is a crash. */
  stop(mode?: 'fast' | 'immediate'): void;
  start(): void;
  /** Stops it and removes its folder. */
  remove(): void;
}

/** No syncing, because nobody pulls the plug on a test. Autovacuum's transactions would hold event readers back at moments that no test can know. */
const TEST_SETTINGS = '-c fsync=off -c full_page_writes=off -c autovacuum=off';

/** Installs what is missing and starts a server, or tells why that is not possible. */
export async function startPostgres(
  settings = TEST_SETTINGS,
): Promise<PostgresServer | { readonly reason: string }> {
  const { stdout } = spawnSync(process.execPath, ['scripts/services.mjs', 'postgres'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const found = JSON.parse(stdout || '{"reason":"scripts/services.mjs failed"}') as {
    bin?: string;
    reason?: string;
  };
  if (found.bin === undefined) return { reason: found.reason ?? 'unknown' };
  const owner = ownerOf();
  if (owner === null) return { reason: 'PostgreSQL does not run as root, and there is no user postgres' };
  const folder = mkdtempSync(join(tmpdir(), 'relay-postgres-'));
  chmodSync(folder, 0o700);
  if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid ?? owner.uid);
  const run = (program: string, ...args: readonly string[]): void => {
    // Not a pipe: the server would keep it open after pg_ctl has left.
    const result = spawnSync(join(found.bin ?? '', program), args, {
      ...owner,
      cwd: folder,
      stdio: 'ignore',
    });
    if (result.status !== 0) throw new Error(`${program} failed: ${result.error ?? logOf(folder)}`);
  };
  const db = join(folder, 'db');
  run('initdb', '-D', db, '-A', 'trust', '-U', 'postgres', '--no-sync', '-E', 'UTF8', '--locale=C');
  const port = await freePort();
  const options = `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1 -c max_connections=200 ${settings}`;
  const control = (...args: readonly string[]): void => run('pg_ctl', '-D', db, '-w', '-s', ...args);
  const server: PostgresServer = {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    start: () => control('-l', join(folder, 'log'), '-o', options, 'start'),
    stop: (mode = 'fast') => control('-m', mode, 'stop'),
    remove: () => {
      try {
        control('-m', 'immediate', 'stop');
      } catch {
        // A test may have stopped it already.
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
  server.start();
  return server;
}

/** Makes a database of its own; gives its URL and how to drop it. */
export async function createDatabase(url: string): Promise<{ url: string; drop: () => Promise<void> }> {
  const name = `t${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  await execute(url, `create database ${name}`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  return { url: own.href, drop: () => execute(url, `drop database if exists ${name} with (force)`) };
}

/** Takes everything out of a migrated database, so that it is as good as new. */
export async function emptyDatabase(url: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      "select tablename as name from pg_tables where schemaname = 'public' and tablename <> 'schema_migrations'",
    );
    await client.query(`truncate ${rows.map(({ name }) => name).join(', ')} restart identity`);
  } finally {
    await client.end();
  }
}

/** Runs one statement on a connection of its own. */
export async function execute(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

/** PostgreSQL refuses to run as root; its package brings a user. */
function ownerOf(): { uid?: number; gid?: number } | null {
  if (process.getuid?.() !== 0) return {};
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith('postgres:'));
  const [, , uid, gid] = line?.split(':') ?? [];
  return uid === undefined ? null : { uid: Number(uid), gid: Number(gid) };
}

function logOf(folder: string): string {
  try {
    return readFileSync(join(folder, 'log'), 'utf8').slice(-500);
  } catch {
    return 'it left no log';
  }
}

/** A port that nobody listens on. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
