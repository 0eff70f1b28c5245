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

const entry = (
  status: number,
  exit: number,
  summary: string,
  hint: string,
  retryable = false,
): ErrorCodeEntry => Object.freeze({ status, exit, retryable, summary, hint });

export const ERROR_CODES = Object.freeze({
  USAGE: entry(
    400,
    2,
    'The command line or request is not understood.',
    'Run the command with --help to see its arguments and examples.',
  ),
  FILE_NOT_FOUND: entry(404, 2, 'A named file does not exist.', 'Check the path and the current folder.'),
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
  FILE_NOT_WRITABLE: entry(
    400,
    2,
    'A file or folder cannot be written.',
    'Choose a folder that this user may write to.',
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
  NOT_FOUND: entry(
    404,
    3,
    'There is no run, task, workflow or artifact of this name.',
    'List what exists, for example with `relay runs list`.',
  ),
  INVALID_INPUT: entry(
    422,
    2,
    'The inputs of a run do not fit what the workflow declares.',
    'Compare with `inputs` in the workflow file.',
  ),
  INVALID_ANSWER: entry(
    422,
    2,
    'An answer does not fit the form of the question.',
    '`relay approvals list` shows the form.',
  ),
  IDEMPOTENCY_CONFLICT: entry(
    409,
    2,
    'The same key or lease was used before with other content.',
    'Repeat the first request as it was, or use a new key.',
  ),
  STALE_LEASE: entry(
    409,
    1,
    'The lease has ended: the task was cancelled, or given to another worker.',
    'Drop the result and claim again; usage was counted.',
  ),
  ALREADY_DECIDED: entry(
    409,
    2,
    'Somebody has decided this question before.',
    'Look at the task to see who and how.',
  ),
  NOT_WAITING: entry(
    409,
    2,
    'The task does not wait for a person.',
    '`relay approvals list` shows what does.',
  ),
  RUN_ACTIVE: entry(409, 2, 'The run is still going on.', 'Wait for it, or cancel it first.'),
  RUN_TERMINAL: entry(409, 2, 'The run has ended.', 'Retry, rerun or clone it.'),
  NOT_RETRYABLE: entry(409, 2, 'There is nothing to retry.', 'Rerun from a task, or clone the run.'),
  CURSOR_EXPIRED: entry(
    410,
    2,
    'The events after this cursor have been pruned.',
    'Start again without a cursor.',
  ),
  PAYLOAD_TOO_LARGE: entry(
    413,
    2,
    'An output, file or body is larger than the limit.',
    'Write large data to a file or bucket of your own and pass its place.',
  ),
  NOT_SUPPORTED: entry(
    422,
    2,
    'The workflow uses something that this version checks and draws, but does not run yet.',
    'See CHANGELOG.md for what runs today.',
  ),
  UNKNOWN_LIMIT: entry(
    422,
    2,
    'A task names a limit that is not configured.',
    'Add it under `limits` in the config file of a process that serves this store, or correct the name.',
  ),
  UNAUTHENTICATED: entry(
    401,
    6,
    'The server does not know the caller: no token, a wrong one, or a revoked one.',
    'Pass --token or RELAY_TOKEN; a local server keeps its own in `.relay/token`.',
  ),
  FORBIDDEN: entry(
    403,
    6,
    'The caller may not do this: its token lacks the scope, or the request came from another site.',
    'Use a token with the scope that the message names.',
  ),
  UNSUPPORTED_MEDIA_TYPE: entry(
    415,
    2,
    'A request that changes something must be JSON, or bytes where the route takes them.',
    'Send the header `content-type: application/json`.',
  ),
  RATE_LIMITED: entry(429, 6, 'Too many requests from one address.', 'Wait a little and try again.', true),
  SERVER_UNAVAILABLE: entry(
    503,
    6,
    'The server cannot be reached, or is stopping.',
    'Check the URL and that `relay serve` runs there.',
    true,
  ),
  BROKER_UNAVAILABLE: entry(
    503,
    6,
    'The broker cannot be reached, or does not answer.',
    'Check the URL and that it runs. Nothing is lost meanwhile: workers claim from the store.',
    true,
  ),
  STORE_UNAVAILABLE: entry(
    503,
    6,
    'The store cannot be reached or is locked.',
    'Check that it runs and that no other process holds it.',
    true,
  ),
  STORE_FULL: entry(
    507,
    6,
    'The store cannot grow: disk full or size limit.',
    'Free space, or move the data folder with --data.',
    true,
  ),
  STORE_NOT_WRITABLE: entry(
    503,
    6,
    'The store cannot be opened for writing.',
    'Check the permissions of the data folder, or choose another with --data.',
  ),
  STORE_CORRUPT: entry(
    500,
    6,
    'The store is damaged or is not one of Relay.',
    'Restore a backup, or choose another folder with --data.',
  ),
  STORE_ON_NETWORK: entry(
    503,
    6,
    'The embedded store would lie on a network file system, where its locks cannot be trusted.',
    'Choose a local folder with --data, or use Postgres with --store postgres://….',
  ),
  STORE_TOO_NEW: entry(
    503,
    6,
    'A later version of Relay has changed the store.',
    'Upgrade this installation.',
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
