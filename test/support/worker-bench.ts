/** A worker on a fake source with a clock that tests own. */
import { z } from 'zod';
import { ManualClock } from '../../src/base/clock.ts';
import { createLogger } from '../../src/base/logger.ts';
import { defineHandler, type Handler, type HandlerContext } from '../../src/handlers/handler.ts';
import type { Lease } from '../../src/worker/work-source.ts';
import { Worker, type WorkerOptions } from '../../src/worker/worker.ts';
import { FakeSource } from './fake-source.ts';

type Run = (context: HandlerContext<Readonly<Record<string, unknown>>>) => Promise<unknown>;

/** A handler called `work` that takes any config. */
function workHandler(run: Run): Handler {
  const config = z.record(z.string(), z.unknown());
  return defineHandler({ name: 'work', summary: 'for tests', config, run }) as Handler;
}

/** A worker and everything around it. */
export interface WorkerBench {
  readonly worker: Worker;
  readonly source: FakeSource;
  readonly clock: ManualClock;
  /** Names of what the worker logged, in order. */
  readonly events: string[];
  /** Moves the clock and does what is due then. */
  pass(ms: number): Promise<void>;
}

/** Starts a worker whose only handler is `run`. */
export async function startWorker(...args: Parameters<typeof makeWorker>): Promise<WorkerBench> {
  const bench = makeWorker(...args);
  await bench.worker.start();
  return bench;
}

/** The same, not started. */
export function makeWorker(
  run: Run,
  leases: readonly Lease[],
  options: Partial<WorkerOptions> = {},
): WorkerBench {
  const source = new FakeSource(leases);
  const clock = new ManualClock();
  const events: string[] = [];
  const write = (line: string): void => {
    events.push((JSON.parse(line) as { event: string }).event);
  };
  const worker = new Worker({
    source,
    handlers: new Map([['work', workHandler(run)]]),
    concurrency: 4,
    clock,
    logger: createLogger({ level: 'debug', clock, write }),
    env: {},
    workdir: '/',
    shutdownGraceMs: 1_000,
    ...options,
  });
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await worker.runDue();
  };
  return { worker, source, clock, events, pass };
}

/** A promise with its ends outside. */
export interface Deferred<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
}

/** Makes a promise that the test settles. */
export function defer<Value = void>(): Deferred<Value> {
  let ends: Pick<Deferred<Value>, 'resolve' | 'reject'> | undefined;
  const promise = new Promise<Value>((resolve, reject) => {
    ends = { resolve, reject };
  });
  return { promise, ...(ends as Pick<Deferred<Value>, 'resolve' | 'reject'>) };
}

/** A handler's work that ends only when it is told to stop. */
export function untilStopped(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}
