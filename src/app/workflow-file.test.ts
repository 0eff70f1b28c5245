/** Reading files: every way it can go wrong has its own words. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readTextFile } from './workflow-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-file-'));
const path = (name: string): string => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

writeFileSync(path('text'), 'name: a\n');
writeFileSync(path('bom'), '\ufeffname: a\n');
writeFileSync(path('binary'), Buffer.from([0x89, 0x50, 0x4e, 0x47, 0xff, 0xfe]));
writeFileSync(path('nul'), 'name: a\0b');
writeFileSync(path('utf16'), Buffer.from('name: a', 'utf16le'));
writeFileSync(path('large'), 'x'.repeat(2_000));
writeFileSync(path('locked'), 'name: a');
chmodSync(path('locked'), 0);
mkdirSync(path('folder'));
symlinkSync(path('loop'), path('loop'));

const isRoot = process.getuid?.() === 0;

// SPEC S1.4, S14.5
describe('a text file', () => {
  it('is read as UTF-8, without its byte order mark', () => {
    expect(readTextFile(path('text'), 1_000)).toBe('name: a\n');
    expect(readTextFile(path('bom'), 1_000)).toBe('name: a\n');
  });

  for (const [name, code, message] of [
    ['missing', 'FILE_NOT_FOUND', 'there is no file it'],
    ['folder', 'FILE_NOT_READABLE', 'it is a folder'],
    ['text/below', 'FILE_NOT_READABLE', 'it cannot be read: a part of the path is not a folder'],
    ['loop', 'FILE_NOT_READABLE', 'it cannot be read: its symbolic links lead in a circle'],
    ['binary', 'FILE_NOT_READABLE', 'it is not a text file'],
    ['nul', 'FILE_NOT_READABLE', 'it is not a text file'],
    ['utf16', 'FILE_NOT_READABLE', 'it is not a text file'],
    ['large', 'FILE_TOO_LARGE', 'it has 2000 bytes; the limit is 1000 bytes'],
  ] as const) {
    it(`that is ${name} is refused: ${message}`, () => {
      expect(() => readTextFile(path(name), 1_000, 'it')).toThrow(expect.objectContaining({ code, message }));
    });
  }

  it.skipIf(isRoot)('that this user may not read is refused (skipped for root, who may read all)', () => {
    expect(() => readTextFile(path('locked'), 1_000, 'it')).toThrow(
      expect.objectContaining({ code: 'FILE_NOT_READABLE', message: 'it cannot be read: permission denied' }),
    );
  });

  it('without an end is read up to the limit', () => {
    expect(() => readTextFile('/dev/zero', 1_000_000)).toThrow(
      expect.objectContaining({
        code: 'FILE_TOO_LARGE',
        message: '/dev/zero has more than the limit of 1.0 MiB',
      }),
    );
  });
});
