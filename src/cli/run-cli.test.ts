/** The command line as people and programs meet it: words, exit codes, JSON (SPEC S13.2). */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { relay as call, type Surroundings } from '../../test/support/memory-io.ts';
import { COMMANDS } from './commands/registry.ts';

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'relay-cli-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const relay = (argv: readonly string[], around: Omit<Surroundings, 'cwd'> = {}) =>
  call(argv, { cwd, ...around });
const file = (name: string, text: string): void => writeFileSync(join(cwd, name), text);

const GOOD = `name: good
tasks:
  a: { uses: transform, with: { value: 1 } }
  b: { uses: transform, with: { value: "{{ tasks.a.output }}" } }
  c: { uses: transform, with: { value: "{{ tasks.a.output }}" } }
  d: { needs: [b, c], uses: transform, with: { value: 2 } }
`;
const BAD = 'name: bad\ntasks:\n  a:\n    uses: transfrm\n';

// SPEC S13.2
describe('relay', () => {
  it('without arguments, with help and with --help lists every command with examples', async () => {
    for (const argv of [[], ['help'], ['--help'], ['-h']]) {
      const { code, out, err } = await relay(argv);
      expect({ code, err }).toEqual({ code: 0, err: '' });
      for (const { name, summary } of COMMANDS)
        expect(out).toMatch(new RegExp(`^  ${name} +${summary}$`, 'm'));
      expect(out).toContain('Examples:');
      expect(out).toContain('Exit codes:');
    }
  });

  for (const { name } of COMMANDS) {
    it(`${name} --help has a usage line, its options and examples`, async () => {
      const { code, out, err } = await relay([name, '--help']);
      expect({ code, err }).toEqual({ code: 0, err: '' });
      expect(out).toMatch(new RegExp(`^Usage: relay ${name} `));
      expect(out).toContain('--json');
      expect(out).toContain('--config <file>');
      expect(out).toMatch(/^Examples:$/m);
      expect(await relay(['help', name])).toEqual({ code, out, err });
    });
  }

  it('--version prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    expect((await relay(['--version'])).out).toBe(`${version}\n`);
    expect(JSON.parse((await relay(['--version', '--json'])).out)).toEqual({ version });
  });

  for (const [argv, message, hint] of [
    [['validat'], 'there is no command `validat`', 'did you mean `validate`?'],
    [['frobnicate'], 'there is no command `frobnicate`', '`relay --help` lists the commands'],
    [['help', 'grap'], 'there is no command `grap`', 'did you mean `graph`?'],
    [
      ['--data', 'x'],
      'there is no command `--data`',
      'the command comes first: relay COMMAND [ARGUMENTS] [OPTIONS]',
    ],
    [['validate'], "missing required argument 'file'", '`relay help validate` shows how it is used'],
    [
      ['validate', 'a', 'b'],
      "too many arguments for 'validate'. Expected 1 argument but got 2.",
      '`relay help validate` shows how it is used',
    ],
    [['validate', 'a', '--jsn'], "unknown option '--jsn'", 'did you mean `--json`?'],
    [
      ['validate', 'a', '--config'],
      "option '--config <file>' argument missing",
      '`relay help validate` shows how it is used',
    ],
    [
      ['graph', 'a', '-f', 'png'],
      "option '-f, --format <format>' argument 'png' is invalid. Allowed choices are ascii, mermaid, dot, json.",
      '`relay help graph` shows how it is used',
    ],
  ] as const) {
    it(`${argv.join(' ')} is a usage error: ${message}`, async () => {
      expect(await relay(argv)).toEqual({ code: 2, out: '', err: `error: ${message}\n  = ${hint}\n` });
      const [first, ...rest] = argv;
      const { code, out, err } = await relay([first, '--json', ...rest]);
      expect({ code, err }).toEqual({ code: 2, err: '' });
      expect(JSON.parse(out)).toEqual({ error: { code: 'USAGE', message, hint } });
    });
  }

  it('--json gives JSON also for help', async () => {
    for (const argv of [
      ['--help', '--json'],
      ['help', 'graph', '--json'],
      ['graph', '--help', '--json'],
      ['--json'],
    ]) {
      const { out } = await relay(argv);
      expect(JSON.parse(out)).toEqual({ help: expect.stringContaining('Usage: relay') });
    }
  });
});

// SPEC S13.2, S1.4
describe('relay validate', () => {
  it('says in one line that a file is valid', async () => {
    file('good.yaml', GOOD);
    expect(await relay(['validate', 'good.yaml'])).toEqual({
      code: 0,
      out: '✓ good.yaml is valid: 4 tasks, 4 dependencies, 3 phases\n',
      err: '',
    });
  });

  it('--json gives counts and phases', async () => {
    file('good.yaml', GOOD);
    const { code, out, err } = await relay(['validate', 'good.yaml', '--json']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(JSON.parse(out)).toEqual({
      valid: true,
      errors: [],
      warnings: [],
      tasks: 4,
      edges: 4,
      phases: [['a'], ['b', 'c'], ['d']],
    });
  });

  it('shows a mistake with its line, a caret and a remedy, on stderr', async () => {
    file('bad.yaml', BAD);
    expect(await relay(['validate', 'bad.yaml'])).toEqual({
      code: 2,
      out: '',
      err: [
        'error[undeclared_handler]: there is no handler `transfrm`',
        ' --> bad.yaml:4:11',
        '  |',
        '4 |     uses: transfrm',
        '  |           ^',
        '  = did you mean `transform`?',
        '',
        'bad.yaml: 1 error',
        '',
      ].join('\n'),
    });
  });

  it('--json gives the same mistakes to programs, and exit code 2', async () => {
    file('bad.yaml', BAD);
    const { code, out, err } = await relay(['validate', 'bad.yaml', '--json']);
    expect({ code, err }).toEqual({ code: 2, err: '' });
    expect(JSON.parse(out)).toEqual({
      valid: false,
      errors: [
        {
          code: 'undeclared_handler',
          message: 'there is no handler `transfrm`',
          hint: 'did you mean `transform`?',
          path: 'tasks.a.uses',
          line: 4,
          column: 11,
        },
      ],
      warnings: [],
      tasks: 0,
      edges: 0,
      phases: [],
    });
  });

  it('--json says how many problems it does not list', async () => {
    file(
      'many.yaml',
      `name: a\ntasks:\n${Array.from({ length: 130 }, (_, i) => `  t${i}: { uses: no${i} }\n`).join('')}`,
    );
    const { out } = await relay(['validate', 'many.yaml', '--json']);
    expect(JSON.parse(out)).toMatchObject({ errors: { length: 100 }, dropped: 30 });
    expect((await relay(['validate', 'many.yaml'])).err).toMatch(
      /… and 30 more; mend these first\n\nmany\.yaml: 130 errors\n$/,
    );
  });

  it('shows warnings and still succeeds', async () => {
    file(
      'warn.yaml',
      'name: a\ninputs: { x: {} }\ntasks:\n  a: { uses: shell, with: { run: "echo {{ inputs.x }}" } }\n',
    );
    const { code, out, err } = await relay(['validate', 'warn.yaml']);
    expect(code).toBe(0);
    expect(out).toBe('✓ warn.yaml is valid: 1 task, 0 dependencies, 1 phase, 1 warning\n');
    expect(err).toContain('warning[unquoted_shell]: `inputs.x` is put into script text unquoted');
  });

  it('reads stdin as `-`', async () => {
    expect((await relay(['validate', '-'], { stdin: GOOD })).out).toMatch(/^✓ stdin is valid/);
    expect((await relay(['validate', '-'], { stdin: BAD })).err).toContain(' --> stdin:4:11\n');
    expect((await relay(['validate', '-', '--json'], { stdin: 'x'.repeat(9_000_000) })).out).toContain(
      'FILE_TOO_LARGE',
    );
  });

  it('keeps to the limits of the config file', async () => {
    file('good.yaml', GOOD);
    file('relay.config.yaml', 'definition_limits: { tasks_max: 3 }\n');
    expect((await relay(['validate', 'good.yaml'])).err).toContain(
      'the workflow has 4 tasks; the limit is 3',
    );
    file('relay.config.yaml', 'definition_limits: { file_bytes_max: 30 }\n');
    expect((await relay(['validate', 'good.yaml'])).err).toMatch(
      /^error: good\.yaml has \d+ bytes; the limit is 30 bytes\n/,
    );
  });

  it('warns of a config file that does not exist, and goes on', async () => {
    file('good.yaml', GOOD);
    const { code, err } = await relay(['validate', 'good.yaml', '--config', 'no.yaml']);
    expect(code).toBe(0);
    expect(err).toMatch(/^warning: the config file .*no\.yaml does not exist; defaults are used\n$/);
  });

  it('paints only for a terminal that has not declined it', async () => {
    file('bad.yaml', BAD);
    const shown = async (around: Omit<Surroundings, 'cwd'>): Promise<string> =>
      (await relay(['validate', 'bad.yaml'], around)).err;
    const plain = await shown({});
    const painted = await shown({ isTerminal: true });
    expect(painted).not.toBe(plain);
    expect(stripVTControlCharacters(painted)).toBe(plain);
    expect(await shown({ isTerminal: true, env: { NO_COLOR: '1' } })).toBe(plain);
    expect(await shown({ isTerminal: true, env: { TERM: 'dumb' } })).toBe(plain);
    expect(await shown({ env: { FORCE_COLOR: '1' } })).toBe(painted);
  });

  it('shows a long line around the caret, wide characters and tabs included, and lets no file steer the terminal', async () => {
    file(
      'wide.yaml',
      'name: a\ntasks:\n  a: { uses: transform, with: { value: "漢字 👩 é\u0301 {{ nope }}" } }\n',
    );
    expect((await relay(['validate', 'wide.yaml'])).err).toContain(
      '3 |   a: { uses: transform, with: { value: "漢字 👩 é\u0301 {{ nope }}" } }\n  |                                                      ^\n',
    );
    file(
      'long.yaml',
      `name: a\ntasks:\n  a: { uses: transform, with: { value: "${'x'.repeat(300)}{{ nope }}${'y'.repeat(300)}" } }\n`,
    );
    expect((await relay(['validate', 'long.yaml'])).err).toContain(
      `3 | …${'x'.repeat(47)}{{ nope }}${'y'.repeat(43)}…\n  | ${' '.repeat(51)}^\n`,
    );
    file('steer.yaml', 'name: a\ntasks:\n  a: { uses: "\u001b[2Jtransform\\e[2J" }\n');
    expect((await relay(['validate', 'steer.yaml'])).err).not.toContain('\u001b');
  });
});

// SPEC S13.2
describe('a file that cannot be read', () => {
  for (const [argument, code, message] of [
    ['none.yaml', 'FILE_NOT_FOUND', 'there is no file none.yaml'],
    ['.', 'FILE_NOT_READABLE', '. is a folder'],
    ['image.png', 'FILE_NOT_READABLE', 'image.png is not a text file'],
    ['huge.yaml', 'FILE_TOO_LARGE', 'huge.yaml has 20.0 MiB; the limit is 8.0 MiB'],
  ] as const) {
    it(`is an error for every command: ${message}`, async () => {
      writeFileSync(
        join(cwd, 'image.png'),
        Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0xff]),
      );
      file('huge.yaml', 'x'.repeat(20 * 1024 * 1024));
      for (const command of ['validate', 'graph']) {
        const text = await relay([command, argument]);
        expect(text).toMatchObject({
          code: 2,
          out: '',
          err: expect.stringContaining(`error: ${message}\n  = `),
        });
        const json = await relay([command, argument, '--json']);
        expect({ code: json.code, err: json.err }).toEqual({ code: 2, err: '' });
        expect(JSON.parse(json.out)).toMatchObject({ error: { code, message } });
      }
    });
  }
});

// SPEC S13.2
describe('relay graph', () => {
  it('draws phases and what each task waits for', async () => {
    file('good.yaml', GOOD);
    const { code, out } = await relay(['graph', 'good.yaml']);
    expect(code).toBe(0);
    expect(out).toMatchInlineSnapshot(`
      "good

        1 ● a  transform
          │
        2 ┬ b  transform ◀─ a
          ┴ c  transform ◀─ a
          │
        3 ● d  transform ◀─ b, c
      "
    `);
  });

  it('draws Mermaid and Graphviz', async () => {
    file('good.yaml', GOOD.replace('name: good', 'name: "good-1"'));
    expect((await relay(['graph', 'good.yaml', '-f', 'mermaid'])).out).toMatchInlineSnapshot(`
      "flowchart TD
        t0["a<br/><small>transform</small>"]
        t1["b<br/><small>transform</small>"]
        t2["c<br/><small>transform</small>"]
        t3["d<br/><small>transform</small>"]
        t0 --> t1
        t0 --> t2
        t1 --> t3
        t2 --> t3
      "
    `);
    expect((await relay(['graph', 'good.yaml', '--format', 'dot'])).out).toMatchInlineSnapshot(`
      "digraph "good-1" {
        node [shape=box, fontname="sans-serif"];
        "a" [label="a\\ntransform"];
        "b" [label="b\\ntransform"];
        "c" [label="c\\ntransform"];
        "d" [label="d\\ntransform"];
        "a" -> "b";
        "a" -> "c";
        "b" -> "d";
        "c" -> "d";
      }
      "
    `);
  });

  it('marks people, loops, conditions and what runs in any case', async () => {
    file(
      'marks.yaml',
      `name: marks
tasks:
  ask: { uses: approval, with: { message: "Go <on>?" } }
  many: { for_each: [1, 2], needs: ask, uses: transform, with: { value: "{{ item }}" } }
  maybe: { if: "1 > 0", gate: { message: sure? }, needs: many, uses: transform, with: { value: 1 } }
  finally: { when: done, needs: maybe, uses: transform, with: { value: 1 } }
`,
    );
    const { out } = await relay(['graph', 'marks.yaml']);
    expect(out).toContain('transform · for each');
    expect(out).toContain('transform · gate · if');
    expect(out).toContain('transform · finally');
    const mermaid = (await relay(['graph', 'marks.yaml', '-f', 'mermaid'])).out;
    expect(mermaid).toContain('{{"ask');
    expect(mermaid).toContain('[["many');
  });

  it('gives nodes, edges and phases as JSON', async () => {
    file('good.yaml', GOOD);
    const { out } = await relay(['graph', 'good.yaml', '--json']);
    expect(JSON.parse(out)).toEqual({
      name: 'good',
      nodes: [
        { id: 'a', uses: 'transform', gate: false, for_each: false, phase: 0 },
        { id: 'b', uses: 'transform', gate: false, for_each: false, phase: 1 },
        { id: 'c', uses: 'transform', gate: false, for_each: false, phase: 1 },
        { id: 'd', uses: 'transform', gate: false, for_each: false, phase: 2 },
      ],
      edges: [
        { from: 'a', to: 'b' },
        { from: 'a', to: 'c' },
        { from: 'b', to: 'd' },
        { from: 'c', to: 'd' },
      ],
      phases: [['a'], ['b', 'c'], ['d']],
    });
    expect((await relay(['graph', 'good.yaml', '-f', 'json'])).out).toBe(out);
  });

  it('explains a file that is not valid, and draws nothing', async () => {
    file('bad.yaml', BAD);
    const text = await relay(['graph', 'bad.yaml']);
    expect(text).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining('error[undeclared_handler]'),
    });
    const { code, out, err } = await relay(['graph', 'bad.yaml', '--json']);
    expect({ code, err }).toEqual({ code: 2, err: '' });
    expect(JSON.parse(out)).toMatchObject({
      error: { code: 'INVALID_WORKFLOW', details: { errors: [{ code: 'undeclared_handler', line: 4 }] } },
    });
  });
});

// SPEC S14.2
describe('relay config', () => {
  it('shows the settings in force, their origin, and no secret', async () => {
    file('relay.config.yaml', 'log: info\n');
    const env = { RELAY_TOKEN: 'hunter2-hunter2', RELAY_STORE: 'postgres://me:hunter2@db/relay' };
    const { code, out, err } = await relay(['config', '--data', 'elsewhere'], { env });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out.replaceAll(cwd, '.')).toMatchInlineSnapshot(`
      "data: elsewhere                    # --data
      store: postgres://me:***@db/relay  # RELAY_STORE
      blobs:                             # default
        kind: files
      broker: none                       # default
      # server:                          # not set
      token: "***"                       # RELAY_TOKEN
      # retention:                       # not set
      # limits:                          # not set
      log: info                          # ./relay.config.yaml
      map_items_max: 100000              # default
      definition_limits:                 # default
        tasks_max: 10000
        task_config_bytes_max: 65536
        file_bytes_max: 8388608
      providers: {}                      # default
      prices: {}                         # default
      "
    `);
    const json = JSON.parse((await relay(['config', '--json'], { env })).out) as {
      config: object;
      origins: object;
    };
    expect(json.config).toMatchObject({ token: '***', store: 'postgres://me:***@db/relay' });
    expect(json.origins).toMatchObject({
      token: 'RELAY_TOKEN',
      log: join(cwd, 'relay.config.yaml'),
      data: 'default',
    });
  });

  it('--example prints a file that is accepted', async () => {
    const { out } = await relay(['config', '--example']);
    file('relay.config.yaml', out);
    expect((await relay(['config'])).code).toBe(0);
    expect(JSON.parse((await relay(['config', '--example', '--json'])).out)).toEqual({ example: out });
  });

  it('explains a wrong key', async () => {
    file('relay.config.yaml', 'stroe: sqlite:x\n');
    const { code, err } = await relay(['config']);
    expect(code).toBe(2);
    expect(err).toMatch(
      /^error: .*relay\.config\.yaml:1:1: unknown key `stroe` in the file\n {2}= did you mean `store`\?\n$/,
    );
  });
});
