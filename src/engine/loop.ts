/** The one shape of a background loop: `runOnce` does what is due; between turns it sleeps until its time or a wake-up. */
import type { Logger } from '../base/logger.ts';
import type { LoopService } from '../base/service.ts';

/** What one turn did and how long to rest; zero is to go on at once. */
export interface Turn {
  readonly counts: Readonly<Record<string, number>>;
  readonly restMs: number;
}

const ERROR_REST_MS = 1_000;

/** A loop that can be started, woken, stopped, and driven by hand. */
export class Loop implements LoopService {
  readonly name: string;
  readonly #turn: () => Promise<Turn>;
  readonly #logger: Logger;
  #running: Promise<void> | null = null;
  #isStopping = false;
  #wake: () => void = () => {};
  #isWoken = false;

  constructor(options: { name: string; logger: Logger; turn: () => Promise<Turn> }) {
    this.name = options.name;
    this.#turn = options.turn;
    this.#logger = options.logger;
  }

  async start(): Promise<void> {
    this.#isStopping = false;
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.wake();
    await this.#running;
    this.#running = null;
  }

  async runOnce(): Promise<Readonly<Record<string, number>>> {
    return (await this.#turn()).counts;
  }

  /** Ends the current rest; a wake-up during a turn is not lost. */
  wake(): void {
    this.#isWoken = true;
    this.#wake();
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      this.#isWoken = false;
      await this.#rest(await this.#safeTurn());
    }
  }

  /** A turn that fails is told and tried again: a store that is away comes back (SPEC S14.7). */
  async #safeTurn(): Promise<number> {
    try {
      return (await this.#turn()).restMs;
    } catch (error) {
      if (!this.#isStopping) this.#logger.error('loop.failed', { loop: this.name, error });
      return ERROR_REST_MS;
    }
  }

  #rest(ms: number): Promise<void> {
    if (ms <= 0 || this.#isWoken || this.#isStopping) return new Promise((resolve) => setImmediate(resolve));
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
