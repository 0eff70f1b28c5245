/** A store that cannot be used says so in words a user can act on (SPEC S14.1, S14.7). */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RelayError } from '../../src/base/errors.ts';
import { prepareFolder } from '../../src/stores/sqlite/file-system.ts';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';

const PROGRAM = join(import.meta.dirname, '../support/store-process.ts');
const NFS = 0x6969;

/** Whether this user may mount small file systems; without that, two tests cannot make their trouble. */
const canMount = tryMount();

describe('a store in trouble', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'relay-trouble-'));
  });
  afterEach(() => {
    if (canMount) unmount(folder);
    rmSync(folder, { recursive: true, force: true });
  });

  it('a folder on a network file system is refused with a hint', () => {
    const error = thrown(() => prepareFolder(join(folder, 'relay.db'), () => NFS));
    expect(error).toMatchObject({ code: 'STORE_ON_NETWORK' });
    expect(error.message).toContain('NFS');
    expect(error.hint).toContain('--data');
  });

  it('a file that is no store is refused as damaged', async () => {
    const path = join(folder, 'relay.db');
    writeFileSync(path, 'this is not a database, but it is long enough to be looked at'.repeat(100));
    expect(await migrated(path)).toMatchObject({ code: 'STORE_CORRUPT' });
  });

  it('a store whose pages are damaged says so', async () => {
    const path = join(folder, 'relay.db');
    const report = runProgram(path, ['5']);
    expect(report.error).toBeNull();
    execFileSync('dd', ['if=/dev/urandom', `of=${path}`, 'bs=4096', 'seek=1', 'count=40', 'conv=notrunc'], {
      stdio: 'ignore',
    });
    expect(runProgram(path, ['1']).error).toMatchObject({ code: 'STORE_CORRUPT' });
  });

  it('a folder that is a file cannot be made', async () => {
    writeFileSync(join(folder, 'file'), '');
    expect(await migrated(join(folder, 'file', 'relay.db'))).toMatchObject({ code: 'STORE_NOT_WRITABLE' });
  });

  it('a path that is a folder cannot be opened', async () => {
    mkdirSync(join(folder, 'relay.db'));
    expect(await migrated(join(folder, 'relay.db'))).toMatchObject({ code: 'STORE_NOT_WRITABLE' });
  });

  it.skipIf(!canMount)(
    'a read-only file system says that the store cannot be written (needs the right to mount)',
    async () => {
      const path = join(folder, 'relay.db');
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder]);
      const report = runProgram(path, ['1']);
      expect(report.error).toBeNull();
      execFileSync('mount', ['-o', 'remount,ro', folder]);
      expect(await migrated(path)).toMatchObject({ code: 'STORE_NOT_WRITABLE' });
      expect(await migrated(join(folder, 'new', 'relay.db'))).toMatchObject({ code: 'STORE_NOT_WRITABLE' });
    },
  );

  it.skipIf(!canMount)(
    'a full disk is told as such, and what was recorded before is still there (needs the right to mount)',
    async () => {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]);
      const path = join(folder, 'relay.db');
      const report = runProgram(path, ['200', '4000']);
      expect(report.error).toMatchObject({ code: 'STORE_FULL' });
      expect(report.error?.message).toContain(path);
      execFileSync('mount', ['-o', 'remount,size=64m', folder]);
      const store = new SqliteStore({ path });
      await store.migrate();
      const runs = await store.read((tx) => tx.runs.list({ limit: 1_000 }));
      expect(runs.length).toBeGreaterThan(0);
      await store.close();
    },
  );

  it('a limit on the size of files is told like a full disk', () => {
    const path = join(folder, 'relay.db');
    const report = runProgram(path, ['200', '4000'], 512);
    expect(report.error).toMatchObject({ code: 'STORE_FULL' });
  });
});

interface Report {
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Works on a store in a process of its own; `blocks` bounds its files (512 bytes each in dash, 1024 in bash). */
function runProgram(path: string, args: readonly string[], blocks?: number): Report {
  const limit = blocks === undefined ? '' : `ulimit -f ${blocks}; `;
  const command = `${limit}exec "$0" --import tsx "$@"`;
  const out = execFileSync('bash', ['-c', command, process.execPath, PROGRAM, path, ...args], {
    encoding: 'utf8',
  });
  return JSON.parse(out) as Report;
}

async function migrated(path: string): Promise<RelayError> {
  try {
    const store = new SqliteStore({ path });
    try {
      await store.migrate();
      await store.write((tx) => tx.queues.ensure('x', '{}'));
    } finally {
      await store.close();
    }
  } catch (error) {
    if (error instanceof RelayError) return error;
    throw error;
  }
  return expect.fail('nothing was refused');
}

function thrown(action: () => void): RelayError {
  try {
    action();
  } catch (error) {
    if (error instanceof RelayError) return error;
    throw error;
  }
  return expect.fail('nothing was refused');
}

function tryMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'relay-mount-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder], { stdio: 'ignore' });
    unmount(folder);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function unmount(folder: string): void {
  try {
    // Lazily: the driver lets go of a closed file only when its statements are collected.
    execFileSync('umount', ['-l', folder], { stdio: 'ignore' });
  } catch {
    // It was not mounted.
  }
}
