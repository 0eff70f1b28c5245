/** A command says the same whether its server is in this process or elsewhere (docs/decisions/0007): output, errors, exit codes. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliResult, relay } from '../../test/support/memory-io.ts';
import { OWN_TOKEN, ServerBench } from '../../test/support/server-bench.ts';

const FLOW = `
name: both
inputs: { n: { type: integer, default: 2 } }
outputs: { twice: "{{ tasks.double.output }}" }
tasks:
  first: { uses: shell, with: { run: "echo hello; echo report > out.txt", files: [out.txt] } }
  double: { needs: first, uses: script, with: { module: double.ts, args: { n: "{{ inputs.n }}" } } }
  gated: { needs: double, gate: { message: "Go on?" }, uses: transform, with: { value: 3 } }
`;
const FAILING = `
name: failing
tasks:
  bad: { uses: shell, with: { run: ["false"] }, retry: { max_attempts: 1 } }
  after: { needs: bad, uses: transform, with: { value: 1 } }
`;

let folder: string;
let bench: ServerBench;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'relay-doors-'));
  writeFileSync(join(folder, 'both.yaml'), FLOW);
  writeFileSync(join(folder, 'failing.yaml'), FAILING);
  writeFileSync(join(folder, 'double.ts'), 'export default ({ n }: { n: number }) => n * 2;\n');
  bench = await ServerBench.open({ concurrency: 4 });
});
afterAll(async () => {
  await bench.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Told {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Ids by the order in which they come, no times and no places in lists of all runs: what is left must be equal. */
function comparable({ code, out, err }: CliResult): Told {
  const ids = new Map<string, string>();
  const plain = (text: string): string =>
    text
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
        if (!ids.has(id)) ids.set(id, `id-${ids.size}`);
        return ids.get(id) ?? '';
      })
      .replace(/"trace_id": "[0-9a-f]{32}"/g, '"trace_id": "TRACE"')
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replace(/"(cursor|next_cursor|output_ref)": "[^"]*"/g, '"$1": "PLACE"')
      .replace(/"id": "[0-9a-z]+\.[0-9a-z]+\.[0-9a-z]+"/g, '"id": "ARTIFACT"')
      .replace(/relay_[\w-]{20,}/g, 'TOKEN')
      // What to type next names the server.
      .replace(/ --server \S+/g, '')
      .replace(/ {2,}/g, '  ');
  return { code, out: plain(out), err: plain(err) };
}

const here = (argv: readonly string[]): Promise<CliResult> =>
  relay(argv, { cwd: folder, env: { USER: 'local', PATH: process.env.PATH } });
const there = (argv: readonly string[]): Promise<CliResult> =>
  relay([...argv, '--server', bench.url, '--token', OWN_TOKEN], {
    cwd: folder,
    env: { USER: 'local', PATH: process.env.PATH },
  });

/** Says a command through both doors; arguments may depend on what a door has said before. */
async function both<T>(
  argv: (known: T) => readonly string[],
  known: readonly [T, T],
): Promise<readonly [CliResult, CliResult]> {
  const answers = [await here(argv(known[0])), await there(argv(known[1]))] as const;
  expect(comparable(answers[0]), argv(known[0]).join(' ')).toEqual(comparable(answers[1]));
  return answers;
}

interface Run {
  readonly id: string;
  readonly status: string;
  readonly tasks: readonly { readonly task_id: string; readonly task_run_id: string }[];
}
const runsOf = (answers: readonly [CliResult, CliResult]): readonly [Run, Run] => [
  JSON.parse(answers[0].out) as Run,
  JSON.parse(answers[1].out) as Run,
];
const NOTHING = [null, null] as const;

// SPEC S13.2
describe('the two doors', () => {
  it('tell the same story of a run with a script, a file and a gate', async () => {
    const started = runsOf(await both(() => ['run', 'both.yaml', '-i', 'n=21', '--json'], NOTHING));
    expect(started[0].status).toBe('WAITING');
    await both(({ id }) => ['runs', 'show', id, '--json'], started);
    await both(({ id }) => ['approvals', 'list', '--run', id, '--json'], started);
    const gated = ({ tasks }: Run): string =>
      tasks.find(({ task_id }) => task_id === 'gated')?.task_run_id ?? '';
    // The worker of the server may be faster than the answer; what comes of it is compared.
    for (const [say, run] of [[here, started[0]] as const, [there, started[1]] as const])
      expect((await say(['approvals', 'approve', gated(run), '--json'])).code).toBe(0);
    await both(({ id }) => ['resume', id, '--json'], started);
    await both((run) => ['approvals', 'approve', gated(run), '--json'], started);
    const ended = runsOf(await both(({ id }) => ['runs', 'show', id, '--json'], started));
    expect(ended[0]).toMatchObject({ status: 'SUCCESS', outputs: { twice: 42 } });
    await both(({ id }) => ['events', '--run', id, '--types', 'task.completed', '--json'], started);
    for (const task of ['first', 'double']) {
      const of = ({ tasks }: Run): string => tasks.find(({ task_id }) => task_id === task)?.task_run_id ?? '';
      await both((run) => ['tasks', 'show', of(run), '--json'], started);
      await both((run) => ['tasks', 'logs', of(run), '--json'], started);
      await both((run) => ['tasks', 'artifacts', of(run), '--json'], started);
    }
    await both(({ id }) => ['runs', 'rerun', id, '--from', 'nobody', '--json'], started);
    await both(({ id }) => ['runs', 'retry', id, '--json'], started);
    await both(({ id }) => ['runs', 'cancel', id, '--json'], started);
    await both(({ id }) => ['runs', 'pause', id, '--json'], started);
  }, 60_000);

  it('tell the same story of a failure and of what died of it', async () => {
    const failed = runsOf(await both(() => ['run', 'failing.yaml', '--json'], NOTHING));
    expect(failed[0].status).toBe('FAILED');
    await both(({ id }) => ['dead-letters', 'list', '--run', id, '--json'], failed);
    await both(({ id }) => ['runs', 'retry', id, '--follow', '--json'], failed);
    await both(({ id }) => ['runs', 'clone', id, '--follow', '--json'], failed);
    await both(() => ['dead-letters', 'purge', '--json'], NOTHING);
    await both(() => ['runs', 'prune', '--older-than', '1d', '--json'], NOTHING);
  }, 60_000);

  // SPEC S1.1
  it('keep the code of a script with the version, whatever becomes of the file', async () => {
    writeFileSync(
      join(folder, 'kept.yaml'),
      'name: kept\noutputs: { n: "{{ tasks.a.output }}" }\ntasks: { a: { uses: script, with: { module: kept.ts } } }\n',
    );
    writeFileSync(join(folder, 'kept.ts'), 'export default () => 7;\n');
    await both(() => ['run', 'kept.yaml', '--json'], NOTHING);
    rmSync(join(folder, 'kept.ts'));
    const again = await both(() => ['run', 'kept', '--json'], NOTHING);
    expect(runsOf(again)[0]).toMatchObject({ status: 'SUCCESS', outputs: { n: 7 }, workflow_version: 1 });
    const [refused] = await both(() => ['run', 'kept.yaml', '--json'], NOTHING);
    expect(refused.code).toBe(2);
    expect(refused.out).toContain('INVALID_WORKFLOW');
  }, 60_000);

  it('show the same lists', async () => {
    for (const argv of [
      ['runs', 'list', '--workflow', 'both', '--json'],
      ['runs', 'list', '--status', 'FAILED', '--json'],
      ['workflows', 'list', '--json'],
      ['workflows', 'show', 'both', '--json'],
      ['tokens', 'create', 'ci', '--scopes', 'operate', '--json'],
      ['tokens', 'list', '--json'],
    ])
      await both(() => argv, NOTHING);
  });

  it('refuse the same things in the same words', async () => {
    const missing = '01a1df06-66b5-7f13-9d62-73adc21453c3';
    for (const argv of [
      ['runs', 'show', missing, '--json'],
      ['runs', 'list', '--limit', '5000', '--json'],
      ['runs', 'list', '--cursor', 'x', '--json'],
      ['events', '--after', '§', '--json'],
      ['tasks', 'logs', missing, '--json'],
      ['workflows', 'show', 'bot', '--json'],
      ['run', 'both.yaml', '-i', 'n=many', '--json'],
      ['run', 'nothing', '--json'],
      ['run', 'both.yaml', '--label', `x=${'y'.repeat(2_000)}`, '--json'],
      ['tokens', 'revoke', 'nobody', '--json'],
      ['workers', 'drain', 'nobody', '--json'],
    ]) {
      const [answer] = await both(() => argv, NOTHING);
      expect(answer.code, argv.join(' ')).not.toBe(0);
    }
  });
});
