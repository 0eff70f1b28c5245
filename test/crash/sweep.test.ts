/**
 * The crash sweep: the process stops at the N-th statement, for every N, through a diamond with a retry and a gate, the cancel of
 * a second run, a map with an item that fails, a retry of it and a rerun with a shorter list, and a run with a limit of one and a budget. Another process opens what is left, repeats what it does not know to be recorded, and finishes.
 */
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { Settlement, SettlementResult } from '../../src/worker/work-source.ts';
import { STORES } from '../conformance/stores.ts';
import { CRASHED, Harness, HOPELESS } from '../support/harness.ts';
import { brokenPromises } from '../support/invariants.ts';
import { brokenLimits } from '../support/limit-invariants.ts';

const STATEMENTS_MAX = 2_000;
/** A store on a server takes its time: at length every statement, else every fifth. */
const strideOf = (store: string): number => (store === 'sqlite' || process.env.RELAY_LONG === 'yes' ? 1 : 5);
const END_TURNS_MAX = 100;

class Crash extends Error {}

/** What the world outside knows when the process stops. */
interface Memory {
  readonly said: Settlement[];
  /** Answers that were received, by lease. */
  readonly heard: Map<string, SettlementResult>;
}

describe.each(STORES)('crash sweep on $name', (kind) => {
  it('a process that stops at any statement loses nothing and records nothing twice', async () => {
    const parent = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
    for (let stopAt = 1; stopAt < STATEMENTS_MAX; stopAt += strideOf(kind.name)) {
      let count = Number.NEGATIVE_INFINITY;
      const stop = (name: string): void => {
        if (++count >= stopAt) throw new Crash(`stopped at statement ${stopAt}, ${name}`);
      };
      const harness = await Harness.on(kind, { onStatement: stop, parent, itemsChunk: 2, limits: LIMITS });
      const memory: Memory = { said: [], heard: new Map() };
      count = 0;
      const isThrough = await liveOn(harness, memory);
      await harness.restart();
      await repeatEverything(harness, memory, stopAt);
      await finishEverything(harness, stopAt);
      await harness.close();
      if (isThrough) {
        process.stdout.write(`crash sweep: ${stopAt - 1} statements\n`);
        return;
      }
    }
    expect.fail('the scenario has no end');
  }, 600_000);
});

/** The scenario; true when it went through without a crash. */
async function liveOn(harness: Harness, memory: Memory): Promise<boolean> {
  try {
    await scenario(harness, memory);
    return true;
  } catch (error) {
    if (isCrash(error)) return false;
    throw error;
  }
}

function isCrash(error: unknown): boolean {
  return (
    error instanceof Crash || (error instanceof Error && error.message.startsWith('stopped at statement'))
  );
}

const DIAMOND = {
  a: {},
  b: { needs: 'a', retry: { jitter: 0 }, with: { value: '{{ tasks.a.output }}' } },
  c: { needs: 'a', if: 'tasks.a.output == "a"' },
  d: { needs: ['b', 'c'], gate: { message: 'go on?' } },
};
const REST = { name: 'diamond', max_parallel: 2, outputs: { d: '{{ tasks.d.output }}' } };
const SECOND = { x: {}, y: { needs: 'x' }, z: {} };

/** Items are made two at a time, so that there is a boundary inside the list; the rerun has one item less. */
const MAPPED = {
  map: { for_each: 'range(3 - [task.attempt, 1] | min)', max_parallel: 2, with: { value: '{{ item }}' } },
  after: { with: { value: '{{ tasks.map.output | length }}' } },
};
const MAPPED_REST = { name: 'mapped', on_failure: 'continue' };
const LIMITS = { one: { concurrency: 1 }, models: { tokens_per_minute: 10_000, models: ['offline/*'] } };
const CALL = {
  uses: 'llm',
  limits: ['one'],
  with: { model: 'offline/brief', prompt: 'hi', max_tokens: 100 },
};
const THIRD = { p: CALL, q: CALL };
const BOUNDS = { name: 'third', budget: { tokens: 200 } };

async function limitedScenario(h: Harness, memory: Memory): Promise<void> {
  const third = await h.start(THIRD, BOUNDS, { priority: 10 });
  await h.idle();
  const [p] = await h.claim(2);
  await h.claim(1);
  if (p === undefined) throw new Error('one of the two can be claimed');
  const usage = { tokens_in: 10, tokens_out: 20 };
  await settle(h, memory, { kind: 'complete', lease_id: p.lease_id, output: 'p', usage });
  const [q] = await h.claim(2);
  if (q === undefined) throw new Error('the other one can be claimed');
  await settle(h, memory, { kind: 'fail', lease_id: q.lease_id, failure: HOPELESS, usage });
  await h.engine.retryRun(third, 'op', { budget: { tokens: 500 } });
  await h.idle();
  await h.claim(2);
}

async function scenario(h: Harness, memory: Memory): Promise<void> {
  await diamondAndCancel(h, memory);
  await mapped(h, memory);
}

async function mapped(h: Harness, memory: Memory): Promise<void> {
  const run = await h.start(MAPPED, MAPPED_REST, { priority: 1 });
  await h.idle();
  const [one, two] = await h.claimAll(2);
  await settle(h, memory, { kind: 'fail', lease_id: one.lease_id, failure: HOPELESS });
  await settle(h, memory, { kind: 'complete', lease_id: two.lease_id, output: 'map' });
  await say(h, memory, 'complete', 'map');
  await h.idle();
  await h.engine.retryRun(run, 'op');
  await h.idle();
  await say(h, memory, 'complete', 'map');
  await h.idle();
  await say(h, memory, 'complete', 'after');
  await h.engine.rerunFrom(run, 'map', 'op');
  await h.idle();
}

async function diamondAndCancel(h: Harness, memory: Memory): Promise<void> {
  const diamond = await h.start(DIAMOND, REST);
  const second = await h.start(SECOND, { name: 'second' }, { priority: -1 });
  await say(h, memory, 'complete', 'a');
  await h.idle();
  const [b, c] = await h.claimAll(2);
  await h.beat(b, { progress: 0.5, checkpoint: 1 });
  await settle(h, memory, { kind: 'fail', lease_id: b.lease_id, failure: CRASHED });
  await settle(h, memory, { kind: 'complete', lease_id: c.lease_id, output: 'c' });
  await say(h, memory, 'complete', 'x');
  const [y] = await h.claim(1);
  await h.engine.cancelRun(second, 'op');
  if (y !== undefined) await settle(h, memory, { kind: 'complete', lease_id: y.lease_id, output: 'y' });
  await h.leap(1_000);
  await say(h, memory, 'complete', 'b');
  await h.idle();
  await h.engine.decide((await h.task(diamond, 'd')).id, { kind: 'approve', by: 'op' });
  await say(h, memory, 'release', 'd');
  await say(h, memory, 'complete', 'd');
  await h.idle();
  await h.engine.rerunFrom(diamond, 'c', 'op');
  await h.idle();
  await limitedScenario(h, memory);
}

async function say(h: Harness, memory: Memory, kind: 'complete' | 'release', task_id: string): Promise<void> {
  const { lease_id } = await h.claimOne(task_id);
  await settle(h, memory, kind === 'complete' ? { kind, lease_id, output: task_id } : { kind, lease_id });
}

async function settle(h: Harness, memory: Memory, settlement: Settlement): Promise<void> {
  memory.said.push(settlement);
  const [result] = await h.settle(settlement);
  if (result?.ok === false && result.code === 'INTERNAL') throw new Crash(result.message);
  if (result !== undefined) memory.heard.set(settlement.lease_id, result);
}

/** A worker that does not know whether it was heard says it again: the answer is the first one, or the first time it counts. */
async function repeatEverything(h: Harness, { said, heard }: Memory, stopAt: number): Promise<void> {
  for (const settlement of said) {
    const [result] = await h.settle(settlement);
    const first = heard.get(settlement.lease_id);
    if (first !== undefined) expect(result, `statement ${stopAt}`).toEqual(first);
    const isCancelled = result?.ok === false && result.code === 'STALE_LEASE';
    const task = (await allTasks(h)).find(({ key }) => key === Number.parseInt(settlement.lease_id, 36));
    expect(
      result?.ok === true || (isCancelled && ['y', 'z'].includes(task?.task_id ?? '')),
      `statement ${stopAt}`,
    ).toBe(true);
  }
  await check(h, stopAt, 'the repeats');
}

async function finishEverything(h: Harness, stopAt: number): Promise<void> {
  const names = new Set((await allRuns(h)).map((run) => run.workflow_name));
  if (!names.has('diamond')) await h.start(DIAMOND, REST);
  if (!names.has('second')) await h.start(SECOND, { name: 'second' });
  if (!names.has('mapped')) await h.start(MAPPED, MAPPED_REST);
  if (!names.has('third')) await h.start(THIRD, BOUNDS);
  for (let turn = 0; turn < END_TURNS_MAX; turn++) {
    await h.idle();
    await check(h, stopAt, `turn ${turn}`);
    const runs = await allRuns(h);
    for (const { id } of runs.filter(({ status }) => status === 'FAILED'))
      await h.engine.retryRun(id, 'op', { budget: { tokens: 500 } });
    if (runs.every(({ status }) => ['SUCCESS', 'CANCELLED'].includes(status))) {
      const ends = runs.map(({ status, workflow_name }) => [workflow_name, status]);
      expect(ends).toContainEqual(['diamond', 'SUCCESS']);
      expect(ends).toContainEqual(['mapped', 'SUCCESS']);
      return;
    }
    for (const task of await allTasks(h))
      if (task.question_id !== null) await h.engine.decide(task.id, { kind: 'approve', by: 'op' });
    const leases = await h.claim(5);
    // `c` asks whether `a` gave "a", so every task gives its own name.
    await h.settle(
      ...leases.map(({ lease_id, task_id }) => ({ kind: 'complete', lease_id, output: task_id }) as const),
    );
    if (leases.length === 0) await h.pass(40_000);
  }
  expect.fail(`statement ${stopAt}: not everything ends`);
}

async function check(h: Harness, stopAt: number, after: string): Promise<void> {
  for (const { id } of await allRuns(h))
    expect(await brokenPromises(h.store, id), `statement ${stopAt}, ${after}`).toEqual([]);
  expect(await brokenLimits(h.store, h.clock.now()), `statement ${stopAt}, ${after}`).toEqual([]);
}

const allRuns = (h: Harness) => h.store.read((tx) => tx.runs.list({ limit: 10 }));

async function allTasks(h: Harness) {
  const lists = await Promise.all((await allRuns(h)).map(({ id }) => h.tasks(id)));
  return lists.flat();
}
