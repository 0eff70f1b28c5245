/** Why a server cannot listen, in words. */
import { RelayError } from '../base/errors.ts';

const OTHER_PORT = 'choose another with --port; 0 takes any free one';

/** What the operating system has told; an error of another kind comes back as it is. */
export function toListenError(error: unknown, host: string, port: number): unknown {
  const told: Readonly<Record<string, [message: string, hint: string]>> = {
    EADDRINUSE: [`port ${port} on ${host} is in use`, `end what listens there, or ${OTHER_PORT}`],
    EACCES: [`port ${port} may not be listened on`, `${OTHER_PORT}; those below 1024 need special rights`],
    EADDRNOTAVAIL: [
      `this machine has no address ${host}`,
      'name one of its own with --host; the default is 127.0.0.1',
    ],
    ENOTFOUND: [`no address is known for ${host}`, 'name an address of this machine with --host'],
  };
  const [message, hint] = told[(error as NodeJS.ErrnoException).code ?? ''] ?? [];
  return message === undefined ? error : new RelayError('USAGE', message, { hint, cause: error });
}
