/**
 * Group commit (DESIGN "The hot path"): while one transaction is under way, arrivals queue up, and the next takes them all.
 * No timers: an arrival waits for the end of the current turn of the event loop, never for a clock. Results and claims of all
 * callers are merged into one step; a batch that fails is taken apart until the offender stands alone.
 */
import type { Clock } from '../base/clock.ts';
import { isStoreError, RelayError } from '../base/errors.ts';
import type { Random } from '../domain/retry.ts';
import type { RunRow, TaskRow } from '../stores/rows.ts';
import type { Store, Tx } from '../stores/store.ts';
import type { SettlementResult } from '../worker/work-source.ts';
import { advance } from './advance.ts';
import { type ClaimRequest, claim } from './claim.ts';
import type { LimitBook } from './limit-book.ts';
import type { Plans } from './plans.ts';
import { type PreparedSettlement, settle } from './settle.ts';
import { type NewRun, submit } from './submit.ts';
import { type Aftermath, Work } from './work.ts';

/** A worker's step: what it has finished, and what it has room for. */
export interface TickRequest {
  readonly settlements: readonly PreparedSettlement[];
  readonly claim: ClaimRequest | null;
}

/** What came of a step. */
export interface TickAnswer {
  readonly results: readonly SettlementResult[];
  readonly leased: readonly { readonly task: TaskRow; readonly run: RunRow }[];
}

interface Waiting<Request, Answer> {
  readonly request: Request;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

type Action = (work: Work) => Promise<unknown>;
type Tick = Waiting<TickRequest, TickAnswer>;
type Submit = Waiting<NewRun, RunRow>;
type Act = Waiting<Action, never>;

/** What one transaction takes. */
interface Batch {
  readonly ticks: readonly Tick[];
  readonly submits: readonly Submit[];
  readonly actions: readonly Act[];
}

/** Settlements and claims that one transaction takes at most, to bound its time. */
const TICKS_MAX = 64;
const ACTIONS_MAX = 64;
const SUBMITS_MAX = 500;
const SUBMITTED_TASKS_MAX = 10_000;

/** Collects requests and commits them together. */
export class Committer {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #chances: { readonly random: Random; readonly plans: Plans };
  readonly #afterCommit: (aftermath: Aftermath) => void;
  readonly #plans: Plans;
  readonly #book: LimitBook;
  readonly #ticks: Tick[] = [];
  readonly #submits: Submit[] = [];
  readonly #actions: Act[] = [];
  readonly #hasBroker: boolean;
  #isBusy = false;

  constructor(options: {
    store: Store;
    clock: Clock;
    random: Random;
    afterCommit: (aftermath: Aftermath) => void;
    plans: Plans;
    book: LimitBook;
    hasBroker: boolean;
  }) {
    this.#hasBroker = options.hasBroker;
    this.#plans = options.plans;
    this.#book = options.book;
    this.#store = options.store;
    this.#clock = options.clock;
    this.#chances = { random: options.random, plans: options.plans };
    this.#afterCommit = options.afterCommit;
  }

  /** Settles and claims with the next commit. */
  tick(request: TickRequest): Promise<TickAnswer> {
    return new Promise((resolve, reject) => {
      this.#ticks.push({ request, resolve, reject });
      this.#schedule();
    });
  }

  /** Starts a run with the next commit. */
  submit(request: NewRun): Promise<RunRow> {
    return new Promise((resolve, reject) => {
      this.#submits.push({ request, resolve, reject });
      this.#schedule();
    });
  }

  /** Any other change, in the same commits. Its errors are its own as long as it throws before it is flushed. */
  commit<T>(action: (work: Work) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#actions.push({ request: action, resolve: resolve as (answer: never) => void, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    setImmediate(() => void this.#drain());
  }

  async #drain(): Promise<void> {
    while (this.#ticks.length + this.#submits.length + this.#actions.length > 0) {
      await this.#runBatch({
        ticks: this.#ticks.splice(0, TICKS_MAX),
        submits: this.#takeSubmits(),
        actions: this.#actions.splice(0, ACTIONS_MAX),
      });
      // Let I/O in: a synchronous store would otherwise keep the loop to itself.
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#isBusy = false;
  }

  /** As many starts as one transaction may take; at least one, however large. */
  #takeSubmits(): readonly Submit[] {
    let tasks = 0;
    let count = 0;
    for (const { request } of this.#submits.slice(0, SUBMITS_MAX)) {
      tasks += Object.keys(request.workflow.tasks).length;
      if (count > 0 && tasks > SUBMITTED_TASKS_MAX) break;
      count += 1;
    }
    return this.#submits.splice(0, count);
  }

  /** One transaction for all; when it fails as a whole, one for each. */
  async #runBatch({ ticks, submits, actions }: Batch): Promise<void> {
    const all = [...actions, ...submits, ...ticks];
    let announce: () => void;
    try {
      announce = await this.#store.write((tx) => this.#apply(tx, { ticks, submits, actions }));
    } catch (error) {
      if (isStoreError(error) || (all.length === 1 && (ticks[0]?.request.settlements.length ?? 0) === 0)) {
        for (const waiting of all) waiting.reject(error);
        return;
      }
      for (const action of actions) await this.#runBatch({ ...NOTHING, actions: [action] });
      for (const start of submits) await this.#runBatch({ ...NOTHING, submits: [start] });
      if (all.length > 1) for (const tick of ticks) await this.#runBatch({ ...NOTHING, ticks: [tick] });
      else if (ticks[0] !== undefined) await this.#split(ticks[0]);
      return;
    }
    // What follows a commit can no longer undo it.
    announce();
  }

  /** Halves the settlements of one step until the one that the store refuses is alone and gets its own answer. */
  async #split({ request, resolve, reject }: Tick): Promise<void> {
    const { settlements } = request;
    const middle = Math.ceil(settlements.length / 2);
    try {
      const first = await this.#settleOnly(settlements.slice(0, middle));
      const second = await this.#settleOnly(settlements.slice(middle));
      const results = [...first, ...second];
      const claim: Tick = {
        request: { settlements: [], claim: request.claim },
        resolve: ({ leased }) => resolve({ results, leased }),
        reject,
      };
      // Not by `tick`: its turn would come only when this one is over.
      await this.#runBatch({ ...NOTHING, ticks: [claim] });
    } catch (error) {
      reject(error);
    }
  }

  async #settleOnly(settlements: readonly PreparedSettlement[]): Promise<readonly SettlementResult[]> {
    if (settlements.length === 0) return [];
    try {
      const answer = await this.#store.write(async (tx) => {
        const work = this.#newWork(tx, this.#clock.now());
        const results = await settle(work, settlements, this.#chances);
        await advance(work);
        await work.flush();
        return { results, aftermath: work.aftermath };
      });
      this.#afterCommit(answer.aftermath);
      return answer.results;
    } catch (error) {
      if (isStoreError(error)) throw error;
      if (settlements.length > 1) {
        const middle = Math.ceil(settlements.length / 2);
        const first = await this.#settleOnly(settlements.slice(0, middle));
        return [...first, ...(await this.#settleOnly(settlements.slice(middle)))];
      }
      const message = error instanceof Error ? error.message : String(error);
      return [{ lease_id: settlements[0]?.lease_id ?? '', ok: false, code: 'INTERNAL', message }];
    }
  }

  /** Applies a batch and returns what to do once it has committed. */
  async #apply(tx: Tx, { ticks, submits, actions }: Batch): Promise<() => void> {
    const now = this.#clock.now();
    await this.#book.ensure(tx);
    const done: (() => void)[] = [];
    for (const { request, resolve, reject } of actions) {
      const work = this.#newWork(tx, now);
      try {
        const answer = await request(work);
        await work.flush();
        done.push(() => {
          this.#afterCommit(work.aftermath);
          resolve(answer as never);
        });
      } catch (error) {
        // A refusal before the flush has changed nothing; anything else must undo the whole transaction.
        if (!(error instanceof RelayError) || work.isFlushed) throw error;
        done.push(() => reject(error));
      }
    }
    if (submits.length > 0) done.push(await this.#applySubmits(this.#newWork(tx, now), submits));
    if (ticks.length > 0) done.push(await this.#applyTicks(this.#newWork(tx, now), ticks));
    return () => {
      for (const answer of done) answer();
    };
  }

  #newWork(tx: Tx, now: number): Work {
    return new Work(tx, now, { book: this.#book, hasBroker: this.#hasBroker });
  }

  async #applySubmits(work: Work, submits: readonly Submit[]): Promise<() => void> {
    const starts = submits.map(({ request }) => request);
    const runs = await submit(work, starts, this.#plans);
    await work.flush();
    return () => {
      this.#afterCommit(work.aftermath);
      for (const [index, { resolve }] of submits.entries()) resolve(runs[index] as RunRow);
    };
  }

  async #applyTicks(work: Work, ticks: readonly Tick[]): Promise<() => void> {
    const settlements = ticks.flatMap(({ request }) => request.settlements);
    const results = settlements.length === 0 ? [] : await settle(work, settlements, this.#chances);
    await advance(work);
    const leased: TickAnswer['leased'][] = [];
    for (const { request } of ticks) {
      const tasks =
        request.claim === null || request.claim.limit <= 0 ? [] : await claim(work, request.claim);
      leased.push(tasks.map((task) => ({ task, run: work.runOf(task) })));
    }
    await work.flush();
    return () => {
      this.#afterCommit(work.aftermath);
      let from = 0;
      for (const [index, { request, resolve }] of ticks.entries()) {
        const own = results.slice(from, from + request.settlements.length);
        from += request.settlements.length;
        resolve({ results: own, leased: leased[index] ?? [] });
      }
    };
  }
}

const NOTHING: Batch = { ticks: [], submits: [], actions: [] };
