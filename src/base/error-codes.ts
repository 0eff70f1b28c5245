/** Every error a user can meet, once: its HTTP status, exit code, and what to do. `docs/reference/errors.md` comes from here. */

/** What one error code means to each interface. */
export interface ErrorCodeEntry {
  readonly status: number;
  readonly exit: number;
  /** Whether the same request may succeed later without a change. */
  readonly retryable: boolean;
  readonly summary: string;
  readonly hint: string;
}

const entry = (status: number, exit: number, summary: string, hint: string): ErrorCodeEntry =>
  Object.freeze({ status, exit, retryable: false, summary, hint });

export const ERROR_CODES = Object.freeze({
  USAGE: entry(
    400,
    2,
    'The command line or request is not understood.',
    'Run the command with --help to see its arguments and examples.',
  ),
  FILE_NOT_FOUND: entry(404, 3, 'A named file does not exist.', 'Check the path and the current folder.'),
  FILE_NOT_READABLE: entry(
    400,
    2,
    'A named file cannot be read as text (a directory, a binary file, or no permission).',
    'Name a text file that this user may read.',
  ),
  FILE_TOO_LARGE: entry(
    413,
    2,
    'A file is larger than the limit.',
    'Split the file, move data out of it, or raise the limit in the config file.',
  ),
  FILE_EXISTS: entry(
    409,
    2,
    'A file that would be written exists already.',
    'Choose another folder, or pass --force to overwrite.',
  ),
  INVALID_WORKFLOW: entry(
    422,
    2,
    'A workflow definition has problems; all of them are listed.',
    'Mend the listed lines and run `relay validate` again.',
  ),
  INVALID_CONFIG: entry(
    400,
    2,
    'A setting has a wrong name or value.',
    'Run `relay config --example` to see every setting with its default.',
  ),
  INTERNAL: entry(
    500,
    70,
    'Relay met a state that it should never reach.',
    'Please report it with the command that led here; RELAY_LOG=debug shows the stack.',
  ),
} satisfies Record<string, ErrorCodeEntry>);

/** A name in the table above. */
export type ErrorCode = keyof typeof ERROR_CODES;
