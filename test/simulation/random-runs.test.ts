/** Random graphs, random outcomes, random operators: after every step the stored truth equals a naive recount, and nothing hangs. */
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RelayError } from '../../src/base/errors.ts';
import type { Lease, Settlement } from '../../src/worker/work-source.ts';
import { STORES } from '../conformance/stores.ts';
import { CRASHED, Harness, HOPELESS } from '../support/harness.ts';
import { brokenMessages, brokenPromises } from '../support/invariants.ts';
import { brokenLimits } from '../support/limit-invariants.ts';
import { fc } from '../support/property.ts';

const SEED = Number(process.env.RELAY_SEED ?? 20_260_101);
const RUNS = Number(process.env.RELAY_SIMULATIONS ?? 300);
const TIMEOUT_MS = 60_000 + RUNS * 400;
/** The clock hardly moves here, so that what limits count only grows, and with it every check. */
const RUNS_OF_A_STORE = 250;
const END_TURNS_MAX = 300;

/** What every attempt uses, so that the sum tells how many were counted. */
const USAGE = { tokens_in: 1 };
const TASKS_MAX = 12;
const ITEMS_MAX = 5;
/** Less than most lists have, so that every run can be met between two chunks. */
const ITEMS_CHUNK = 2;
const taskArbitrary = fc.record({
  parents: fc.array(fc.nat(TASKS_MAX), { maxLength: 3 }),
  if: fc.option(fc.boolean(), { freq: 5, nil: undefined }),
  gate: fc.option(fc.constantFrom('fail', 'skip', 'timeout'), { freq: 6, nil: undefined }),
  when: fc.option(fc.constant('done'), { freq: 5, nil: undefined }),
  uses: fc.oneof(
    { weight: 10, arbitrary: fc.constant('transform') },
    fc.constantFrom('wait', 'approval', 'llm', 'llm'),
  ),
  limits: fc.option(fc.constantFrom(['one'], ['two'], ['one', 'two']), { freq: 3, nil: undefined }),
  attempts: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  losses: fc.option(fc.integer({ min: 0, max: 2 }), { freq: 6, nil: undefined }),
  priority: fc.option(fc.integer({ min: -2, max: 2 }), { nil: undefined }),
  map: fc.oneof(
    { weight: 2, arbitrary: fc.constant(undefined) },
    fc.record({
      size: fc.nat(ITEMS_MAX),
      on_item_failure: fc.constantFrom('fail', 'collect'),
      max_parallel: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
    }),
  ),
});
const workflowArbitrary = fc.record({
  tasks: fc.array(taskArbitrary, { minLength: 1, maxLength: TASKS_MAX }),
  on_failure: fc.constantFrom('fail_fast', 'continue'),
  max_parallel: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  timeout: fc.option(fc.constantFrom('20s', '5m'), { freq: 6, nil: undefined }),
  outputs: fc.boolean(),
  /** An `llm` task reserves 125 tokens. */
  budget: fc.option(fc.constantFrom(130, 260, 100_000), { freq: 4, nil: undefined }),
  /** Tasks may be named in any order. */
  isReversed: fc.boolean(),
});
type RandomTask = RandomWorkflow['tasks'][number];
type RandomWorkflow = typeof workflowArbitrary extends fc.Arbitrary<infer T> ? T : never;

const KINDS = [
  'claim',
  'claim',
  'claim',
  'complete',
  'complete',
  'complete',
  'complete',
  'turn',
  'turn',
  'fail',
  'fail',
  'fail_hard',
  'release',
  'pause',
  'approve',
  'approve',
  'reject',
  'beat',
  'batch',
  'batch',
  'claim_unstarted',
  'cancel',
  'cancel_task',
  'pause_run',
  'resume_run',
  'retry',
  'rerun',
  'replay',
  'repeat',
  'repeat_twice',
  'contradict',
  'die',
  'seconds',
  'minute',
  'restart',
  'work_on',
  'work_on',
  'answer_all',
  'ask_all',
  'after_the_end',
  'after_the_end',
] as const;
const stepArbitrary = fc.record({ kind: fc.constantFrom(...KINDS), pick: fc.nat(1_000) });
type Step = typeof stepArbitrary extends fc.Arbitrary<infer T> ? T : never;

describe.each(STORES)('random runs on $name', (kind) => {
  /** Every other run has a broker, so that its messages are written. */
  let harnesses: readonly Harness[] = [];
  let played = 0;
  const open = async (): Promise<void> => {
    const limits = {
      one: { concurrency: 1 },
      two: { concurrency: 2, rate: '3/20s' },
      models: { tokens_per_minute: 300, models: ['offline/*'] },
    };
    const parent = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
    const options = { limits, parent, itemsChunk: ITEMS_CHUNK };
    harnesses = [await Harness.on(kind, options), await Harness.on(kind, { ...options, hasBroker: true })];
  };
  const close = async (): Promise<void> => {
    for (const harness of harnesses) await harness.close();
  };
  beforeAll(open);
  afterAll(close);

  it(
    `every step keeps every promise and every run ends (seed ${SEED})`,
    async () => {
      process.stdout.write(
        `simulation: seed ${SEED}, ${RUNS} runs (RELAY_SEED and RELAY_SIMULATIONS change them)\n`,
      );
      await fc.assert(
        fc.asyncProperty(
          workflowArbitrary,
          fc.array(stepArbitrary, { minLength: 10, maxLength: 60 }),
          async (random, steps) => {
            played += 1;
            if (played % RUNS_OF_A_STORE === 0) {
              await close();
              await open();
            }
            const [first, second] = harnesses as [Harness, Harness];
            const harness = steps.length % 2 === 0 ? first : second;
            const run_id = await harness.start(toTasks(random), toRest(random));
            const play = new Play(harness, { run_id, hasBroker: harness === second });
            await play.check('start');
            for (const step of steps) {
              await play.take(step);
              await play.check(step.kind);
            }
            await play.toTheEnd();
          },
        ),
        { seed: SEED, numRuns: RUNS, endOnFailure: process.env.RELAY_SHRINK !== 'yes' },
      );
    },
    TIMEOUT_MS,
  );
});

/** One run, the leases its worker holds, and everything it has said before. */
class Play {
  readonly #harness: Harness;
  readonly #run_id: string;
  readonly #hasBroker: boolean;
  #held: Lease[] = [];
  readonly #said: Settlement[] = [];

  constructor(harness: Harness, { run_id, hasBroker }: { run_id: string; hasBroker: boolean }) {
    this.#harness = harness;
    this.#run_id = run_id;
    this.#hasBroker = hasBroker;
  }

  async check(after: string): Promise<void> {
    const broken = await brokenPromises(this.#harness.store, this.#run_id);
    if (this.#hasBroker) broken.push(...(await brokenMessages(this.#harness.store, this.#run_id)));
    expect(broken, `after ${after}`).toEqual([]);
    const { store, clock } = this.#harness;
    expect(await brokenLimits(store, clock.now()), `after ${after}`).toEqual([]);
  }

  async take({ kind, pick }: Step): Promise<void> {
    const harness = this.#harness;
    switch (kind) {
      case 'claim':
        this.#held.push(...(await harness.claim(1 + (pick % 3))));
        return;
      case 'claim_unstarted':
        await harness.claimRows({ limit: 1 + (pick % 2) });
        return;
      case 'complete':
        return this.#say(pick, (lease_id) => ({
          kind: 'complete',
          lease_id,
          output: { n: pick },
          usage: USAGE,
        }));
      case 'fail':
        return this.#say(pick, (lease_id) => ({ kind: 'fail', lease_id, failure: CRASHED, usage: USAGE }));
      case 'fail_hard':
        return this.#say(pick, (lease_id) => ({ kind: 'fail', lease_id, failure: HOPELESS }));
      case 'release':
        return this.#say(pick, (lease_id) => ({ kind: 'release', lease_id }));
      case 'pause':
        return this.#say(pick, (lease_id) => {
          const status = pick % 2 === 0 ? 'BLOCKED' : 'WAITING_INPUT';
          return { kind: 'pause', lease_id, status, question: { key: 'q', message: 'which?' } };
        });
      case 'batch':
        return this.#sayAll(pick);
      case 'beat': {
        const lease = this.#held[pick % Math.max(1, this.#held.length)];
        if (lease !== undefined) await harness.beat(lease, { progress: (pick % 10) / 10 });
        return;
      }
      case 'repeat':
      case 'repeat_twice': {
        const earlier = this.#said[pick % Math.max(1, this.#said.length)];
        if (earlier !== undefined)
          await harness.settle(...(kind === 'repeat' ? [earlier] : [earlier, earlier]));
        return;
      }
      case 'contradict': {
        const earlier = this.#said[pick % Math.max(1, this.#said.length)];
        if (earlier !== undefined) await harness.complete(earlier, 'something else', USAGE);
        return;
      }
      case 'die':
        this.#held = [];
        return;
      default:
        return this.#operate(kind, pick);
    }
  }

  async #operate(kind: Step['kind'], pick: number): Promise<void> {
    const harness = this.#harness;
    const { engine } = harness;
    const id = this.#run_id;
    const tasks = await harness.tasks(id);
    const one = tasks[pick % tasks.length];
    switch (kind) {
      case 'turn':
        await engine.runOnce();
        return;
      case 'work_on':
        await this.#workOn(1 + (pick % 4));
        return;
      case 'answer_all':
        return this.#answerAll();
      case 'ask_all':
        return this.#askAll();
      case 'after_the_end':
        return this.#afterTheEnd(pick);
      case 'seconds':
        return harness.pass(1_000 + (pick % 4_000));
      case 'minute':
        return harness.pass(60_000);
      case 'restart':
        this.#held = [];
        return harness.restart();
      case 'cancel':
        return refusable(() => engine.cancelRun(id, 'op'));
      case 'cancel_task':
        return refusable(() => engine.cancelTask(one?.id ?? ''));
      case 'pause_run':
        return refusable(() => engine.pauseRun(id, 'op'));
      case 'resume_run':
        return refusable(() => engine.resumeRun(id, 'op'));
      case 'retry':
        return refusable(() =>
          engine.retryRun(id, 'op', pick % 2 === 0 ? {} : { budget: { tokens: 500 + pick } }),
        );
      case 'rerun':
        return refusable(() => engine.rerunFrom(id, one?.task_id ?? '', 'op'));
      case 'replay': {
        const dead = tasks.filter((task) => task.status === 'FAILED');
        const chosen = dead[pick % Math.max(1, dead.length)] ?? one;
        return refusable(() =>
          engine.replayTask(chosen?.id ?? '', { resetAttempts: pick % 2 === 0, by: 'op' }),
        );
      }
      case 'approve':
      case 'reject': {
        const asking = tasks.filter((task) => task.question_id !== null);
        const chosen = asking[pick % Math.max(1, asking.length)] ?? one;
        return refusable(() => engine.decide(chosen?.id ?? '', { kind, by: 'somebody' }));
      }
    }
  }

  /** Whatever the run needs is done for it, until it is over. */
  async toTheEnd(): Promise<void> {
    const harness = this.#harness;
    this.#held = [];
    for (let turn = 0; turn < END_TURNS_MAX; turn++) {
      await harness.idle();
      const run = await harness.run(this.#run_id);
      if (['SUCCESS', 'FAILED', 'CANCELLED'].includes(run.status)) return this.check('the end');
      if (run.paused === 1) await harness.engine.resumeRun(this.#run_id, 'op');
      await this.#answerAll();
      if ((await this.#workOn(1)) === 0) await harness.pass(20_000);
      await this.check('a turn towards the end');
    }
    expect.fail(`the run hangs: ${JSON.stringify(await harness.statuses(this.#run_id))}`);
  }

  /** A well-behaved worker takes some rounds. */
  async #workOn(rounds: number): Promise<number> {
    let count = 0;
    for (let round = 0; round < rounds; round++) {
      await this.#harness.idle();
      const leases = await this.#harness.claim(10);
      const said = leases.map(
        ({ lease_id }) => ({ kind: 'complete', lease_id, output: 1, usage: USAGE }) as const,
      );
      this.#said.push(...said);
      await this.#harness.settle(...said);
      count += leases.length;
    }
    return count;
  }

  async #answerAll(): Promise<void> {
    for (const task of await this.#harness.tasks(this.#run_id)) {
      if (task.question_id === null) continue;
      await refusable(() => this.#harness.engine.decide(task.id, { kind: 'approve', by: 'somebody' }));
    }
  }

  /** Every held lease ends with a question. */
  async #askAll(): Promise<void> {
    const question = { key: 'q', message: 'which?' };
    await this.#harness.settle(
      ...this.#held.map(
        ({ lease_id }) => ({ kind: 'pause', lease_id, status: 'BLOCKED', question }) as const,
      ),
    );
    this.#held = [];
  }

  /** The run comes to its end, and somebody starts it again. */
  async #afterTheEnd(pick: number): Promise<void> {
    await this.toTheEnd();
    await this.#operate((['retry', 'rerun', 'rerun', 'replay'] as const)[pick % 4] ?? 'rerun', pick >> 2);
  }

  async #say(pick: number, make: (lease_id: string) => Settlement): Promise<void> {
    const [lease] = this.#held.splice(pick % Math.max(1, this.#held.length), 1);
    if (lease === undefined) return;
    const settlement = make(lease.lease_id);
    this.#said.push(settlement);
    await this.#harness.settle(settlement);
  }

  /** Everything that is held ends in one step, well or badly, and the room is filled again. */
  async #sayAll(pick: number): Promise<void> {
    const settlements = this.#held.map(({ lease_id }, index): Settlement => {
      const isBad = ((pick >> index) & 1) === 1;
      if (!isBad) return { kind: 'complete', lease_id, output: index, usage: USAGE };
      return { kind: 'fail', lease_id, failure: pick % 2 === 0 ? CRASHED : HOPELESS };
    });
    this.#said.push(...settlements);
    const step = { limit: 1 + (pick % 4), settlements, signal: AbortSignal.abort() };
    this.#held = [...(await this.#harness.source.next(step)).leases];
  }
}

/** An operator may be told no, but only in the words of the error table. */
async function refusable(action: () => Promise<unknown>): Promise<void> {
  try {
    await action();
  } catch (error) {
    if (!(error instanceof RelayError) || error.code === 'INTERNAL') throw error;
  }
}

function toTasks(random: RandomWorkflow): Record<string, object> {
  const entries = random.tasks.map((task, index) => {
    const needs = task.parents.filter((parent) => parent < index).map((parent) => `t${parent}`);
    const gate =
      task.gate === undefined
        ? undefined
        : { message: 'go on?', ...(task.gate === 'timeout' ? { timeout: '45s' } : { on_reject: task.gate }) };
    const config = {
      transform: { value: index },
      wait: { for: '10s' },
      approval: { message: 'yes?' },
      llm: { model: 'offline/brief', prompt: 'hi', max_tokens: 100 },
    }[task.uses];
    const retry = {
      ...(task.attempts !== undefined && { max_attempts: task.attempts }),
      ...(task.losses !== undefined && { max_losses: task.losses }),
    };
    return [
      `t${index}`,
      {
        uses: task.uses,
        with: config,
        needs,
        retry,
        ...(task.if !== undefined && { if: task.if }),
        ...(gate !== undefined && { gate }),
        ...(task.when !== undefined && { when: task.when }),
        ...(task.priority !== undefined && { priority: task.priority }),
        ...(task.map !== undefined && toMap(task.map)),
        ...(task.limits !== undefined && { limits: task.limits }),
      },
    ] as const;
  });
  return Object.fromEntries(random.isReversed ? entries.toReversed() : entries);
}

/** A rerun gets a longer or a shorter list: the attempt grows with every end of a map. */
function toMap({
  size,
  on_item_failure,
  max_parallel,
}: NonNullable<RandomTask['map']>): Record<string, unknown> {
  return {
    for_each: `range((${size} + 4 * task.attempt) % ${ITEMS_MAX + 1})`,
    on_item_failure,
    ...(max_parallel !== undefined && { max_parallel }),
  };
}

function toRest(random: RandomWorkflow): Record<string, unknown> {
  const { on_failure, max_parallel, timeout, outputs, budget } = random;
  return {
    on_failure,
    ...(budget !== undefined && { budget: { tokens: budget } }),
    ...(max_parallel !== undefined && { max_parallel }),
    ...(timeout !== undefined && { timeout }),
    ...(outputs && { outputs: { first: '{{ tasks.t0.output }}' } }),
  };
}
