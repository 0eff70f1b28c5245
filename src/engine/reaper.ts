/**
 * Ends leases whose time is over. It holds back for one lease length whenever time itself was out of joint (a start, a store
 * that was away, a suspended machine, a set clock), so that live workers can be heard first (SPEC S6.2, I12).
 */
import type { EngineContext } from './engine-context.ts';
import { expire } from './reap.ts';

const BATCH = 200;
const JUMP_MS = 2_000;

/** Decides when it is safe to end leases, and ends them. */
export class Reaper {
  readonly #context: EngineContext;
  readonly #graceMs: number;
  readonly #intervalMs: number;
  #holdUntil: number;
  #last: { wall: number; monotonic: number };

  constructor(context: EngineContext, options: { intervalMs: number; leaseMs: number }) {
    this.#context = context;
    this.#graceMs = options.leaseMs;
    this.#intervalMs = options.intervalMs;
    this.#last = { wall: context.clock.now(), monotonic: context.clock.monotonic() };
    this.#holdUntil = this.#last.monotonic + this.#graceMs;
  }

  /** Expires a batch, unless it is too early to tell. */
  async runOnce(): Promise<number> {
    const { clock, committer, random, logger } = this.#context;
    this.#noticeJumps();
    if (clock.monotonic() < this.#holdUntil) return 0;
    try {
      const hasAny = await this.#context.store.read(
        async (tx) => (await tx.tasks.expired(clock.now(), 1)).length > 0,
      );
      if (!hasAny) return 0;
      const count = await committer.commit(async (work) =>
        expire(work, await work.adopt(await work.tx.tasks.expired(work.now, BATCH)), random),
      );
      if (count > 0) logger.warn('leases.expired', { count });
      return count;
    } catch (error) {
      this.#holdUntil = clock.monotonic() + this.#graceMs;
      throw error;
    }
  }

  #noticeJumps(): void {
    const { clock } = this.#context;
    const now = { wall: clock.now(), monotonic: clock.monotonic() };
    const passed = now.monotonic - this.#last.monotonic;
    const isLate = passed > this.#intervalMs * 3 + JUMP_MS;
    const hasJumped = Math.abs(now.wall - this.#last.wall - passed) > JUMP_MS;
    if (isLate || hasJumped) this.#holdUntil = now.monotonic + this.#graceMs;
    this.#last = now;
  }
}
