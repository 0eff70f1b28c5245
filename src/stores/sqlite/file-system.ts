/** Where a store may live: a local folder that this user can write to. */
import { existsSync, mkdirSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { RelayError } from '../../base/errors.ts';

/** Magic numbers of file systems whose locks SQLite cannot rely on. */
const NETWORK_FILE_SYSTEMS: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'CIFS',
  4266872130: 'SMB2',
  198183888: 'Lustre',
  1196443219: 'GPFS',
  12805120: 'Ceph',
  1397113167: 'AFS',
  428016422: 'BeeGFS',
  16914839: '9P',
};

/** Makes the folder of a store and refuses a network file system. `typeOf` is for tests. */
export function prepareFolder(
  path: string,
  typeOf = (folder: string): number => statfsSync(folder).type,
): void {
  const folder = dirname(path);
  try {
    makeFolder(folder);
  } catch (cause) {
    throw new RelayError('STORE_NOT_WRITABLE', `${folder} cannot be made: ${(cause as Error).message}`, {
      cause,
    });
  }
  const kind = NETWORK_FILE_SYSTEMS[typeOf(folder)];
  if (kind !== undefined) {
    throw new RelayError('STORE_ON_NETWORK', `${folder} is on a network file system (${kind})`);
  }
}

/** Level by level: Node's own recursive form never ends in a place where nothing can be made, such as below /proc. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process may have been faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
