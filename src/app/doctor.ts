/** Checks of an installation and its store. They only look: nothing is created, migrated or repaired. */
import { accessSync, constants, existsSync, statfsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { RelayError } from '../base/errors.ts';
import { isProvenDead } from '../engine/presence.ts';
import { openDriver } from '../stores/sqlite/driver.ts';
import { prepareFolder } from '../stores/sqlite/file-system.ts';
import { SqliteStore } from '../stores/sqlite/sqlite-store.ts';
import { readMigrations } from '../stores/statements.ts';
import type { Tx } from '../stores/store.ts';

/** What one check found. */
export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  readonly hint?: string;
}

/** What is looked at. */
export interface DoctorOptions {
  readonly data: string;
  readonly store?: string | undefined;
  readonly cwd: string;
  readonly clock: Clock;
}

const NODE_SINCE = [20, 19] as const;
const LOOK_MAX = 1_000;
const DISK_WARN_BYTES = 1024 ** 3;
const DISK_FAIL_BYTES = 50 * 1024 ** 2;

/** Runs all checks in order; one that cannot be made is a finding, not an error. */
export async function examine(options: DoctorOptions): Promise<readonly Check[]> {
  const checks = [checkNode()];
  const url = options.store ?? `sqlite:${join(resolve(options.cwd, options.data), 'relay.db')}`;
  if (!url.startsWith('sqlite:'))
    return [...checks, finding('store', 'warn', 'only the embedded store can be examined by this version')];
  const path = resolve(options.cwd, url.slice('sqlite:'.length));
  checks.push(await guarded('sqlite', checkBinding), ...checkFolder(dirname(path)));
  if (!existsSync(path)) {
    return [...checks, finding('store', 'ok', `there is none at ${path} yet; the first run makes it`)];
  }
  checks.push(...(await checkFile(path)));
  if (checks.some(({ status }) => status === 'fail')) return checks;
  return [...checks, ...(await checkContent(path, options.clock.now()))];
}

function finding(name: string, status: Check['status'], detail: string, hint?: string): Check {
  return { name, status, detail, ...(hint === undefined ? {} : { hint }) };
}

/** What a check throws is what it found. */
async function guarded(name: string, check: () => Check | Promise<Check>): Promise<Check> {
  try {
    return await check();
  } catch (error) {
    const hint = error instanceof RelayError ? error.hint : undefined;
    return finding(name, 'fail', error instanceof Error ? error.message : String(error), hint);
  }
}

function checkNode(): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isFit = major > NODE_SINCE[0] || (major === NODE_SINCE[0] && minor >= NODE_SINCE[1]);
  const needed = `Relay needs ${NODE_SINCE.join('.')} or later`;
  return finding('node', isFit ? 'ok' : 'fail', process.versions.node, isFit ? undefined : needed);
}

function checkBinding(): Check {
  const driver = openDriver(':memory:');
  const [row] = driver.prepare('select sqlite_version() as version').all();
  driver.close();
  return finding('sqlite', 'ok', `${driver.name}, SQLite ${row?.version}`);
}

function checkFolder(folder: string): Check[] {
  let existing = folder;
  while (!existsSync(existing) && dirname(existing) !== existing) existing = dirname(existing);
  return [checkLocal(existing), checkWritable(existing), checkSpace(existing)];
}

function checkLocal(folder: string): Check {
  try {
    prepareFolder(join(folder, 'relay.db'));
    return finding('folder', 'ok', `${folder} is on a local file system`);
  } catch (error) {
    const { message, hint } = error as RelayError;
    return finding('folder', 'fail', message, hint);
  }
}

function checkWritable(folder: string): Check {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return finding('permission', 'ok', `${folder} can be written to`);
  } catch {
    return finding(
      'permission',
      'fail',
      `${folder} cannot be written to`,
      'choose another folder with --data',
    );
  }
}

function checkSpace(folder: string): Check {
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  const status = free < DISK_FAIL_BYTES ? 'fail' : free < DISK_WARN_BYTES ? 'warn' : 'ok';
  const detail = `${(free / 1024 ** 3).toFixed(1)} GiB free`;
  return finding('disk', status, detail, status === 'ok' ? undefined : 'free space, or prune old runs');
}

/** The file itself: readable, whole, with a schema that this build knows. */
async function checkFile(path: string): Promise<Check[]> {
  const opened = await guarded('store', () => {
    openDriver(path, { readOnly: true }).close();
    return finding('store', 'ok', path);
  });
  if (opened.status === 'fail') return [opened];
  const ask = (sql: string): readonly Record<string, unknown>[] => {
    const driver = openDriver(path, { readOnly: true });
    try {
      return driver.prepare(sql).all();
    } finally {
      driver.close();
    }
  };
  const integrity = await guarded('integrity', () => {
    const [row] = ask('pragma quick_check(1)');
    const verdict = String(Object.values(row ?? {})[0]);
    const isWhole = verdict === 'ok';
    return finding('integrity', isWhole ? 'ok' : 'fail', verdict, isWhole ? undefined : 'restore a backup');
  });
  if (integrity.status === 'fail') return [opened, integrity];
  return [opened, integrity, await guarded('schema', () => checkSchema(ask))];
}

function checkSchema(ask: (sql: string) => readonly Record<string, unknown>[]): Check {
  const known = readMigrations('sqlite');
  const applied = ask('select name, checksum from schema_migrations order by name');
  const names = new Set(applied.map(({ name }) => String(name)));
  const changed = applied.filter(({ name, checksum }) =>
    known.some((own) => own.name === name && own.checksum !== checksum),
  );
  if (changed.length > 0)
    return finding(
      'schema',
      'fail',
      `${changed[0]?.name} was applied with another content`,
      'use the build that made the store',
    );
  const missing = known.filter(({ name }) => !names.has(name));
  const version = String(applied.at(-1)?.name ?? 'none');
  if (missing.length === 0) return finding('schema', 'ok', version);
  return finding(
    'schema',
    'warn',
    `${version}; ${missing.length} migrations to apply`,
    'the next command applies them, or `relay migrate`',
  );
}

/** The rows: nothing forgotten, nobody gone with work in hand. */
async function checkContent(path: string, now: number): Promise<Check[]> {
  const store = new SqliteStore({ path });
  const look = (name: string, check: (tx: Tx) => Promise<Check>): Promise<Check> =>
    guarded(name, () => store.read(check));
  const count = (found: readonly unknown[]): string =>
    found.length < LOOK_MAX ? String(found.length) : `${LOOK_MAX} or more`;
  try {
    return [
      await look('limbo', async (tx) => {
        const rows = await tx.tasks.limbo(LOOK_MAX);
        if (rows.length === 0) return finding('limbo', 'ok', 'no task is stuck');
        return finding(
          'limbo',
          'fail',
          `${count(rows)} tasks that nothing would ever move`,
          `please report it; the first is task run ${rows[0]?.id}`,
        );
      }),
      await look('leases', async (tx) => {
        const expired = await tx.tasks.expired(now, LOOK_MAX);
        const dead = (await tx.workers.list()).filter(isProvenDead);
        if (expired.length + dead.length === 0) return finding('leases', 'ok', 'none is stale');
        return finding(
          'leases',
          'warn',
          `${count(expired)} ran out, ${dead.length} dead process${dead.length === 1 ? '' : 'es'} left behind`,
          '`relay resume` takes their work over',
        );
      }),
      await look('backlog', async (tx) => {
        const [undecided, finishing] = [
          await tx.tasks.undecided(LOOK_MAX),
          await tx.runs.finishing(LOOK_MAX),
        ];
        const detail = `${count(undecided)} decisions and ${count(finishing)} outputs to work out`;
        const isIdle = undecided.length + finishing.length === 0;
        return finding(
          'backlog',
          isIdle ? 'ok' : 'warn',
          detail,
          isIdle ? undefined : '`relay resume` does it',
        );
      }),
      await look('limits', async (tx) => {
        const names = (await tx.limits.all()).map(({ name }) => name);
        const waiting = (await tx.held.counts()).reduce((sum, { n }) => sum + n, 0);
        return finding('limits', 'ok', `${names.join(', ') || 'none'}; ${waiting} tasks wait for room`);
      }),
      await look('events', async (tx) => {
        const total = await tx.events.estimate();
        return finding('events', 'ok', `about ${total.toLocaleString('en')}`);
      }),
    ];
  } finally {
    await store.close();
  }
}
