/** The built program in a shell's hands: bad input, pipes, folders, and nothing on stdout but what was asked for. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtRelay, ROOT } from '../support/built-cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-scenario-'));
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const GOOD = 'name: good\ntasks:\n  a: { uses: transform, with: { value: 1 } }\n';

beforeAll(() => {
  const write = (name: string, content: string | Buffer): void => writeFileSync(join(folder, name), content);
  chmodSync(folder, 0o755);
  mkdirSync(join(folder, 'folder'));
  write('good.yaml', GOOD);
  write('empty.yaml', '');
  write('not-yaml.txt', 'tasks: [1, {a: b\n\tc: "\n');
  write('huge.yaml', `name: a\ndescription: ${'x'.repeat(20 * 1024 * 1024)}\n`);
  write('binary.yaml', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0x02, 0x01, 0x00, 0xff, 0xfe]));
  write('locked.yaml', GOOD);
  chmodSync(join(folder, 'locked.yaml'), 0);
  write('deep.yaml', '['.repeat(100_000));
  write(
    'nested.yaml',
    `name: a\ntasks:\n${Array.from({ length: 200 }, (_, i) => `${' '.repeat(i + 1)}k:\n`).join('')}`,
  );
  write(
    'bomb.yaml',
    `a: &a [${'x,'.repeat(50)}]\n${'bcdefgh'.replace(/./g, (id) => `${id}: &${id} [${`*${String.fromCharCode(id.charCodeAt(0) - 1)},`.repeat(20)}]\n`)}`,
  );
  write('twice.yaml', `${GOOD}name: again\n`);
  write(
    'many.yaml',
    `name: a\ntasks:\n${Array.from({ length: 20_000 }, (_, i) => `  t${i}: { uses: transform, with: { value: 1 } }\n`).join('')}`,
  );
  write('keys.yaml', `${GOOD}nmae: x\n`);
  write('types.yaml', 'name: 5\ntasks: [a]\nmax_parallel: {}\n');
  write('tabs.yaml', 'name: a\ntasks:\n\ta: {}\n');
  write('crlf.yaml', GOOD.replaceAll('\n', '\r\n'));
  write('bom.yaml', `\ufeff${GOOD}`);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

// SPEC S1.4, S13.2
describe('relay validate, given bad input,', () => {
  for (const [name, code] of [
    ['empty.yaml', 'empty_file'],
    ['not-yaml.txt', 'syntax'],
    ['huge.yaml', 'FILE_TOO_LARGE'],
    ['binary.yaml', 'FILE_NOT_READABLE'],
    ['none.yaml', 'FILE_NOT_FOUND'],
    ['folder', 'FILE_NOT_READABLE'],
    ['deep.yaml', 'nested_too_deep'],
    ['nested.yaml', 'nested_too_deep'],
    ['bomb.yaml', 'too_many_aliases'],
    ['twice.yaml', 'duplicate_key'],
    ['many.yaml', 'too_many_tasks'],
    ['keys.yaml', 'unknown_key'],
    ['types.yaml', 'wrong_type'],
    ['tabs.yaml', 'syntax'],
  ] as const) {
    it(`says ${code} about ${name}, exits with 2 and prints no stack`, () => {
      const text = builtRelay(['validate', name], { cwd: folder });
      expect(text.code).toBe(2);
      expect(text.out).toBe('');
      expect(text.err).toMatch(/^error/);
      expect(text.err).not.toMatch(/\n\s+at |node:internal|\.js:\d/);
      const json = builtRelay(['validate', name, '--json'], { cwd: folder });
      expect({ code: json.code, err: json.err }).toEqual({ code: 2, err: '' });
      const { error, errors = [error] } = JSON.parse(json.out) as {
        error: { code: string };
        errors?: { code: string }[];
      };
      expect(errors.map((problem) => problem.code)).toContain(code);
    });
  }

  it.skipIf(!isRoot)(
    'explains a file that the user may not read (tried as another user; skipped unless root)',
    () => {
      const { code, err } = builtRelay(['validate', 'locked.yaml'], { cwd: folder, uid: NOBODY });
      expect({ code, err: err.split('\n')[0] }).toEqual({
        code: 2,
        err: 'error: locked.yaml cannot be read: permission denied',
      });
    },
  );

  it('takes Windows line ends and a byte order mark as they come', () => {
    for (const name of ['crlf.yaml', 'bom.yaml']) {
      expect(builtRelay(['validate', name], { cwd: folder })).toMatchObject({ code: 0, err: '' });
    }
  });
});

// SPEC S13.2
describe('relay in a shell', () => {
  it('reads a pipe', () => {
    expect(builtRelay(['validate', '-'], { cwd: folder, input: GOOD }).out).toMatch(/^✓ stdin is valid/);
    const endless = spawnSync(
      'sh',
      ['-c', `yes 'name: a' | "${process.execPath}" "${join(ROOT, 'dist/cli/main.js')}" validate -`],
      {
        encoding: 'utf8',
        timeout: 60_000,
      },
    );
    expect(endless.status).toBe(2);
    expect(endless.stderr).toMatch(/^error: stdin has more than the limit of 8\.0 MiB\n/);
  });

  it('ends quietly when its reader goes away', () => {
    const command = `"${process.execPath}" "${join(ROOT, 'dist/cli/main.js')}" schema | head -c 10`;
    const { stdout, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
    expect({ stdout: stdout.length, stderr }).toEqual({ stdout: 10, stderr: '' });
  });

  it('prints whole JSON into a pipe, however long', () => {
    const { code, out } = builtRelay(['graph', 'wide.yaml', '--json'], {
      cwd: makeWide(),
    });
    expect(code).toBe(0);
    expect((JSON.parse(out) as { nodes: unknown[] }).nodes).toHaveLength(5_000);
  });

  it('paints nothing into a pipe, unless it is asked to', () => {
    const plain = builtRelay(['validate', 'keys.yaml'], { cwd: folder });
    expect(plain.err).not.toContain('\u001b');
    const painted = builtRelay(['validate', 'keys.yaml'], { cwd: folder, env: { FORCE_COLOR: '1' } });
    expect(painted.err).toContain('\u001b');
  });

  it('starts a project that is valid, in two commands', () => {
    const cwd = join(folder, 'project');
    mkdirSync(cwd);
    expect(builtRelay(['init'], { cwd }).code).toBe(0);
    expect(builtRelay(['validate', 'workflows/hello.yaml'], { cwd })).toMatchObject({ code: 0, err: '' });
    expect(builtRelay(['graph', 'workflows/research-brief.yaml'], { cwd }).out).toContain('draft');
  });
});

function makeWide(): string {
  const tasks = Array.from({ length: 5_000 }, (_, i) => `  t${i}: { uses: transform, with: { value: 1 } }\n`);
  writeFileSync(join(folder, 'wide.yaml'), `name: wide\ntasks:\n${tasks.join('')}`);
  return folder;
}
