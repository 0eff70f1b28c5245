/** Processes that do what a test tells them, together and at one instant. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Settlement } from '../../src/worker/work-source.ts';

const PROGRAM = join(dirname(fileURLToPath(import.meta.url)), 'postgres-actor-process.ts');
/** How far ahead an instant is, so that everybody has heard of it. */
const AHEAD_MS = 5;

/** What an actor can do, with what it needs for it. */
export interface Deeds {
  readonly start: { readonly definition: Readonly<Record<string, unknown>> };
  readonly claim: { readonly limit: number };
  readonly settle: { readonly settlements: readonly Settlement[] };
  readonly beat: { readonly lease_id: string };
  readonly cancel: { readonly run: string };
  /** Turns every loop once. */
  readonly reap: object;
  /** Lets the loops turn by themselves. */
  readonly loops: object;
  /** Sets the wall clock of the process. */
  readonly jump: { readonly ms: number };
  /** Takes work until no run is left. */
  readonly drain: { readonly limit: number };
  /** Starts small runs, several at a time, and works on whatever there is, until told to rest. */
  readonly churn: { readonly width: number };
  readonly rest: object;
  /** Cancels whatever runs, so many times. */
  readonly cancelAll: { readonly count: number };
}

/** An order: what to do, and when (milliseconds since the epoch). */
export interface Order<Deed extends keyof Deeds = keyof Deeds> {
  readonly id: number;
  readonly at: number;
  readonly deed: Deed;
  readonly args: Deeds[Deed];
}

/** What came of it: a value, or the code of an error. */
export type Told =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly code: string; readonly message: string };

/** One process. */
export class Actor {
  readonly process: ChildProcess;
  readonly #waiting = new Map<number, (told: Told) => void>();
  #orders = 0;

  private constructor(child: ChildProcess) {
    this.process = child;
  }

  /** Starts processes on a store, all at once. */
  static async start(url: string, count: number, options: { leaseMs?: number } = {}): Promise<Actor[]> {
    return Promise.all(Array.from({ length: count }, () => Actor.#startOne(url, options.leaseMs ?? 30_000)));
  }

  static async #startOne(url: string, leaseMs: number): Promise<Actor> {
    const argv = ['--import', 'tsx', PROGRAM, url, String(leaseMs)];
    const child = spawn(process.execPath, argv, { stdio: ['pipe', 'pipe', 'inherit'] });
    const actor = new Actor(child);
    const lines = createInterface({ input: child.stdout });
    await once(lines, 'line');
    lines.on('line', (line) => {
      const told = JSON.parse(line) as Told;
      actor.#waiting.get(told.id)?.(told);
      actor.#waiting.delete(told.id);
    });
    return actor;
  }

  /** Tells it to do something, now or at an instant. Rejects with the code of its error. */
  async do<T, Deed extends keyof Deeds = keyof Deeds>(deed: Deed, args: Deeds[Deed], at = 0): Promise<T> {
    const told = await this.attempt(deed, args, at);
    if ('code' in told) throw new TypeError(`${deed}: ${told.code} ${told.message}`);
    return told.value as T;
  }

  /** The same for what may be refused. */
  attempt<Deed extends keyof Deeds>(deed: Deed, args: Deeds[Deed], at = 0): Promise<Told> {
    const order: Order<Deed> = { id: ++this.#orders, at, deed, args };
    return new Promise((resolve) => {
      this.#waiting.set(order.id, resolve);
      this.process.stdin?.write(`${JSON.stringify(order)}\n`);
    });
  }

  /** Lets it end by itself. */
  async stop(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.stdin?.end();
    await once(this.process, 'exit');
  }
}

/** An instant that everybody can still keep. */
export function soon(): number {
  return Date.now() + AHEAD_MS;
}
