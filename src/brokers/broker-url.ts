/** What brokers share about their URLs and about time: a name without a password, and an answer that may come too late. */
import { RelayError } from '../base/errors.ts';

/** The URL without its password and parameters. */
export function describeBroker(url: string): string {
  try {
    const shown = new URL(url);
    shown.password = '';
    shown.search = '';
    return shown.href;
  } catch (cause) {
    throw new RelayError('INVALID_CONFIG', 'the broker URL is not a URL', {
      hint: 'Write it as redis://host:6379 or amqp://user:password@host:5672.',
      cause,
    });
  }
}

/** Thrown when time is up before an answer came. */
class TooLate extends Error {
  override readonly name = 'TooLate';
}

/** The answer, unless `signal` ends the waiting; what comes later is ignored. */
export function before<T>(signal: AbortSignal, answer: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const end = (): void => reject(new TooLate('it did not answer in time'));
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    answer.then(resolve, reject).finally(() => signal.removeEventListener('abort', end));
  });
}

/** What an error says; a refused connection to several addresses says it inside. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return messageOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
