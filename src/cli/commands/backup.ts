/** `relay backup FILE`: a consistent copy of a live embedded store (SPEC S14.1). */
import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { RelayError } from '../../base/errors.ts';
import { type BuildCommand, type CommonOptions, examples } from '../command.ts';
import { localConfig, withRelay } from '../connect.ts';
import { printJson } from '../io.ts';

export const buildBackup: BuildCommand = (command, { io }) => {
  command
    .argument('<file>', 'where the copy goes; the file must not exist')
    .addHelpText(
      'after',
      `${examples([
        ['relay backup relay-monday.db', 'while runs go on'],
        ['relay runs list --store sqlite:relay-monday.db', 'look into a copy'],
      ])}
Outputs above 256 KiB are files in the blobs folder beside the store; copy that folder too.
`,
    )
    .action(async (file: string, options: CommonOptions) => {
      const path = resolve(io.cwd, file);
      if (existsSync(path)) {
        const hint = 'choose another name, or remove the file first';
        throw new RelayError('FILE_EXISTS', `${file} exists already`, { hint });
      }
      const { data } = await localConfig(options, io);
      await withRelay(options, io, async ({ local }) => {
        await local.store.backup(path);
        const { size: bytes } = statSync(path);
        const blobs = join(resolve(io.cwd, data), 'blobs');
        const hasBlobs = existsSync(blobs);
        if (options.json === true) printJson(io, { file: path, bytes, blobs: hasBlobs ? blobs : null });
        else {
          io.out.write(
            `copied ${local.store.description} to ${file} (${bytes.toLocaleString('en')} bytes)\n`,
          );
          if (hasBlobs) io.out.write(`large outputs are files in ${blobs}: copy that folder too\n`);
        }
      });
    });
};
