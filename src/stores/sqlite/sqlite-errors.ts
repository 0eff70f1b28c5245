/** What SQLite says, in the words of the error table. */
import { RelayError } from '../../base/errors.ts';

/** Primary result codes, as `node:sqlite` reports them. */
const NAME_OF: Readonly<Record<number, string>> = {
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  26: 'SQLITE_NOTADB',
};

/** The primary code of an error from either binding, or null when it is not SQLite's. */
function sqliteCode(error: unknown): string | null {
  const { code, errcode, message } = error as { code?: unknown; errcode?: unknown; message?: unknown };
  if (typeof errcode === 'number') return NAME_OF[errcode & 0xff] ?? 'SQLITE_ERROR';
  if (typeof code === 'string' && code.startsWith('SQLITE_')) return code.split('_').slice(0, 2).join('_');
  // libsql reports a file that it cannot open at all without a code of SQLite.
  return typeof message === 'string' && /unable to open|not a database/i.test(message)
    ? /not a database/i.test(message)
      ? 'SQLITE_NOTADB'
      : 'SQLITE_CANTOPEN'
    : null;
}

/** True when another process holds the lock and waiting helps. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === 'SQLITE_BUSY' || code === 'SQLITE_LOCKED';
}

/** An operating error of SQLite as a RelayError; anything else comes back as it is. */
export function toStoreError(error: unknown, path: string): unknown {
  const code = sqliteCode(error);
  const cause = { cause: error };
  switch (code) {
    case 'SQLITE_FULL':
    case 'SQLITE_IOERR':
      return new RelayError(
        'STORE_FULL',
        `${path} cannot be written: the disk is full or a size limit is reached`,
        cause,
      );
    case 'SQLITE_READONLY':
    case 'SQLITE_CANTOPEN':
      return new RelayError('STORE_NOT_WRITABLE', `${path} cannot be opened for writing`, cause);
    case 'SQLITE_CORRUPT':
    case 'SQLITE_NOTADB':
      return new RelayError('STORE_CORRUPT', `${path} is damaged, or not a Relay store`, cause);
    case 'SQLITE_BUSY':
    case 'SQLITE_LOCKED':
      return new RelayError('STORE_UNAVAILABLE', `${path} is locked by another process`, cause);
    default:
      return error;
  }
}
