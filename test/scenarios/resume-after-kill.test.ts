/** `relay run` and `relay resume` killed with `kill -9` at random moments, again and again: nothing is lost, nothing is recorded twice. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { EventView, RelayApi } from '../../src/app/api.ts';
import { LocalRelay } from '../../src/app/local-relay.ts';
import { ROOT } from '../support/built-cli.ts';
import { seededRandom } from '../support/harness.ts';

const KILLS = process.env.RELAY_LONG === 'yes' ? 100 : 20;
const SEED = Number(process.env.RELAY_SEED ?? 20_260_101);
const MAP_KILLS = KILLS / 2;
const ITEMS = 5_000;
const LAYERS = 30;
const WIDTH = 9;
const TASKS = LAYERS * (WIDTH + 1);
/** Between layers, so that the run lasts longer than its kills. */
const WAIT_MS = 14 * KILLS;
/** A lease lasts 30 s: restarts that waited for leases of the dead would take far longer than this. */
const END_WITHIN_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), 'relay-resume-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

// SPEC S4.8, S6.2, S13.2
it(`a run of ${TASKS} tasks survives ${KILLS} kills of relay run and relay resume (seed ${SEED})`, async () => {
  writeFileSync(join(folder, 'layers.json'), JSON.stringify(layers()));
  const random = seededRandom(SEED);
  let hasRun = false;
  for (let kill = 0; kill < KILLS; kill++) {
    const within = 250 + Math.floor(random() * 400) + patience(hasRun, kill);
    const code = await relay(hasRun ? ['resume'] : ['run', 'layers.json'], within);
    expect(code, `the run ended before kill ${kill}`).toBeNull();
    hasRun ||= (await look((api) => api.runs.list({}))).items.length > 0;
  }
  expect(await relay(['resume'], END_WITHIN_MS)).toBe(0);
  await look(proveWhole);
}, 600_000);

// SPEC S4.9
it(`a map of ${ITEMS} items survives ${MAP_KILLS} kills: every item once, all outputs in order (seed ${SEED})`, async () => {
  writeFileSync(join(folder, 'map.json'), JSON.stringify(mapOf(ITEMS)));
  const random = seededRandom(SEED);
  const data = ['--data', 'of-map'];
  let hasRun = false;
  for (let kill = 0; kill < MAP_KILLS; kill++) {
    const within = 350 + random() * 300 + patience(hasRun, kill);
    const code = await relay([...(hasRun ? ['resume'] : ['run', 'map.json']), ...data], within);
    expect(code, `the run ended before kill ${kill}`).toBeNull();
    hasRun ||= (await look((api) => api.runs.list({}), 'of-map')).items.length > 0;
  }
  expect(await relay(['resume', ...data], END_WITHIN_MS)).toBe(0);
  await look(async (api) => {
    const [summary] = (await api.runs.list({})).items;
    const run = await api.runs.get(summary?.id ?? '');
    expect(run).toMatchObject({ status: 'SUCCESS', outputs: { sum: (ITEMS * (ITEMS - 1)) / 2 } });
    expect(run.tasks[0]?.items).toEqual({ total: ITEMS, done: ITEMS, failed: 0 });
    const completed = (await completedEvents(api)).flatMap(({ task_id, map_index }) =>
      task_id === 'map' ? (map_index ?? []) : [],
    );
    expect(completed.toSorted((a, b) => a - b)).toEqual(Array.from({ length: ITEMS }, (_, index) => index));
    const pieces: Uint8Array[] = [];
    const content = await api.tasks.artifact(run.tasks[0]?.output_ref ?? '');
    for await (const piece of await content.read()) pieces.push(piece);
    expect(JSON.parse(Buffer.concat(pieces).toString())).toEqual(completed.toSorted((a, b) => a - b));
  }, 'of-map');
}, 600_000);

/** A busy machine may need longer to start at all: until there is a run, every try lives longer than the last. */
function patience(hasRun: boolean, kill: number): number {
  return hasRun ? 0 : kill * 200;
}

/** The sum is the last thing to be worked out; the wait lets the run outlive its kills. */
function mapOf(items: number): unknown {
  const map = { for_each: `range(${items})`, uses: 'transform', with: { value: '{{ item }}' } };
  const late = { for_each: [1, 2], uses: 'wait', with: { for: `${MAP_KILLS * 700}ms` } };
  return { name: 'map', tasks: { map, late }, outputs: { sum: '{{ tasks.map.output | sum }}' } };
}

async function proveWhole(api: RelayApi): Promise<void> {
  const { items } = await api.runs.list({});
  expect(items.map(({ status }) => status)).toEqual(['SUCCESS']);
  const { tasks } = await api.runs.get(items[0]?.id ?? '');
  expect(tasks).toHaveLength(TASKS);
  expect(new Set(tasks.map(({ status }) => status))).toEqual(new Set(['SUCCESS']));
  for (const { task_id, task_run_id, attempt } of tasks.filter(({ task_id }) => task_id.startsWith('t'))) {
    const outcomes = (await api.tasks.attempts(task_run_id)).items.map(({ outcome }) => outcome);
    // Every other attempt was lost with its process.
    const lost = Array.from({ length: attempt - 1 }, () => 'expired');
    expect(outcomes.toSorted(), task_id).toEqual(['complete', ...lost]);
  }
  const completed = (await completedEvents(api)).map(({ task_id }) => task_id);
  expect(completed.toSorted()).toEqual(tasks.map(({ task_id }) => task_id).toSorted());
}

async function completedEvents(api: RelayApi): Promise<readonly EventView[]> {
  const completed: EventView[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await api.events.page({ types: ['task.completed'], cursor, limit: 1_000 });
    completed.push(...page.items);
    if (page.items.length === 0) return completed;
    cursor = page.next_cursor ?? undefined;
  }
}

/** Runs `relay`; gives its exit code, or null when it had to be killed. */
async function relay(argv: readonly string[], killAfterMs: number): Promise<number | null> {
  const command = [join(ROOT, 'dist/cli/main.js'), ...argv];
  const child = spawn(process.execPath, command, { cwd: folder, stdio: 'ignore' });
  const timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs);
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  clearTimeout(timer);
  return code;
}

async function look<T>(ask: (api: RelayApi) => Promise<T>, data = '.relay'): Promise<T> {
  const options = { data, cwd: folder, env: {}, log: 'silent', by: 'test' } as const;
  const local = await LocalRelay.open({ ...options, writeLog: () => {} });
  try {
    return await ask(local.api);
  } finally {
    await local.close();
  }
}

function layers(): unknown {
  const tasks: Record<string, unknown> = {};
  const ids = (layer: number): readonly string[] =>
    Array.from({ length: WIDTH }, (_, index) => `t${layer}-${index}`);
  for (let layer = 0; layer < LAYERS; layer++) {
    const wait = `wait${layer}`;
    tasks[wait] = { needs: layer === 0 ? [] : ids(layer - 1), uses: 'wait', with: { for: `${WAIT_MS}ms` } };
    for (const id of ids(layer)) tasks[id] = { needs: [wait], uses: 'transform', with: { value: id } };
  }
  return { name: 'layers', tasks };
}
