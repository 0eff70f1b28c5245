/** Measures the engine through the real worker with a handler that does nothing: what is left is what Relay costs. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../base/clock.ts';
import type { Task, Workflow } from '../definition/workflow.ts';
import { RELAY_DEFAULTS, type RelaySettings } from '../domain/relay-settings.ts';
import { isTerminal } from '../domain/states.ts';
import { defineHandler, type Handler } from '../handlers/handler.ts';
import { transform } from '../handlers/transform.ts';
import { LocalRelay } from './local-relay.ts';

/** Shapes of work that can be measured. */
export const WORKLOADS = ['fanout', 'chain', 'diamonds'] as const;
/** One of them. */
export type Workload = (typeof WORKLOADS)[number];

/** What is measured. */
export interface BenchOptions {
  readonly workload: Workload;
  /** Tasks altogether, about: shapes round it. */
  readonly tasks: number;
  /** A store URL; by default a new file that is removed afterwards. */
  readonly store?: string | undefined;
  /** A broker URL: tasks go through the outbox and the broker to the same worker. */
  readonly broker?: string | undefined;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly concurrency: number;
}

/** What was measured. */
export interface BenchResult {
  readonly workload: Workload;
  readonly tasks: number;
  readonly seconds: number;
  readonly tasks_per_s: number;
  /** From the end of the last parent's handler to the start of the child's. */
  readonly hop_ms: { readonly p50: number; readonly p99: number };
  readonly store: string;
  readonly settings: Readonly<Record<string, unknown>>;
}

const WARM_TASKS = 10_000;
/** Sends go out together, as they would where throughput matters. */
const BROKER_SETTINGS: RelaySettings = { ...RELAY_DEFAULTS, batchSize: 500, publishConcurrency: 64 };

/** Runs the workload once, from the first start to the last end, after as many rounds of it as warm everything up. */
export async function measure(options: BenchOptions): Promise<BenchResult> {
  const folder = mkdtempSync(join(tmpdir(), 'relay-bench-'));
  const { concurrency } = options;
  const probe = new Probe();
  const relay = await LocalRelay.open({
    data: folder,
    store: options.store,
    broker: options.broker,
    cwd: options.cwd,
    env: options.env,
    log: 'warn',
    by: 'bench',
    writeLog: () => {},
    handlers: [probe.handler],
  });
  try {
    const workflows = SHAPES[options.workload](options.tasks);
    const tasks = workflows.reduce((sum, workflow) => sum + Object.keys(workflow.tasks).length, 0);
    await relay.startEngine();
    if (relay.broker !== null) await relay.startOutboxRelay(BROKER_SETTINGS);
    await relay.startWorker({ concurrency });
    const warm = SHAPES[options.workload](Math.min(options.tasks, WARM_TASKS));
    for (let done = 0; done < WARM_TASKS; done += options.tasks) {
      await runAll(relay, warm, probe);
      probe.reset();
    }
    const startedAt = systemClock.monotonic();
    await runAll(relay, workflows, probe);
    const seconds = (systemClock.monotonic() - startedAt) / 1_000;
    return {
      workload: options.workload,
      tasks,
      seconds: round(seconds),
      tasks_per_s: Math.round(tasks / seconds),
      hop_ms: { p50: round(probe.hop(0.5)), p99: round(probe.hop(0.99)) },
      store: relay.store.description.startsWith(`sqlite:${folder}`)
        ? 'sqlite (temporary)'
        : relay.store.description,
      settings: {
        concurrency,
        synchronous: 'full',
        node: process.versions.node,
        warm_tasks: WARM_TASKS,
        ...(relay.broker === null ? {} : { broker: relay.broker.description, ...BROKER_SETTINGS }),
      },
    };
  } finally {
    await relay.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runAll(relay: LocalRelay, workflows: readonly Workflow[], probe: Probe): Promise<void> {
  const { engine, store } = relay;
  const runs = await Promise.all(
    workflows.map(async (workflow) => {
      const run = await engine.startRun({ workflow }, { caller: 'bench' });
      probe.expect(run.id, workflow);
      return run.key;
    }),
  );
  const total = workflows.reduce((sum, workflow) => sum + Object.keys(workflow.tasks).length, 0);
  // Looking at all runs after each that ends would measure the looking.
  await probe.called(total);
  const never = new AbortController().signal;
  for (let open = runs; open.length > 0; ) {
    const mark = engine.finished.mark();
    const rows = await store.read((tx) => tx.runs.byKeys(open));
    open = rows.filter(({ status }) => !isTerminal(status)).map(({ key }) => key);
    if (open.length > 0) await engine.finished.after(mark, never);
  }
}

/** A `transform` that writes down when it was called. */
class Probe {
  readonly handler: Handler;
  readonly #needs = new Map<string, ReadonlyMap<string, readonly string[]>>();
  readonly #ends = new Map<string, number>();
  readonly #hops: number[] = [];
  #calls = 0;
  #awaited: { readonly count: number; readonly resolve: () => void } | null = null;

  constructor() {
    const run: Handler['run'] = async (context) => {
      this.#note(context.task.run_id, context.task.task_id);
      return transform.run(context as Parameters<typeof transform.run>[0]);
    };
    this.handler = defineHandler({ ...transform, run } as Handler);
  }

  expect(run_id: string, workflow: Workflow): void {
    this.#needs.set(run_id, new Map(Object.entries(workflow.tasks).map(([id, { needs }]) => [id, needs])));
  }

  /** Resolves when the handler has been called so many times since the last reset. */
  called(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#awaited = { count, resolve };
      this.#check();
    });
  }

  /** Forgets what was measured. */
  reset(): void {
    this.#calls = 0;
    this.#ends.clear();
    this.#hops.length = 0;
  }

  #check(): void {
    if (this.#awaited === null || this.#calls < this.#awaited.count) return;
    this.#awaited.resolve();
    this.#awaited = null;
  }

  hop(share: number): number {
    const sorted = this.#hops.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  }

  #note(run_id: string, task_id: string): void {
    const now = systemClock.monotonic();
    const needs = this.#needs.get(run_id)?.get(task_id) ?? [];
    if (needs.length > 0) {
      let last = 0;
      for (const need of needs) last = Math.max(last, this.#ends.get(`${run_id} ${need}`) ?? 0);
      if (last > 0) this.#hops.push(now - last);
    }
    this.#ends.set(`${run_id} ${task_id}`, now);
    this.#calls += 1;
    this.#check();
  }
}

const SHAPES: Readonly<Record<Workload, (tasks: number) => readonly Workflow[]>> = {
  fanout: (tasks) => {
    const middle = Array.from({ length: Math.max(1, tasks - 2) }, (_, index) => `t${index}`);
    const entries = middle.map((id) => [id, task(['first'])] as const);
    return [shape('fanout', [['first', task([])], ...entries, ['last', task(middle)]])];
  },
  chain: (tasks) => {
    const ids = Array.from({ length: Math.max(1, tasks) }, (_, index) => `t${index}`);
    return [
      shape(
        'chain',
        ids.map((id, index) => [id, task(index === 0 ? [] : [`t${index - 1}`])]),
      ),
    ];
  },
  diamonds: (tasks) => {
    const diamond = shape('diamond', [
      ['a', task([])],
      ['b', task(['a'])],
      ['c', task(['a'])],
      ['d', task(['b', 'c'])],
    ]);
    return Array.from({ length: Math.max(1, Math.round(tasks / 4)) }, () => diamond);
  },
};

function task(needs: readonly string[]): Task {
  return { needs, uses: 'transform', with: { value: 1 } } as Task;
}

function shape(name: string, tasks: readonly (readonly [string, Task])[]): Workflow {
  return { name: `bench-${name}`, tasks: Object.fromEntries(tasks) } as Workflow;
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
