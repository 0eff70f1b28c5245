/** Maps on the command line: one line for a map, items by index, what failed by name, the first items of a dry run (SPEC S4.9, S13.2). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { relay as call } from '../../../test/support/memory-io.ts';
import type { Page, RunView, TaskView } from '../../app/api.ts';

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'relay-maps-'));
  writeFileSync(join(cwd, 'map.yaml'), MAP);
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const relay = (...argv: readonly string[]) => call(argv, { cwd });
const json = async <T>(...argv: readonly string[]): Promise<T> =>
  JSON.parse((await relay(...argv, '--json')).out) as T;

const MAP = `name: map
on_failure: continue
inputs: { list: { type: array, default: [3, 1, 0, 2] } }
tasks:
  divide:
    for_each: "{{ inputs.list }}"
    max_parallel: 2
    uses: transform
    with: { value: "{{ 6 / item }} at {{ index }}" }
  after: { uses: transform, with: { value: "{{ tasks.divide.output | length }}" } }
`;

// SPEC S4.9, S13.2
describe('a map', () => {
  it('is one line, and of its items only those that somebody may act on are told', async () => {
    const { code, out } = await relay('run', 'map.yaml');
    const lines = stripVTControlCharacters(out)
      .split('\n')
      .map((line) => line.replace(/^\d\d:\d\d:\d\d {2}/, '').replace(/ {2}\d+ms/, ''));
    expect(code).toBe(1);
    expect(lines).toContain('divide  PENDING  4 items');
    expect(lines.filter((line) => line.startsWith('divide['))).toEqual([
      'divide[2]  FAILED  division by zero',
    ]);
    expect(lines).toContain('divide  FAILED  4 of 4 items, 1 failed  item 2 failed: division by zero');
    expect(out).toContain('✗ divide[2]  template TEMPLATE_FAILED');
    expect(out).toContain("'divide[2]'   what it said");
  });

  it('shows its counts, and its items by index', async () => {
    const { id } = await json<RunView>('run', 'map.yaml');
    const run = await json<RunView>('runs', 'show', id);
    expect(run.tasks.map(({ task_id, map_index, items }) => [task_id, map_index, items])).toEqual([
      ['divide', null, { total: 4, done: 4, failed: 1 }],
      ['after', null, null],
      ...[0, 1, 2, 3].map((index) => ['divide', index, null]),
    ]);
    const shown = (await relay('runs', 'show', id)).out;
    expect(shown).toContain('4 of 4 items done, 1 failed');
    expect(shown).not.toContain('divide[0]');
    expect((await relay('tasks', 'show', id, 'divide')).out).toContain('items:     4 of 4 done, 1 failed');
    const item = await json<TaskView & { input: unknown }>('tasks', 'show', id, 'divide[3]');
    expect(item).toMatchObject({ map_index: 3, output: '3 at 3', input: { value: '3 at 3' } });
    for (const [name, message] of [
      ['divide[4]', 'there is no item 4: `divide` has 4 items, counted from 0'],
      ['after[0]', 'there is no item 0: `after` has no `for_each`'],
    ] as const) {
      const { code, err } = await relay('tasks', 'show', id, name);
      expect({ code, message: err.split('\n')[0] }).toEqual({ code: 3, message: `error: ${message}` });
    }
  });

  it('has its dead items in the list of dead tasks, and not itself', async () => {
    const { id } = await json<RunView>('run', 'map.yaml');
    const dead = await json<Page<TaskView>>('dead-letters', 'list');
    expect(dead.items.map(({ task_id, map_index }) => [task_id, map_index])).toEqual([['divide', 2]]);
    expect((await relay('dead-letters', 'replay', '--run', id)).code).toBe(0);
  });

  it('shows in a dry run what its first items would get', async () => {
    const { out } = await relay('run', 'map.yaml', '--dry-run', '-i', 'list=[1,2,3,6]');
    expect(stripVTControlCharacters(out)).toContain(
      '  divide[2] of 4 items transform\n    {\n      "value": "2 at 2"\n    }\n',
    );
    expect(out).not.toContain('divide[3]');
    expect((await relay('run', 'map.yaml', '--dry-run', '-i', 'list=[]')).out).toContain('an empty list');
  });

  it('can be run by itself with what an earlier run gave', async () => {
    const { id } = await json<RunView>('run', 'map.yaml', '-i', 'list=[1,2]');
    const only = await json<RunView>('run', 'map.yaml', '--only', 'divide', '--from', id);
    expect(only.outputs).toEqual({ divide: ['6 at 0', '3 at 1'] });
  });
});
