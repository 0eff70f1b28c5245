/** What `fetch` throws, by what went wrong underneath: the code is in a cause, or in the errors of an AggregateError. */
import { AttemptFailure } from './attempt-failure.ts';

const DEPTH_MAX = 8;

/** The failure for an error that ended an exchange before an answer was complete. */
export function networkFailure(what: string, error: unknown): AttemptFailure {
  if (error instanceof AttemptFailure) return error;
  const found = deepest(error, 0);
  const message = `${what} failed: ${found.message}`;
  if (found.message === 'bad port') return new AttemptFailure({ kind: 'bad_url' }, message, { cause: error });
  return new AttemptFailure({ kind: 'network', code: found.code }, message, { cause: error });
}

interface Root {
  readonly code: string;
  readonly message: string;
}

function deepest(error: unknown, depth: number): Root {
  const fallback = { code: codeOf(error), message: messageOf(error) };
  if (depth >= DEPTH_MAX || !(error instanceof Error)) return fallback;
  const inner = [error.cause, ...(error instanceof AggregateError ? (error.errors as unknown[]) : [])];
  const roots = inner.filter((item) => item !== undefined).map((item) => deepest(item, depth + 1));
  return roots.find(({ code }) => code !== '') ?? (fallback.code === '' ? (roots[0] ?? fallback) : fallback);
}

function codeOf(error: unknown): string {
  const isCoded = typeof error === 'object' && error !== null && 'code' in error;
  return isCoded && typeof error.code === 'string' ? error.code : '';
}

function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const code = codeOf(error);
  return text === '' ? code : text;
}
