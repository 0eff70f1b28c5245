/** A file whose time of change says that a loop is alive; whoever watches a process looks at it. */
import { closeSync, openSync, utimesSync } from 'node:fs';
import type { Clock } from '../base/clock.ts';
import { RelayError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';

const TOUCH_MS = 1_000;

/** Makes the file and returns how to touch it; more than once in a second costs nothing. */
export function livenessFile(path: string, { clock, logger }: { clock: Clock; logger: Logger }): () => void {
  try {
    closeSync(openSync(path, 'a'));
  } catch (cause) {
    throw new RelayError('USAGE', `--liveness-file ${path} cannot be written: ${(cause as Error).message}`, {
      cause,
    });
  }
  let nextAt = 0;
  return () => {
    if (clock.monotonic() < nextAt) return;
    nextAt = clock.monotonic() + TOUCH_MS;
    const seconds = clock.now() / 1_000;
    try {
      utimesSync(path, seconds, seconds);
    } catch (error) {
      // Whoever watches will notice; work goes on.
      logger.error('outbox.not_touched', { path, error });
    }
  };
}
