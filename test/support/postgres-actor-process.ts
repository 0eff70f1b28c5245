/** A process of its own with an engine on a Postgres store that does what it is told, line by line, at the very moment it is told to. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { toRelayError } from '../../src/base/errors.ts';
import { createLogger } from '../../src/base/logger.ts';
import { Engine } from '../../src/engine/engine.ts';
import { BUILT_IN_HANDLERS } from '../../src/handlers/registry.ts';
import { FileBlobStore } from '../../src/stores/blobs/file-blob-store.ts';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import type { Settlement } from '../../src/worker/work-source.ts';
import type { Deeds, Order, Told } from './actors.ts';
import { canonical } from './harness.ts';

const [url = '', leaseMs = '30000'] = process.argv.slice(2);
const LATE = new Set<string>(['RUN_TERMINAL', 'NOT_FOUND']);
let jumpedMs = 0;
const resting = new AbortController();
/** The machine's clocks, and a wall clock that can be set. */
const clock: Clock = { now: () => systemClock.now() + jumpedMs, monotonic: systemClock.monotonic };
const store = new PostgresStore({ url, clock });
await store.migrate();
const engine = new Engine({
  store,
  blobs: new FileBlobStore(join(tmpdir(), 'relay-no-blobs')),
  handlers: BUILT_IN_HANDLERS,
  clock: store.clock,
  random: Math.random,
  logger: createLogger({ level: 'error', clock, write: (line) => process.stderr.write(line) }),
  secret: () => undefined,
  env: () => undefined,
  leaseMs: Number(leaseMs),
});
const { source } = await engine.source({ handlers: ['transform'] });
const now = (): AbortSignal => AbortSignal.abort();
const completed = (leases: readonly { readonly lease_id: string }[]): Settlement[] =>
  leases.map(({ lease_id }) => ({ kind: 'complete', lease_id, output: 1 }));

const DEEDS: { readonly [Deed in keyof Deeds]: (args: Deeds[Deed]) => Promise<unknown> } = {
  start: async ({ definition }) => {
    const workflow = await canonical(definition);
    return (await engine.startRun({ workflow }, { caller: 'actor' })).id;
  },
  claim: async ({ limit }) => (await source.next({ limit, settlements: [], signal: now() })).leases,
  settle: async ({ settlements }) => (await source.next({ limit: 0, settlements, signal: now() })).results,
  beat: async ({ lease_id }) => (await source.extend([{ lease_id }]))[0],
  cancel: async ({ run }) => engine.cancelRun(run, 'actor').then(() => 'cancelled'),
  reap: async () => engine.runOnce(),
  loops: async () => engine.start(),
  jump: async ({ ms }) => {
    jumpedMs += ms;
  },
  drain: async ({ limit }) => drain(limit),
  churn: async ({ width }) => churn(width),
  rest: async () => resting.abort(),
  cancelAll: async ({ count }) => cancelAll(count),
};

process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) void obey(JSON.parse(line) as Order);
await engine.stop();
await store.close();

async function obey({ id, at, deed, args }: Order): Promise<void> {
  // Processes on one machine share its clock; the last stretch is waited for without sleeping.
  while (systemClock.now() < at) if (at - systemClock.now() > 2) await new Promise((go) => setImmediate(go));
  const act = DEEDS[deed] as (args: unknown) => Promise<unknown>;
  const answer: Told = await act(args).then(
    (value) => ({ id, value: value ?? null }),
    (error: unknown) => ({ id, code: toRelayError(error).code, message: String(error) }),
  );
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

/** Takes work until no run is left; tells what it took. */
async function drain(limit: number): Promise<{ taken: string[]; refused: string[] }> {
  const taken: string[] = [];
  const refused: string[] = [];
  for (let settlements: Settlement[] = []; ; ) {
    const asked = await source.next({ limit, settlements, signal: now() });
    for (const result of asked.results) if (!result.ok) refused.push(result.code);
    taken.push(...asked.leases.map(({ task_run_id, attempt }) => `${task_run_id} ${attempt}`));
    settlements = completed(asked.leases);
    if (settlements.length > 0) continue;
    const active = await store.read((tx) => tx.runs.list({ status: 'RUNNING', limit: 1 }));
    if (active.length === 0) return { taken, refused };
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Starts small runs, several at a time, and works on whatever there is, its own or not. */
async function churn(width: number): Promise<number> {
  const workflow = await canonical({ name: 'churn', tasks: { a: {}, b: {}, c: { needs: ['a', 'b'] } } });
  let started = 0;
  while (!resting.signal.aborted) {
    const start = () => engine.startRun({ workflow }, { caller: 'actor' });
    await Promise.all(Array.from({ length: width }, start));
    started += width;
    const { leases } = await source.next({ limit: width * 2, settlements: [], signal: now() });
    const claim = source.next({ limit: width, settlements: completed(leases), signal: now() });
    await source.next({ limit: 0, settlements: completed((await claim).leases), signal: now() });
  }
  return started;
}

/** Cancels whatever runs, newest first, until it has done so many times; a run that was quicker, or is pruned, counts as well. */
async function cancelAll(count: number): Promise<number> {
  let rounds = 0;
  while (rounds < count) {
    const runs = await store.read((tx) => tx.runs.list({ status: 'RUNNING', limit: 20 }));
    const outcomes = await Promise.allSettled(runs.map(({ id }) => engine.cancelRun(id, 'actor')));
    for (const outcome of outcomes)
      if (outcome.status === 'rejected' && !LATE.has(toRelayError(outcome.reason).code)) throw outcome.reason;
    rounds += runs.length;
  }
  return rounds;
}
