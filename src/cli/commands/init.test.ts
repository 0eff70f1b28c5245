/** `relay init`: what it writes is valid, what is there already is safe, and editors understand it (SPEC S13.2, S1.6). */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as formats from 'ajv-formats';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { relay as call } from '../../../test/support/memory-io.ts';

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'relay-init-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const relay = (...argv: readonly string[]) => call(argv, { cwd });
const read = (name: string): string => readFileSync(join(cwd, name), 'utf8');
const FILES = [
  '.gitignore',
  'relay.config.yaml',
  'relay.schema.json',
  'workflows',
  'workflows/hello.yaml',
  'workflows/research-brief.yaml',
];
const WORKFLOWS = FILES.filter((name) => name.startsWith('workflows/'));
const written = (folder = ''): readonly string[] =>
  readdirSync(join(cwd, folder), { recursive: true }).map(String).sort();

// SPEC S13.2
describe('relay init', () => {
  it('writes a project into an empty folder and says what to do next', async () => {
    const { code, out, err } = await relay('init');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(written()).toEqual(FILES);
    expect(out).toContain('Next:\n  relay validate workflows/hello.yaml\n');
  });

  it('writes workflows that are valid without a warning', async () => {
    await relay('init');
    for (const name of WORKFLOWS) {
      expect(await relay('validate', name)).toMatchObject({ code: 0, err: '' });
      expect(JSON.parse((await relay('validate', name, '--json')).out)).toMatchObject({
        valid: true,
        warnings: [],
      });
    }
    expect((await relay('config')).code).toBe(0);
  });

  it('writes a modeline whose schema accepts the workflows and refuses a wrong key', async () => {
    await relay('init');
    for (const name of WORKFLOWS) {
      const [, schemaPath = ''] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(read(name)) ?? [];
      const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true });
      formats.default.default(ajv);
      const validate = ajv.compile(JSON.parse(read(join('workflows', schemaPath))));
      const workflow = parse(read(name)) as { tasks: Record<string, object> };
      expect(validate(workflow), JSON.stringify(validate.errors)).toBe(true);
      expect(validate({ ...workflow, taks: {} })).toBe(false);
      const tasks = Object.entries(workflow.tasks).map(([id, task]) => [id, { ...task, neds: [] }]);
      expect(validate({ ...workflow, tasks: Object.fromEntries(tasks) })).toBe(false);
    }
  });

  it('makes the folder that it is given', async () => {
    const { out } = await relay('init', 'a/b');
    expect(written('a/b')).toEqual(FILES);
    expect(out).toContain('relay validate a/b/workflows/hello.yaml');
  });

  it('writes beside other files, but touches none that exists', async () => {
    writeFileSync(join(cwd, 'notes.txt'), 'mine');
    mkdirSync(join(cwd, 'workflows'));
    writeFileSync(join(cwd, 'workflows/hello.yaml'), 'mine');
    const refused = await relay('init');
    expect(refused).toEqual({
      code: 2,
      out: '',
      err: 'error: these files exist already: workflows/hello.yaml\n  = Choose another folder, or pass --force to overwrite.\n',
    });
    expect(written()).toEqual(['notes.txt', 'workflows', 'workflows/hello.yaml']);
    expect((await relay('init', '--force')).code).toBe(0);
    expect(read('workflows/hello.yaml')).toContain('name: hello');
    expect(read('notes.txt')).toBe('mine');
  });

  it('adds one line to a .gitignore that is there, once', async () => {
    writeFileSync(join(cwd, '.gitignore'), 'node_modules/');
    await relay('init');
    expect(read('.gitignore')).toMatch(/^node_modules\/\n#.*\n\.relay\/\n$/);
    await relay('init', '--force');
    expect(read('.gitignore').match(/\.relay\//g)).toHaveLength(1);
  });

  it('--dry-run lists the files and writes none', async () => {
    const { code, out } = await relay('init', '--dry-run');
    expect(code).toBe(0);
    expect(out).toContain('Would write:');
    expect(written()).toEqual([]);
  });

  it('--json tells programs the same', async () => {
    const { out } = await relay('init', 'x', '--json');
    expect(JSON.parse(out)).toEqual({
      dir: join(cwd, 'x'),
      files: expect.arrayContaining(['x/workflows/hello.yaml', 'x/.gitignore']),
      dry_run: false,
    });
  });

  it('into a path that is a file is a clear error', async () => {
    writeFileSync(join(cwd, 'file'), '');
    const { code, err } = await relay('init', 'file');
    expect(code).toBe(2);
    expect(err).toMatch(/^error: .* cannot be written: /);
    expect(existsSync(join(cwd, 'file/workflows'))).toBe(false);
  });
});
