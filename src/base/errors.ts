/** The one error class. Messages say what happened, what was expected, and what to do; bugs are `invariant`. */
import { ERROR_CODES, type ErrorCode } from './error-codes.ts';

/** The wire and `--json` shape of every error. */
export interface ErrorShape {
  readonly error: {
    readonly code: ErrorCode;
    readonly message: string;
    readonly hint: string;
    readonly details?: unknown;
  };
}

/** An error with a code from the table. The hint defaults to the table's; a nearer one replaces it. */
export class RelayError extends Error {
  override readonly name = 'RelayError';
  readonly code: ErrorCode;
  readonly hint: string;
  readonly details: unknown;

  constructor(
    code: ErrorCode,
    message: string,
    options: { hint?: string | undefined; details?: unknown; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint ?? ERROR_CODES[code].hint;
    this.details = options.details;
  }

  toShape(): ErrorShape {
    const { code, message, hint, details } = this;
    return { error: { code, message, hint, ...(details === undefined ? {} : { details }) } };
  }
}

/** True when the store itself cannot be used now; trying part by part would not help. */
export function isStoreError(error: unknown): boolean {
  return error instanceof RelayError && error.code.startsWith('STORE_');
}

/** Any thrown value as a RelayError; what is not one already is a bug and becomes INTERNAL. */
export function toRelayError(thrown: unknown): RelayError {
  if (thrown instanceof RelayError) return thrown;
  return new RelayError('INTERNAL', thrown instanceof Error ? thrown.message : String(thrown), {
    cause: thrown,
  });
}
