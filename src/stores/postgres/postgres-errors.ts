/** What Postgres and the network say, in the words of the error table. */
import { RelayError } from '../../base/errors.ts';

/** SQLSTATE, or the code of a system call, or an empty text. */
function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

const SYSTEM_CALLS = /^(E[A-Z]+|ERR_\w+)$/;
const LOST_WORDS =
  /connection (terminated|error)|not queryable|timeout expired|timeout exceeded|server closed|SSL/i;

/** True when the connection is gone, or good for nothing any more, and with it whatever was under way. */
export function isConnectionLost(error: unknown): boolean {
  const code = codeOf(error);
  if (error instanceof RelayError) return false;
  // Somebody has migrated the tables: statements that were prepared before have other columns now.
  if (code === '0A000') return /cached plan/.test((error as Error).message);
  if (code.startsWith('08') || ['57P01', '57P02', '57P03', '57P05', '25P03', '53300'].includes(code))
    return true;
  if (SYSTEM_CALLS.test(code)) return true;
  return code === '' && error instanceof Error && LOST_WORDS.test(error.message);
}

/** True when the server itself has said so: what it had not answered until then it has not done. */
export function isToldByServer(error: unknown): boolean {
  return /^[0-9A-Z]{5}$/.test(codeOf(error)) && !SYSTEM_CALLS.test(codeOf(error));
}

/**
 * True when the same transaction may well go through if it is done again: a deadlock, a serialization failure, or a row that
 * somebody else inserted in the same instant (a version of a workflow, an idempotency key): the repeat will find it.
 */
export function isWorthRepeating(error: unknown): boolean {
  return ['40001', '40P01', '23505'].includes(codeOf(error));
}

/** What a statement fails with that has found a run other than it was expected to be. */
export function isDivisionByZero(error: unknown): boolean {
  return codeOf(error) === '22012';
}

/** An operating error as a RelayError; anything else comes back as it is. */
export function toStoreError(error: unknown, description: string): unknown {
  if (error instanceof RelayError) return error;
  const code = codeOf(error);
  const cause = { cause: error };
  const told = error instanceof Error ? error.message : String(error);
  if (isConnectionLost(error))
    return new RelayError('STORE_UNAVAILABLE', `${description} cannot be reached: ${told}`, cause);
  switch (code) {
    case '57014':
    case '55P03':
      return new RelayError('STORE_UNAVAILABLE', `${description} took too long: ${told}`, cause);
    case '53100':
    case '53200':
    case '53400':
      return new RelayError('STORE_FULL', `${description} cannot grow: ${told}`, cause);
    case '25006':
    case '42501':
      return new RelayError('STORE_NOT_WRITABLE', `${description} may not be written: ${told}`, cause);
    case '28000':
    case '28P01':
    case '3D000':
      return new RelayError('STORE_UNAVAILABLE', `${description} cannot be opened: ${told}`, {
        ...cause,
        hint: 'Check user, password and database name in the store URL.',
      });
    case 'XX001':
    case 'XX002':
      return new RelayError('STORE_CORRUPT', `${description} is damaged: ${told}`, cause);
    default:
      return error;
  }
}
