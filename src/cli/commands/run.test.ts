/** `relay run` and `relay resume` in this process: exit codes, JSON, inputs, people, interruptions (SPEC S13.2, S7.3). */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { relay as call, type Surroundings } from '../../../test/support/memory-io.ts';
import type { RunView } from '../../app/api.ts';
import type { Interrupt } from '../io.ts';

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'relay-run-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const relay = (argv: readonly string[], around: Omit<Surroundings, 'cwd'> = {}) =>
  call(argv, { cwd, ...around });
const file = (name: string, text: string): void => writeFileSync(join(cwd, name), text);
const runJson = async (argv: readonly string[], around: Omit<Surroundings, 'cwd'> = {}) => {
  const { code, out, err } = await relay([...argv, '--json'], around);
  return { code, err, run: JSON.parse(out) as RunView };
};
const statuses = (run: RunView): Record<string, string> =>
  Object.fromEntries(run.tasks.map(({ task_id, status }) => [task_id, status]));

const TWO = `name: two
inputs:
  who: { type: string, default: world }
  n: { type: integer, default: 1 }
tasks:
  a: { uses: transform, with: { value: "hi {{ inputs.who }}" } }
  b: { uses: transform, with: { value: { text: "{{ tasks.a.output }}", n: "{{ inputs.n }}" } } }
outputs: { said: "{{ tasks.b.output }}" }
`;
const BAD = `name: bad
inputs: { code: { type: integer, default: 3 } }
tasks:
  a: { uses: transform, with: { value: "{{ '{{ x }}' }}" } }
  b: { uses: shell, with: { run: "echo {{ tasks.a.output | sh }} oh no; exit {{ inputs.code | sh }}" }, retry: { max_attempts: 1 } }
  c: { uses: transform, with: { value: "{{ tasks.b.output }}" } }
`;
const GATE = `name: gated
tasks:
  a: { uses: transform, with: { value: 1 } }
  b:
    needs: a
    gate: { message: "Go on?" }
    uses: transform
    with: { value: 2 }
`;
const FORM = `name: form
tasks:
  ask:
    uses: approval
    with:
      message: "How many?"
      form:
        type: object
        required: [n]
        properties: { n: { type: integer, minimum: 1 }, why: { type: string, default: because } }
outputs: { answer: "{{ tasks.ask.output.answer }}" }
`;
const SLEEPY = `name: sleepy
tasks:
  a: { uses: shell, with: { run: "echo awake; sleep 30" } }
  b: { needs: a, uses: transform, with: { value: 1 } }
`;

// SPEC S13.2
describe('relay run', () => {
  it('runs a workflow to its end and prints one line per change, the outputs and what to type next', async () => {
    file('two.yaml', TWO);
    const { code, out, err } = await relay(['run', 'two.yaml', '-i', 'who=Ada', '-i', 'n=3']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^\d\d:\d\d:\d\d {2}run \S+ \(two\)$/m);
    for (const task of ['a', 'b'])
      expect(out).toMatch(new RegExp(`^\\d\\d:\\d\\d:\\d\\d {2}${task} {2}SUCCESS`, 'm'));
    expect(out).toContain('"text": "hi Ada"');
    expect(out).toContain('"n": 3');
    expect(out).toMatch(/^ {2}relay runs show \S+/m);
  });

  it('--json prints the run as one object and nothing else', async () => {
    file('two.yaml', TWO);
    const { code, err, run } = await runJson(['run', 'two.yaml', '--label', 'team=docs', '--priority', '4']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(run).toMatchObject({
      status: 'SUCCESS',
      reason: null,
      workflow_name: 'two',
      workflow_version: 1,
      labels: { team: 'docs' },
      priority: 4,
      inputs: { who: 'world', n: 1 },
      outputs: { said: { text: 'hi world', n: 1 } },
      usage: null,
    });
    expect(
      run.tasks.map(({ task_id, status, attempt, output }) => [task_id, status, attempt, output]),
    ).toEqual([
      ['a', 'SUCCESS', 1, 'hi world'],
      ['b', 'SUCCESS', 1, { text: 'hi world', n: 1 }],
    ]);
    expect(await runJson(['runs', 'show', run.id])).toEqual({ code: 0, err: '', run });
  });

  it('runs a stored workflow by its name, and says when there is none', async () => {
    expect(await relay(['run', 'two'])).toMatchObject({
      code: 3,
      err: expect.stringContaining('no stored workflow two'),
    });
    expect(existsSync(join(cwd, '.relay'))).toBe(false);
    file('two.yaml', TWO);
    await relay(['run', 'two.yaml']);
    expect((await runJson(['run', 'two', '-i', 'who=Eve'])).run.inputs).toEqual({ who: 'Eve', n: 1 });
    expect(await relay(['run', 'tow'])).toMatchObject({
      code: 3,
      err: expect.stringContaining('did you mean `two`?'),
    });
  });

  it('reads inputs by their declared type, and from a file', async () => {
    file('in.yaml', 'who: 5\nlist: [1, 2]\n');
    file(
      'typed.yaml',
      `name: typed
inputs:
  who: { type: string }
  list: { type: array }
  flag: { type: boolean, default: false }
  free: { default: 0 }
tasks: { a: { uses: transform, with: { value: 1 } } }
`,
    );
    const good = ['-i', 'who=007', '-i', 'list=["x"]', '-i', 'flag=true', '-i', 'free=a=b'];
    expect((await runJson(['run', 'typed.yaml', ...good])).run.inputs).toEqual({
      who: '007',
      list: ['x'],
      flag: true,
      free: 'a=b',
    });
    const mixed = ['--input-file', 'in.yaml', '-i', 'who=Ada', '-i', 'free=1.5'];
    expect((await runJson(['run', 'typed.yaml', ...mixed])).run.inputs).toMatchObject({
      who: 'Ada',
      list: [1, 2],
      free: 1.5,
    });
    for (const [argv, message] of [
      [['-i', 'flag=maybe'], '`flag` must be boolean, not `maybe`'],
      [['-i', 'flag'], '-i takes NAME=VALUE, not `flag`'],
      [['-i', 'whoo=1'], '`whoo` is not an input of typed; did you mean `who`?'],
    ] as const) {
      const { code, err } = await relay(['run', 'typed.yaml', ...argv]);
      expect(code).toBe(2);
      expect(err).toContain(message);
    }
  });

  it('shows the problems of a file as validate does, and starts nothing', async () => {
    file('broken.yaml', 'name: broken\ntasks:\n  a: { uses: transfrm }\n');
    const { code, out, err } = await relay(['run', 'broken.yaml']);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain('error[undeclared_handler]');
    const json = await relay(['run', 'broken.yaml', '--json']);
    expect(JSON.parse(json.out)).toMatchObject({
      error: { code: 'INVALID_WORKFLOW', details: { errors: [{}] } },
    });
    expect({ code: json.code, err: json.err }).toEqual({ code: 2, err: '' });
    expect(existsSync(join(cwd, '.relay'))).toBe(false);
  });

  it('a failed task ends with 1, its class, code, message and advice', async () => {
    file('bad.yaml', BAD);
    const { code, out } = await relay(['run', 'bad.yaml']);
    expect(code).toBe(1);
    expect(out).toContain('✗ b  handler HANDLER_EXIT');
    expect(out).toContain('exit code 3');
    expect(out).toContain('= Read the error and the task log');
    expect(out).toMatch(/relay runs retry \S+ --follow/);
    expect(out).toMatch(/c {2}SKIPPED {2}upstream failed/);
  });

  it('the same idempotency key starts one run', async () => {
    file('two.yaml', TWO);
    const first = await runJson(['run', 'two.yaml', '--idempotency-key', 'k']);
    const second = await runJson(['run', 'two.yaml', '--idempotency-key', 'k']);
    expect(second.run.id).toBe(first.run.id);
  });

  it('--dry-run shows the plan and the first inputs with secrets masked, and stores nothing', async () => {
    file(
      'secret.yaml',
      `name: secret
secrets: [KEY]
inputs: { who: { type: string, default: Ada } }
tasks:
  a: { uses: transform, with: { value: "{{ inputs.who }} {{ secrets.KEY }}" } }
  b: { uses: transform, with: { value: "{{ tasks.a.output }}" } }
`,
    );
    const { code, out } = await relay(['run', 'secret.yaml', '--dry-run'], { env: { KEY: 'sesame-open' } });
    expect(code).toBe(0);
    expect(out).toContain('"value": "Ada ***"');
    expect(out).not.toContain('sesame');
    const json = JSON.parse((await relay(['run', 'secret.yaml', '--dry-run', '--json'])).out) as object;
    expect(json).toMatchObject({
      phases: [['a'], ['b']],
      first: [{ task_id: 'a', input: { value: 'Ada ***' } }],
    });
    expect(existsSync(join(cwd, '.relay'))).toBe(false);
  });

  it('--only runs one task on the outputs of an earlier run, which stay data and untouched', async () => {
    file('bad.yaml', BAD);
    const { run: earlier } = await runJson(['run', 'bad.yaml']);
    const { code, run } = await runJson([
      'run',
      'bad.yaml',
      '--only',
      'b',
      '--from',
      earlier.id,
      '-i',
      'code=0',
    ]);
    expect(code).toBe(0);
    expect(run.outputs).toEqual({ b: '{{ x }} oh no' });
    expect(run.labels).toEqual({ only_task: 'b', from_run: earlier.id });
    expect((await runJson(['runs', 'show', earlier.id])).run).toEqual(earlier);
    const missing = await relay(['run', 'bad.yaml', '--only', 'c', '--from', earlier.id]);
    expect(missing).toMatchObject({ code: 2, err: expect.stringContaining('has no output of `b` (FAILED)') });
    expect((await relay(['run', 'bad.yaml', '--only', 'x', '--from', earlier.id])).code).toBe(3);
    expect((await relay(['run', 'bad.yaml', '--only', 'b'])).err).toContain('--only and --from go together');
  });

  it('says what it cannot do yet', async () => {
    file('two.yaml', TWO);
    expect(await relay(['run', 'two.yaml', '--detach'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--detach needs a server'),
    });
    expect(await relay(['run', 'two.yaml', '--server', 'http://localhost:1'])).toMatchObject({
      code: 6,
      err: expect.stringContaining('relay serve'),
    });
  });

  it('masks secrets in errors also when another process made the output they come from', async () => {
    file(
      'leak.yaml',
      `name: leak
secrets: [KEY]
tasks:
  a: { uses: transform, with: { value: "{{ secrets.KEY }}" } }
  b: { uses: shell, with: { run: "echo {{ tasks.a.output | sh }}; exit 1" }, retry: { max_attempts: 1 } }
`,
    );
    const around = { env: { KEY: 'sesame-open', PATH: process.env.PATH } };
    const { run } = await runJson(['run', 'leak.yaml'], around);
    const again = await relay(['runs', 'retry', run.id, '--follow'], around);
    expect(again.code).toBe(1);
    expect(again.out).not.toContain('sesame');
    expect((await relay(['tasks', 'show', run.id, 'b'], around)).out).not.toContain('sesame');
  });
});

// SPEC S7.3
describe('a run that waits for a person', () => {
  it('ends with 5 without a terminal, says what to type, and goes on after it was typed', async () => {
    file('gate.yaml', GATE);
    const { code, out } = await relay(['run', 'gate.yaml']);
    expect(code).toBe(5);
    const [, approve = ''] = /relay (approvals approve \S+ b)/.exec(out) ?? [];
    const [, resume = ''] = /relay (resume \S+)/.exec(out) ?? [];
    expect(out).toContain('b: Go on?');
    expect((await relay(approve.split(' '))).code).toBe(0);
    const ended = await runJson(resume.split(' '));
    expect([ended.code, ended.run.status]).toEqual([0, 'SUCCESS']);
  });

  it('--json ends with 5, the run on stdout and the way on on stderr', async () => {
    file('gate.yaml', GATE);
    const { code, err, run } = await runJson(['run', 'gate.yaml']);
    expect([code, run.status, statuses(run)]).toEqual([5, 'WAITING', { a: 'SUCCESS', b: 'BLOCKED' }]);
    expect(err).toContain(`relay approvals approve ${run.id} b`);
  });

  it('--yes approves gates and forms whose required fields have defaults, and leaves the others', async () => {
    file('gate.yaml', GATE);
    expect((await runJson(['run', 'gate.yaml', '--yes'])).run.status).toBe('SUCCESS');
    file('form.yaml', FORM);
    expect((await relay(['run', 'form.yaml', '--yes'])).code).toBe(5);
    file('preset.yaml', FORM.replace('minimum: 1', 'minimum: 1, default: 2'));
    expect((await runJson(['run', 'preset.yaml', '--yes'])).run.outputs).toEqual({
      answer: { n: 2, why: 'because' },
    });
  });

  it('is asked in place on a terminal, field by field', async () => {
    file('form.yaml', FORM);
    const { code, out } = await relay(['run', 'form.yaml'], {
      isTerminal: true,
      typed: ['what', 'y', 'x', '0', '', '4', ''],
    });
    const text = stripVTControlCharacters(out);
    expect(code).toBe(0);
    expect(text).toContain('How many?');
    expect(text).toContain('this must be a whole number');
    expect(text).toContain('must be >= 1');
    expect(text).toContain('an answer is needed here');
    expect(text).toContain('"n": 4');
    expect(text).toContain('"why": "because"');
  });

  it('a no asks for the reason, and fails the task with it', async () => {
    file('gate.yaml', GATE);
    const { code, out } = await relay(['run', 'gate.yaml'], { isTerminal: true, typed: ['n', 'too dear'] });
    expect(code).toBe(1);
    expect(stripVTControlCharacters(out)).toMatch(/rejected REJECTED[\s\S]*too dear/);
  });

  it('whose terminal ends without an answer ends with 5', async () => {
    file('gate.yaml', GATE);
    expect((await relay(['run', 'gate.yaml'], { isTerminal: true, typed: [] })).code).toBe(5);
  });
});

describe('an interrupted run', () => {
  /** Runs SLEEPY, and does something once its task is at work. */
  async function interrupted(press: (interrupt: (signal: Interrupt) => void) => void) {
    file('sleepy.yaml', SLEEPY);
    let interrupt: (signal: Interrupt) => void = () => {};
    let isPressed = false;
    return relay(['run', 'sleepy.yaml'], {
      env: { PATH: process.env.PATH },
      interrupter: (given) => {
        interrupt = given;
      },
      watch: (text) => {
        if (isPressed || !text.includes('a  RUNNING')) return;
        isPressed = true;
        setImmediate(() => press(interrupt));
      },
    });
  }

  it('is cancelled by Ctrl-C and ends with 4', async () => {
    const { code, out, err } = await interrupted((interrupt) => interrupt('SIGINT'));
    expect(code).toBe(4);
    expect(err).toContain('cancelling');
    expect(out).toContain('⊘ sleepy was cancelled');
    expect(out).toMatch(/relay runs retry \S+ --follow/);
  });

  it('is left as it is by a request to end, and can be resumed', async () => {
    const { code, out } = await interrupted((interrupt) => interrupt('SIGTERM'));
    expect(code).toBe(4);
    const [, id = ''] = /relay resume (\S+)/.exec(out) ?? [];
    const { run } = await runJson(['runs', 'show', id]);
    expect(run.status).toBe('RUNNING');
    expect(run.tasks[0]).toMatchObject({ status: 'QUEUED', attempt: 1, error: null });
  });
});

describe('relay resume', () => {
  it('has nothing to do when nothing is unfinished', async () => {
    expect(await relay(['resume'])).toEqual({ code: 0, out: 'Nothing is unfinished.\n', err: '' });
    expect(JSON.parse((await relay(['resume', '--json'])).out)).toEqual({ items: [], next_cursor: null });
    expect((await relay(['resume', 'nope'])).code).toBe(3);
  });

  it('carries on every unfinished run, oldest first', async () => {
    mkdirSync(join(cwd, 'flows'));
    file('flows/gate.yaml', GATE);
    const first = await runJson(['run', 'flows/gate.yaml']);
    const second = await runJson(['run', 'flows/gate.yaml']);
    const { code, out } = await relay(['resume', '--yes', '--json']);
    const { items } = JSON.parse(out) as { items: RunView[] };
    expect(code).toBe(0);
    expect(items.map(({ id, status }) => [id, status])).toEqual([
      [first.run.id, 'SUCCESS'],
      [second.run.id, 'SUCCESS'],
    ]);
  });

  it('says so when the run has ended already', async () => {
    file('two.yaml', TWO);
    const { run } = await runJson(['run', 'two.yaml']);
    expect((await relay(['resume', run.id])).out).toContain(`run ${run.id} is SUCCESS already`);
  });
});
