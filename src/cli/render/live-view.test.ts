/** The live picture: what it shows when there is room, what it folds when there is none, and that no line is too long. */
import { stripVTControlCharacters } from 'node:util';
import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import type { EventView, RelayApi, RunSummary } from '../../app/api.ts';
import { RunProgress } from '../follow/run-progress.ts';
import { renderLive } from './live-view.ts';
import { widthOf } from './text.ts';

const START = Date.UTC(2026, 0, 1);
const RUN: RunSummary = {
  id: '0199-run',
  status: 'RUNNING',
  reason: null,
  workflow_name: 'brief',
  workflow_version: 1,
  labels: {},
  priority: 0,
  counts: {},
  cloned_from: null,
  trace_id: '',
  created_at: new Date(START).toISOString(),
  started_at: null,
  finished_at: null,
};

async function progressOf(tasks: Readonly<Record<string, readonly string[]>>): Promise<RunProgress> {
  const definition = {
    tasks: Object.fromEntries(Object.entries(tasks).map(([id, needs]) => [id, { needs }])),
  };
  const api = { workflows: { get: async () => ({ definition }) } };
  return RunProgress.of(RUN, api as unknown as RelayApi);
}

let seq = 0;
function event(task_id: string, to: string, data: Readonly<Record<string, unknown>> = {}, at = 0): EventView {
  const cursor = String(++seq);
  const place = { run_id: RUN.id, task_run_id: `run of ${task_id}`, task_id, map_index: null };
  return { cursor, type: 'task.x', at: new Date(START + at).toISOString(), ...place, data: { to, ...data } };
}

function draw(progress: RunProgress, size: { columns?: number; rows?: number; now?: number } = {}): string[] {
  const { columns = 80, rows = 24, now = 5_000 } = size;
  const colors = pc.createColors(true);
  const lines = renderLive(progress, {
    columns,
    rows,
    now: START + now,
    frame: 0,
    colors,
    footer: 'Ctrl-C cancels',
  });
  return lines.map(stripVTControlCharacters);
}

describe('the live picture', () => {
  it('shows a line per task in the order of the graph, with time, tries, bar and message', async () => {
    const progress = await progressOf({ last: ['first', 'bad'], first: [], bad: [], again: [] });
    progress.apply(event('first', 'RUNNING', { attempt: 1 }, 1_000));
    progress.apply(event('bad', 'RUNNING', { attempt: 2 }, 1_000));
    progress.apply(event('bad', 'FAILED', { attempt: 2, error: { message: 'oh\nno' } }, 3_500));
    progress.apply(event('last', 'SKIPPED', { reason: 'upstream_failed' }, 3_500));
    const later = new Date(START + 7_000).toISOString();
    progress.apply(event('again', 'QUEUED', { attempt: 1, not_before: later, error: { message: '503' } }));
    Object.assign(progress.tasks.find(({ task_id }) => task_id === 'first') ?? {}, {
      progress: 0.5,
      message: 'half',
    });
    expect(draw(progress)).toEqual([
      'brief  0199-run',
      '  5.0s · 1 running · 1 failed · 1 skipped · 1 to come',
      '  ⠋ first  4.0s      ████████░░░░░░░░ 50%  half',
      '  ✗ bad    2.5s   ×2  oh no',
      '  ↻ again             again in 2.0s: 503',
      '  – last              upstream failed',
      'Ctrl-C cancels',
    ]);
  });

  // SPEC S4.9
  it('shows a map as one line with a bar over its items', async () => {
    const progress = await progressOf({ map: [], next: ['map'] });
    const item = (index: number, to: string): EventView => ({
      ...event('map', to, {}, 1_000),
      task_run_id: `item ${index}`,
      map_index: index,
    });
    progress.apply({ ...event('map', 'PENDING', { total: 4 }, 1_000), type: 'task.expanded' });
    for (const index of [0, 1, 2, 3]) progress.apply(item(index, 'QUEUED'));
    for (const index of [0, 1, 2]) progress.apply(item(index, 'RUNNING'));
    progress.apply(item(0, 'SUCCESS'));
    progress.apply(item(1, 'FAILED'));
    expect(draw(progress).map((line) => line.trimEnd())).toEqual([
      'brief  0199-run',
      '  5.0s · 1 done · 1 running · 1 failed · 3 to come',
      '  ⠋ map   4.0s    ████████░░░░░░░░ 50%  2 of 4 items · 1 running · 1 failed',
      '  · next',
      'Ctrl-C cancels',
    ]);
    progress.apply(item(2, 'SUCCESS'));
    progress.apply(item(3, 'SUCCESS'));
    progress.apply(event('map', 'SUCCESS', { attempt: 1 }, 3_000));
    expect(draw(progress)[2]).toBe('  ✓ map   2.0s     4 of 4 items · 1 failed');
  });

  it('folds what is done and what is to come when the terminal is small', async () => {
    const ids = Array.from({ length: 100 }, (_, index) => `t${index}`);
    const progress = await progressOf(Object.fromEntries(ids.map((id) => [id, []])));
    for (const id of ids.slice(0, 60)) progress.apply(event(id, 'SUCCESS', {}, 10));
    progress.apply(event('t3', 'FAILED', { error: { message: 'x' } }, 10));
    for (const id of ids.slice(60, 63)) progress.apply(event(id, 'RUNNING', {}, 10));
    const lines = draw(progress, { rows: 12 });
    expect(lines).toHaveLength(11);
    expect(lines[2]).toBe('  ✓ 57 done');
    expect(lines.filter((line) => line.includes('⠋'))).toHaveLength(3);
    expect(lines.some((line) => line.includes('✗ t3'))).toBe(true);
    expect(lines.at(-2)).toBe('  · 37 to come');
  });

  it('never draws a line longer than the terminal, whatever tasks are called or say', async () => {
    const name = '界'.repeat(60);
    const progress = await progressOf({ [name]: [] });
    progress.apply(event(name, 'RUNNING', {}, 10));
    Object.assign(progress.tasks[0] ?? {}, { message: `\u001b[2J${'x'.repeat(500)}`, progress: 0.3 });
    for (const columns of [20, 40, 60, 100]) {
      for (const line of draw(progress, { columns })) {
        expect(widthOf(line)).toBeLessThan(columns);
        expect(line).not.toContain('\u001b');
      }
    }
  });
});
