/** The commands that look at runs and act on them (SPEC S13.2): lists, actions, tasks, approvals, events, dead tasks, the store itself. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { relay as call, type Surroundings } from '../../../test/support/memory-io.ts';
import type { EventView, LimitView, Page, RunView, TaskView } from '../../app/api.ts';
import type { Interrupt } from '../io.ts';

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'relay-runs-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const env = { PATH: process.env.PATH };
const relay = (argv: readonly string[], around: Omit<Surroundings, 'cwd'> = {}) =>
  call(argv, { cwd, env, ...around });
const json = async <T>(...argv: readonly string[]): Promise<T> => {
  const { out, err } = await relay([...argv, '--json']);
  expect(err).toBe('');
  return JSON.parse(out) as T;
};
const start = async (name: string, text: string, ...argv: readonly string[]): Promise<RunView> => {
  writeFileSync(join(cwd, `${name}.yaml`), `name: ${name}\n${text}`);
  return JSON.parse((await relay(['run', `${name}.yaml`, '--json', ...argv])).out) as RunView;
};

const GOOD =
  'tasks:\n  a: { uses: transform, with: { value: 1 } }\n  b: { needs: a, uses: transform, with: { value: 2 } }\n';
const GATE = 'tasks: { a: { gate: { message: "Go on?" }, uses: transform, with: { value: 1 } } }\n';
/** Fails until a file is there. */
const FUSSY = `tasks:
  a: { uses: shell, with: { run: "echo looking; test -f ok" }, retry: { max_attempts: 1 } }
  b: { needs: a, uses: transform, with: { value: 2 } }
`;
const ASK = `tasks:
  ask:
    uses: approval
    with: { message: "How many?", form: { type: object, required: [n], properties: { n: { type: integer }, why: { type: string } } } }
outputs: { answer: "{{ tasks.ask.output.answer }}" }
`;

describe('relay runs', () => {
  it('list filters, pages, and is a table for people', async () => {
    const one = await start('one', GOOD, '--label', 'team=docs');
    const two = await start('two', FUSSY);
    const table = await relay(['runs', 'list']);
    expect(table.out.split('\n')[0]).toMatch(/^RUN +STATUS +WORKFLOW +TASKS +CREATED +TOOK +NOTE/);
    expect(table.out.indexOf(two.id)).toBeLessThan(table.out.indexOf(one.id));
    const ids = async (...argv: string[]): Promise<string[]> =>
      (await json<Page<RunView>>('runs', 'list', ...argv)).items.map(({ id }) => id);
    expect(await ids('--status', 'failed')).toEqual([two.id]);
    expect(await ids('--workflow', 'one')).toEqual([one.id]);
    expect(await ids('--label', 'team=docs')).toEqual([one.id]);
    const first = await json<Page<RunView>>('runs', 'list', '--limit', '1');
    expect(first.items.map(({ id }) => id)).toEqual([two.id]);
    expect(await ids('--cursor', String(first.next_cursor))).toEqual([one.id]);
    expect((await relay(['runs', 'list', '--status', 'odd'])).code).toBe(2);
    expect((await relay(['runs', 'list', '--limit', 'x'])).err).toContain(
      '--limit must be a whole number from 1',
    );
  });

  // SPEC S9.1
  it('show says what each model was asked and cost, and `tasks show` each call', async () => {
    const run = await start(
      'models',
      'tasks: { a: { uses: llm, with: { model: offline/sloppy, prompt: Facts }, output: { format: json, repair: 1 } } }\n',
    );
    const shown = (await relay(['runs', 'show', run.id])).out;
    expect(shown).toMatch(
      /Models:\n +MODEL +CALLS +TOKENS IN +CACHED +TOKENS OUT +COST\n +offline\/sloppy +2 /,
    );
    const task = (await relay(['tasks', 'show', run.id, 'a'])).out;
    expect(task).toMatch(/Model calls:\n.*\n +1 +offline\/sloppy +2 .*stop +[0-9a-f]{12}\n/);
    expect((await relay(['tasks', 'artifacts', run.id, 'a', '--raw', 'raw'])).out).toMatch(
      /^\[offline model\]/,
    );
    expect((await relay(['tasks', 'artifacts', run.id, 'a', '--raw', 'prompt'])).out).toContain(
      '"content": "Facts"',
    );
  });

  it('takes options before its subcommand too, and explains what is missing', async () => {
    expect(JSON.parse((await relay(['runs', '--json', 'list'])).out)).toEqual({
      items: [],
      next_cursor: null,
    });
    expect((await relay(['runs'])).err).toContain('relay runs needs to know what to do: list, show');
    expect((await relay(['runs', 'lst'])).err).toContain('did you mean `list`?');
    expect((await relay(['help', 'runs', 'prune'])).out).toContain('Usage: relay runs prune');
    expect((await relay(['runs', 'show'])).err).toContain('`relay help runs show` shows how it is used');
  });

  it('every subcommand of every command has a usage line, the common options and examples', async () => {
    for (const name of ['runs', 'tasks', 'approvals', 'dead-letters', 'workflows']) {
      const { out } = await relay(['help', name]);
      const listed = out.slice(out.indexOf('Commands:')).split('\n\n')[0] ?? '';
      const names = [...listed.matchAll(/^ {2}([a-z]+) /gm)].map(([, subcommand = '']) => subcommand);
      expect(names.length).toBeGreaterThan(1);
      for (const subcommand of names) {
        const help = await relay([name, subcommand, '--help']);
        expect(help).toMatchObject({ code: 0, err: '' });
        expect(help.out).toMatch(new RegExp(`^Usage: relay ${name} ${subcommand} `));
        for (const part of ['--json', '--data <dir>', 'Examples:']) expect(help.out).toContain(part);
      }
    }
  });

  it('show tells everything about a run, and its timeline', async () => {
    const { id } = await start('two', FUSSY);
    const { out } = await relay(['runs', 'show', id]);
    expect(out).toContain(`run ${id}`);
    expect(out).toContain('workflow:  two version 1');
    expect(out).toMatch(/^a +✗ FAILED +1 .* HANDLER_EXIT/m);
    expect(out).toContain('What went wrong:');
    expect((await relay(['runs', 'show', id, '--timeline'])).out).toMatch(/Timeline[\s\S]* a .*█/);
    expect(await relay(['runs', 'show', 'nope'])).toMatchObject({
      code: 3,
      err: expect.stringContaining('there is no run nope'),
    });
  });

  it('retry, rerun and clone say how to go on, or run it here with --follow', async () => {
    const { id } = await start('two', FUSSY);
    expect((await relay(['runs', 'retry', id])).out).toContain(`\`relay resume ${id}\` carries it on`);
    expect((await relay(['resume', id])).code).toBe(1);
    writeFileSync(join(cwd, 'ok'), '');
    expect((await relay(['runs', 'retry', id, '--follow'])).code).toBe(0);
    expect((await relay(['runs', 'retry', id])).code).toBe(2);
    expect((await relay(['runs', 'rerun', id])).err).toContain(
      "required option '--from <task>' not specified",
    );
    const rerun = await json<RunView>('runs', 'rerun', id, '--from', 'b', '--follow');
    expect(rerun.tasks.map(({ attempt }) => attempt)).toEqual([3, 2]);
    const clone = await json<RunView>('runs', 'clone', id, '--follow');
    expect(clone).toMatchObject({ cloned_from: id, status: 'SUCCESS' });
  });

  it('clone takes other inputs by their type', async () => {
    const { id } = await start(
      'in',
      `inputs: { n: { type: integer, default: 1 }, s: { type: string, default: x } }\n${GOOD}`,
    );
    expect((await json<RunView>('runs', 'clone', id, '-i', 'n=5', '--follow')).inputs).toEqual({
      n: 5,
      s: 'x',
    });
  });

  it('cancel, pause and resume act at once', async () => {
    const { id } = await start('gate', GATE);
    expect((await json<RunView>('runs', 'pause', id)).reason).toBe('paused');
    expect((await relay(['resume', id])).code).toBe(5);
    expect((await json<RunView>('runs', 'resume', id)).reason).toBeNull();
    expect((await relay(['runs', 'cancel', id])).out).toContain('is cancelled (CANCELLED)');
    expect((await relay(['runs', 'pause', id])).code).toBe(2);
  });

  it('watch shows a run from its beginning and ends with it', async () => {
    const { id } = await start('two', FUSSY);
    const { code, out } = await relay(['runs', 'watch', id]);
    expect(code).toBe(1);
    expect(out).toMatch(/a {2}FAILED/);
    const { id: waiting } = await start('gate', GATE);
    let press: (signal: Interrupt) => void = () => {};
    const left = relay(['runs', 'watch', waiting], {
      interrupter: (interrupt) => {
        press = interrupt;
      },
      watch: (text) => {
        if (text.includes('BLOCKED')) setImmediate(() => press('SIGINT'));
      },
    });
    expect((await left).code).toBe(0);
  });

  it('prune says what would go, and removes with --yes', async () => {
    const { id } = await start('one', GOOD);
    const dry = await relay(['runs', 'prune', '--older-than', '0s']);
    expect(dry.out).toBe(`${id}\n1 run would be removed; --yes removes\n`);
    expect(await json('runs', 'prune', '--older-than', '1d', '--yes')).toEqual({
      items: [],
      next_cursor: null,
      dry_run: false,
    });
    expect((await relay(['runs', 'prune', '--older-than', '0s', '--status', 'FAILED', '--yes'])).out).toBe(
      '0 runs removed\n',
    );
    expect((await relay(['runs', 'prune', '--older-than', '0s', '--yes'])).out).toContain('1 run removed');
    expect((await relay(['runs', 'show', id])).code).toBe(3);
    expect((await relay(['runs', 'prune', '--older-than', 'soon'])).code).toBe(2);
    expect((await relay(['runs', 'prune', '--older-than', '1d', '--status', 'RUNNING'])).code).toBe(2);
  });
});

// SPEC S8.1, S8.2
describe('limits and budgets', () => {
  const config = (text: string): void => writeFileSync(join(cwd, 'relay.config.yaml'), text);
  const CALLS = `budget: { tokens: 200 }
tasks:
  a: { uses: llm, with: { model: offline/brief, prompt: hi, max_tokens: 50 } }
  b: { needs: a, uses: llm, with: { model: offline/brief, prompt: "{{ tasks.a.output }}", max_tokens: 150 } }
`;

  it('limits are configured in the file, and shown with their use', async () => {
    expect((await relay(['limits'])).out).toBe(
      'No limits. They are set under `limits` in the config file.\n',
    );
    config(
      'limits: { gpu: { concurrency: 2 }, models: { tokens_per_minute: 900, models: ["offline/*"] } }\n',
    );
    const run = await start(
      'calls',
      CALLS.replace('200', '20000').replace('uses: llm', 'uses: llm, limits: [gpu]'),
    );
    expect(run.status).toBe('SUCCESS');
    const { items } = await json<Page<LimitView>>('limits');
    const used = (run.usage?.tokens_in ?? 0) + (run.usage?.tokens_out ?? 0);
    expect(items).toMatchObject([
      { name: 'gpu', concurrency: 2, in_use: 0, windows: [], waiting: 0 },
      { name: 'models', concurrency: null, windows: [{ unit: 'tokens', max: 900, per: '1m', used }] },
    ]);
    expect((await relay(['limits'])).out).toContain(`${used} of 900 in 1m`);
    const other = await start('other', GOOD.replace('uses', 'limits: [gpus], uses'));
    expect(other).toMatchObject({ error: { code: 'UNKNOWN_LIMIT', hint: 'did you mean `gpu`?' } });
  });

  it('a limit that is written wrongly is explained', async () => {
    config('limits: { gpu: { concurency: 2 } }\n');
    expect((await relay(['limits'])).err).toContain('did you mean `concurrency`?');
    config('limits: { mail: { rate: 5 per minute } }\n');
    expect((await relay(['limits'])).err).toContain('must be a count and a time of at most a day');
  });

  it('retry --budget raises what a run may use', async () => {
    const run = await start('calls', CALLS);
    expect(run).toMatchObject({
      status: 'FAILED',
      reason: 'budget',
      budget: { tokens: 200, cost_usd: null },
    });
    expect(run.error).toMatchObject({ code: 'BUDGET_EXCEEDED' });
    for (const wrong of ['tokens', 'tokens=0', 'tokens=1.5', 'cost_usd=0', 'coins=3', ''])
      expect((await relay(['runs', 'retry', run.id, '--budget', wrong])).code).toBe(2);
    const again = await json<RunView>(
      'runs',
      'retry',
      run.id,
      '--follow',
      '--budget',
      'tokens=5_000,cost_usd=1',
    );
    expect(again).toMatchObject({ status: 'SUCCESS', reason: null, budget: { tokens: 5_000, cost_usd: 1 } });
  });
});

describe('relay tasks', () => {
  it('show takes both forms of naming a task', async () => {
    const { id, tasks } = await start('two', FUSSY);
    const byName = await relay(['tasks', 'show', id, 'a']);
    expect((await relay(['tasks', 'show', tasks[0]?.task_run_id ?? ''])).out).toBe(byName.out);
    expect(byName.out).toContain('Error: handler HANDLER_EXIT');
    expect(byName.out).toMatch(/1 +fail/);
    expect(await json('tasks', 'show', id, 'a')).toMatchObject({
      status: 'FAILED',
      input: { run: 'echo looking; test -f ok' },
      attempts: [{ attempt: 1, outcome: 'fail', error: { code: 'HANDLER_EXIT' } }],
    });
    expect((await relay(['tasks', 'show', id])).err).toContain('is a run; name one of its tasks as well');
    expect(await relay(['tasks', 'show', id, 'aa'])).toMatchObject({
      code: 3,
      err: expect.stringContaining('did you mean `a`?'),
    });
  });

  it('show says what a task waits for', async () => {
    const { id } = await start('gate', GATE);
    expect((await relay(['tasks', 'show', id, 'a'])).out).toContain('waits for: a person, who must decide');
  });

  it('logs prints what was logged', async () => {
    const { id } = await start('two', FUSSY);
    expect(await relay(['tasks', 'logs', id, 'a'])).toEqual({ code: 0, out: 'looking\n', err: '' });
    expect(await json('tasks', 'logs', id, 'a')).toMatchObject({
      items: [{ text: 'looking\n', stream: 'stdout' }],
      next_cursor: null,
    });
    expect((await relay(['tasks', 'logs', id, 'a', '--follow'])).out).toBe('looking\n');
  });

  it('artifacts lists, prints and saves', async () => {
    const { id } = await start(
      'files',
      'tasks: { a: { uses: shell, with: { run: "mkdir -p d; echo one > d/x.txt; echo done", files: ["d/*.txt"] } } }\n',
    );
    expect((await relay(['tasks', 'artifacts', id, 'a'])).out).toMatch(/^d\/x\.txt +file/m);
    expect((await relay(['tasks', 'artifacts', id, 'a', '--raw', 'd/x.txt'])).out).toBe('one\n');
    expect((await relay(['tasks', 'artifacts', id, 'a', '--raw', 'x'])).code).toBe(3);
    const { out } = await relay(['tasks', 'artifacts', id, 'a', '--save', 'saved']);
    expect(out.split('\n')).toContain('saved/d/x.txt');
    expect(readFileSync(join(cwd, 'saved/d/x.txt'), 'utf8')).toBe('one\n');
  });

  it('replay gives a dead task another chance', async () => {
    const { id } = await start('two', FUSSY);
    writeFileSync(join(cwd, 'ok'), '');
    expect((await relay(['tasks', 'replay', id, 'a', '--reset-attempts'])).out).toContain(
      `\`relay resume ${id}\` runs it`,
    );
    expect((await relay(['resume', id])).code).toBe(0);
    expect((await relay(['tasks', 'replay', id, 'a'])).code).toBe(2);
  });
});

// SPEC S7.3
describe('relay approvals', () => {
  it('decides the only question without being told which', async () => {
    expect((await relay(['approvals', 'list'])).out).toBe('Nothing waits for a person.\n');
    expect((await relay(['approvals', 'approve'])).err).toContain('nothing waits for a person');
    const { id } = await start('gate', GATE);
    expect((await relay(['approvals', 'list'])).out).toContain(`relay approvals approve ${id} a`);
    expect((await relay(['approvals', 'approve'])).code).toBe(0);
    expect((await relay(['approvals', 'approve', id, 'a'])).code).toBe(2);
    expect((await relay(['resume', id])).code).toBe(0);
  });

  it('wants to know which when there are several', async () => {
    const one = await start('gate', GATE);
    const two = await start('gate', GATE);
    const { code, err } = await relay(['approvals', 'reject', '--reason', 'no']);
    expect(code).toBe(2);
    expect(err).toContain(`${one.id} a, or ${two.id} a`);
    expect((await relay(['approvals', 'reject', one.id, '--reason', 'too dear'])).code).toBe(0);
    const [task] = (await json<RunView>('runs', 'show', one.id)).tasks;
    expect(task?.error).toMatchObject({ class: 'rejected', message: expect.stringContaining('too dear') });
  });

  it('takes an answer as fields or as JSON, and checks it', async () => {
    const { id } = await start('ask', ASK);
    expect(await relay(['approvals', 'approve', id, 'ask', '--field', 'n=two'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('does not fit the form'),
    });
    expect((await relay(['approvals', 'answer', id, 'ask'])).err).toContain('--field n=… --field why=…');
    expect((await relay(['approvals', 'answer', id, 'ask', '--answer', '{'])).code).toBe(2);
    expect(
      (await relay(['approvals', 'approve', id, 'ask', '--field', 'n=2', '--field', 'why=3'])).code,
    ).toBe(0);
    expect((await json<RunView>('resume', id)).outputs).toEqual({ answer: { n: 2, why: '3' } });
  });
});

// SPEC S12.2
describe('relay events', () => {
  it('pages by cursor and type', async () => {
    const { id } = await start('one', GOOD);
    const all = await json<Page<EventView>>('events', '--run', id);
    expect(all.items[0]).toMatchObject({ type: 'run.created', run_id: id });
    const done = await json<Page<EventView>>('events', '--types', 'task.completed,run.s*');
    expect([...new Set(done.items.map(({ type }) => type))].sort()).toEqual([
      'run.status.changed',
      'task.completed',
    ]);
    const rest = await json<Page<EventView>>('events', '--after', String(all.items[1]?.cursor));
    expect(rest.items[0]).toEqual(all.items[2]);
    expect((await relay(['events', '--run', id, '--limit', '2'])).out).toContain(
      `more with --after ${all.items[1]?.cursor}`,
    );
    expect((await relay(['events', '--types', 'task.complete'])).err).toContain(
      'did you mean `task.completed`?',
    );
  });

  it('--follow prints one object a line until it is interrupted', async () => {
    const { id } = await start('one', GOOD);
    let press: (signal: Interrupt) => void = () => {};
    const { code, out } = await relay(['events', '--run', id, '--follow', '--json'], {
      interrupter: (interrupt) => {
        press = interrupt;
      },
      watch: (text) => {
        if (text.includes('"to":"SUCCESS"') && text.includes('run.status')) press('SIGINT');
      },
    });
    expect(code).toBe(0);
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as EventView);
    expect(lines[0]).toMatchObject({ type: 'run.created' });
    expect(lines.filter(({ type }) => type === 'task.completed')).toHaveLength(2);
  });
});

// SPEC S5.6
describe('relay dead-letters', () => {
  it('lists, shows, purges and replays dead tasks', async () => {
    const { id } = await start('two', FUSSY);
    expect((await json<Page<TaskView>>('dead-letters', 'list')).items.map(({ task_id }) => task_id)).toEqual([
      'a',
    ]);
    expect((await relay(['dead-letters', 'list'])).out).toMatch(/^a +.*exhausted/m);
    expect((await relay(['dead-letters', 'show', id, 'a'])).out).toContain('HANDLER_EXIT');
    expect((await relay(['dead-letters', 'purge'])).code).toBe(2);
    expect((await relay(['dead-letters', 'purge', '--run', id])).out).toContain('1 dead task would go');
    expect((await relay(['dead-letters', 'replay', '--run', id])).out).toContain('task a is QUEUED');
    await relay(['resume', id]);
    expect((await relay(['dead-letters', 'purge', '--run', id, '--yes'])).out).toContain(
      '1 dead task taken off the list',
    );
    expect((await relay(['dead-letters', 'list'])).out).toBe('No dead tasks.\n');
  });
});

describe('the store', () => {
  it('workflows are listed and shown by version', async () => {
    expect((await relay(['workflows', 'list'])).out).toContain('No workflows');
    await start('one', GOOD);
    await start('one', GOOD.replace('value: 2', 'value: 3'));
    expect((await relay(['workflows', 'list'])).out).toMatch(/^one +2 +2 /m);
    expect((await relay(['workflows', 'show', 'one', '--version', '1'])).out).toContain('value: 2');
    expect(await json('workflows', 'show', 'one')).toMatchObject({ version: 2, definition: { name: 'one' } });
    expect((await relay(['workflows', 'show', 'on'])).code).toBe(3);
  });

  it('migrate says what it did, backup copies a store that can be opened', async () => {
    expect((await relay(['migrate'])).out).toContain('applied 0001_create_core');
    expect((await relay(['migrate'])).out).toContain('is up to date');
    const { id } = await start('one', GOOD);
    expect((await relay(['backup', 'copy.db'])).code).toBe(0);
    expect((await json<Page<RunView>>('runs', 'list', '--store', 'sqlite:copy.db')).items[0]?.id).toBe(id);
    expect((await relay(['backup', 'copy.db'])).err).toContain('exists already');
  });

  it('doctor finds nothing wrong with a healthy store, makes none, and fails on a damaged one', async () => {
    const before = await json<{ healthy: boolean; checks: { name: string }[] }>('doctor');
    expect(before.healthy).toBe(true);
    expect(existsSync(join(cwd, '.relay'))).toBe(false);
    await start('one', GOOD);
    const { code, out } = await relay(['doctor']);
    expect(code).toBe(0);
    for (const name of [
      'node',
      'sqlite',
      'folder',
      'permission',
      'disk',
      'store',
      'integrity',
      'schema',
      'limbo',
      'leases',
      'backlog',
      'events',
    ])
      expect(out).toMatch(new RegExp(`^✓ ok +${name} `, 'm'));
    writeFileSync(join(cwd, 'bad.db'), 'this is no database, but long enough to look like one'.repeat(20));
    const bad = await relay(['doctor', '--store', 'sqlite:bad.db']);
    expect(bad.code).toBe(1);
    expect(bad.out).toMatch(/^✗ fail/m);
  });

  it('bench measures every workload', async () => {
    for (const workload of ['fanout', 'chain', 'diamonds']) {
      const result = await json<Record<string, unknown>>('bench', '--workload', workload, '--tasks', '40');
      expect(result).toMatchObject({ workload, tasks: 40, settings: { concurrency: 256 } });
      expect(result).toHaveProperty('hop_ms.p50');
    }
    expect(existsSync(join(cwd, '.relay'))).toBe(false);
  });
});
