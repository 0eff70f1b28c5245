/** What one transaction changes about grants and held tasks; written with the rest of the working set. */
import { type Amount, type Ask, type AttemptUse, addAmounts, corrected } from '../domain/limits.ts';
import type { AttemptRow, GrantRow, HeldRow, RunRow, TaskRow } from '../stores/rows.ts';
import type { Tx } from '../stores/store.ts';
import type { Usage } from '../worker/work-source.ts';
import {
  heldRow,
  type NewShare,
  readLimits,
  type Share,
  type TaskLimits,
  writeLimits,
} from './task-limits.ts';

/** A moment that is not known yet. */
const NOT_YET = Number.MAX_SAFE_INTEGER;

/** A grant that this transaction ends: what it was and what it comes to. */
export interface EndedGrant {
  readonly share: Share;
  readonly row: GrantRow;
}

/** Grants, their ends, and tasks that are held back or let go. */
export class LimitChanges {
  readonly #grants: GrantRow[] = [];
  readonly #ends: EndedGrant[] = [];
  readonly #frees: (readonly [number, number])[] = [];
  readonly #adds = new Map<TaskRow, HeldRow>();
  readonly #removals: HeldRow[] = [];

  /** How many tasks are held back by this transaction. */
  get additions(): number {
    return this.#adds.size;
  }

  /** How many rows of held tasks go with this transaction. */
  get removals(): number {
    return this.#removals.length;
  }

  /** Whether a limit has more room after this transaction. */
  get hasRoom(): boolean {
    return this.#ends.length > 0 || this.#frees.length > 0;
  }

  /** Grants of a limit that end with this transaction; whoever counts rows still finds them. */
  endsOf(limit: string): readonly EndedGrant[] {
    return this.#ends.filter(({ share }) => share.limit === limit);
  }

  /** A task is held back at a place. */
  hold(task: TaskRow, limits: TaskLimits, place: string): void {
    this.letGo(task, limits);
    writeLimits(task, limits, { place });
    this.#adds.set(task, heldRow(task, place));
  }

  /** A held task leaves its place. */
  letGo(task: TaskRow, limits: TaskLimits): void {
    if (limits.place === null) return;
    if (!this.#adds.delete(task)) this.#removals.push(heldRow(task, limits.place));
    writeLimits(task, limits, { place: null });
  }

  /** The attempt that has just begun was granted these shares, and has reserved this of its run's budget. */
  grant(
    task: TaskRow,
    run: RunRow,
    granted: { shares: readonly NewShare[]; reserved: Amount | null; now: number },
  ): void {
    const limits = readLimits(task);
    if (limits === null) return;
    const { shares, reserved, now } = granted;
    const given = shares.map((share) => ({ ...share, spent_at: spendingOf(share, now) }));
    for (const { limit, requests, tokens, spent_at } of given) {
      const attempt = { limit_name: limit, task_key: task.key, attempt: task.attempt };
      this.#grants.push({ ...attempt, requests, tokens, held_until: NOT_YET, spent_at });
    }
    writeLimits(task, limits, { shares: given, reserved });
    if (reserved !== null) run.reserved = JSON.stringify(addAmounts(reservedOf(run), reserved));
  }

  /** The attempt of a task ends. Returns whether the budget of its run has more room. */
  end(
    task: TaskRow,
    run: RunRow,
    end: Pick<AttemptRow, 'outcome' | 'usage' | 'error'> & { now: number },
  ): boolean {
    const limits = readLimits(task);
    if (limits === null) return false;
    // A worker that was told to stop may be inside until it says otherwise, or its lease would have ended.
    const held_until = end.outcome === 'cancelled' ? (task.lease_expires_at ?? end.now) : 0;
    const used = usedBy(end);
    for (const share of limits.shares) {
      const place = { limit_name: share.limit, task_key: task.key, attempt: task.attempt };
      const spent_at = Math.min(share.spent_at, end.now);
      this.#ends.push({ share, row: { ...place, ...endOf(share, used), held_until, spent_at } });
    }
    writeLimits(task, limits, { shares: [], reserved: null });
    if (limits.reserved === null) return false;
    const left = addAmounts(reservedOf(run), limits.reserved, -1);
    run.reserved = left.tokens === 0 && left.cost_usd === 0 ? null : JSON.stringify(left);
    return true;
  }

  /** The worker of a cancelled attempt has stopped. */
  free(task_key: number, attempt: number): void {
    this.#frees.push([task_key, attempt]);
  }

  async flush(tx: Tx): Promise<void> {
    await tx.limits.grant(this.#grants);
    await tx.limits.settle(this.#ends.map(({ row }) => row));
    await tx.limits.free(this.#frees);
    await tx.held.remove(this.#removals);
    await tx.held.add([...this.#adds.values()]);
  }
}

/** One request is made at once. Of several nobody knows when the last is made, so that they age only from the end. */
function spendingOf({ requests }: Ask, now: number): number {
  return requests > 1 ? NOT_YET : now;
}

/** What attempts under way have reserved of a run's budget. */
export function reservedOf(run: RunRow): Amount {
  return run.reserved === null ? { tokens: 0, cost_usd: 0 } : (JSON.parse(run.reserved) as Amount);
}

const NOTHING: Ask = { requests: 0, tokens: 0 };

function endOf(share: Share, used: AttemptUse | 'nothing' | null): Ask {
  if (used === 'nothing') return NOTHING;
  const { requests, tokens } = share;
  return used === null ? { requests, tokens } : corrected(share, share.models, used);
}

/** What an attempt is known to have used; null when nothing is. An input that could not be rendered was never sent. */
function usedBy({ usage, error }: Pick<AttemptRow, 'usage' | 'error'>): AttemptUse | 'nothing' | null {
  if (error !== null && (JSON.parse(error) as { class?: string }).class === 'template') return 'nothing';
  if (usage === null) return null;
  const { tokens_in, tokens_out, models = null } = JSON.parse(usage) as Usage;
  const isCounted = tokens_in !== undefined || tokens_out !== undefined;
  return isCounted ? { tokens: (tokens_in ?? 0) + (tokens_out ?? 0), models } : null;
}
