/**
 * Named limits and budgets as arithmetic (SPEC S8): what a definition bounds, what a task asks of it, whether that fits, and
 * what is left of a reservation once the real use is known. Nothing here is counted or stored.
 */
import { parseDuration } from '../base/duration.ts';
import type { ModelUses } from './model-use.ts';

/** A limit as it is configured. What is not said is not bounded. */
export interface LimitDefinition {
  /** Attempts at once. */
  readonly concurrency?: number;
  /** Requests in a time, such as `100/1m`. */
  readonly rate?: string;
  readonly requests_per_minute?: number;
  readonly tokens_per_minute?: number;
  /** Models whose calls count against the limit, such as `openai/*`. */
  readonly models?: readonly string[];
}

/** A bound on what is spent in any stretch of time of this length. */
interface LimitWindow {
  readonly unit: 'requests' | 'tokens';
  readonly max: number;
  readonly ms: number;
}

/** A limit, read. */
export interface Limit {
  readonly concurrency: number | null;
  readonly windows: readonly LimitWindow[];
  readonly models: readonly string[];
}

/** What one attempt asks of a limit, beside one slot. */
export interface Ask {
  readonly requests: number;
  readonly tokens: number;
}

/** What is taken of a limit: slots, and for each window what was spent in it. */
export interface LimitUse {
  slots: number;
  readonly spent: number[];
}

/** What a task will ask of one model, at most. */
export interface ModelNeed {
  readonly model: string;
  readonly requests: number;
  readonly tokens: number;
  /** Null when the price is not known. */
  readonly cost_usd: number | null;
}

/** What the model calls of a run may use; null is no bound. */
export interface Budget {
  readonly tokens: number | null;
  readonly cost_usd: number | null;
}

/** An amount of a budget. */
export interface Amount {
  readonly tokens: number;
  readonly cost_usd: number;
}

const MINUTE_MS = 60_000;
const RATE = /^(\d{1,9})\/(\S+)$/;
/** The longest window of a rate: grants are kept for this long. */
const RATE_WINDOW_MS_MAX = 86_400_000;

/** Requests and time of a written rate, or null when it is none. */
export function parseRate(text: string): { readonly max: number; readonly ms: number } | null {
  const match = RATE.exec(text);
  const ms = parseDuration(match?.[2] ?? '');
  const max = Number(match?.[1]);
  return match === null || ms === null || ms < 1 || ms > RATE_WINDOW_MS_MAX || max < 1 ? null : { max, ms };
}

/** A definition in the words of this file. */
export function toLimit(definition: LimitDefinition): Limit {
  const { concurrency = null, rate, requests_per_minute, tokens_per_minute, models = [] } = definition;
  const windows: LimitWindow[] = [];
  const own = rate === undefined ? null : parseRate(rate);
  if (own !== null) windows.push({ unit: 'requests', ...own });
  if (requests_per_minute !== undefined)
    windows.push({ unit: 'requests', max: requests_per_minute, ms: MINUTE_MS });
  if (tokens_per_minute !== undefined)
    windows.push({ unit: 'tokens', max: tokens_per_minute, ms: MINUTE_MS });
  return { concurrency, windows, models };
}

/** Whether a pattern names a model; `*` stands for any text. */
export function matchesModel(pattern: string, model: string): boolean {
  const parts = pattern.split('*');
  const [head = ''] = parts;
  const tail = parts.at(-1) ?? '';
  if (parts.length === 1) return model === pattern;
  if (!model.startsWith(head) || model.length < head.length + tail.length || !model.endsWith(tail))
    return false;
  let at = head.length;
  for (const part of parts.slice(1, -1)) {
    const found = model.indexOf(part, at);
    if (found < 0 || found + part.length > model.length - tail.length) return false;
    at = found + part.length;
  }
  return true;
}

/** What a task asks of a limit: for these of its models, or for all (null). A task without model calls is one request. */
export function askOf(needs: readonly ModelNeed[], models: readonly string[] | null): Ask {
  const counted = needs.filter(({ model }) => models?.includes(model) ?? true);
  const sum = (of: (need: ModelNeed) => number): number =>
    counted.reduce((total, need) => total + of(need), 0);
  return {
    requests: Math.max(
      1,
      sum(({ requests }) => requests),
    ),
    tokens: sum(({ tokens }) => tokens),
  };
}

/** Whether an attempt may begin: now, once others have ended or aged, or never. */
export function fitsLimit(limit: Limit, use: LimitUse, ask: Ask): 'now' | 'later' | 'never' {
  if (limit.windows.some(({ unit, max }) => ask[unit] > max)) return 'never';
  if (limit.concurrency !== null && use.slots >= limit.concurrency) return 'later';
  const isFull = limit.windows.some(({ unit, max }, index) => (use.spent[index] ?? 0) + ask[unit] > max);
  return isFull ? 'later' : 'now';
}

/** Counts an attempt that begins. */
export function take(limit: Limit, use: LimitUse, ask: Ask): void {
  use.slots += 1;
  for (const [index, { unit }] of limit.windows.entries())
    use.spent[index] = (use.spent[index] ?? 0) + ask[unit];
}

/** What an attempt used: in all, and by model where its handler says so. */
export interface AttemptUse {
  readonly tokens: number;
  readonly models: ModelUses | null;
}

/** What a reservation for some models (null is all) comes to once the use of its attempt is known. */
export function corrected(reserved: Ask, models: readonly string[] | null, used: AttemptUse): Ask {
  if (used.models === null) return { requests: reserved.requests, tokens: used.tokens };
  const own = Object.entries(used.models).filter(([model]) => models?.includes(model) ?? true);
  const calls = own.reduce((sum, [, use]) => sum + use.calls, 0);
  const tokens = own.reduce((sum, [, use]) => sum + use.tokens_in + use.tokens_out, 0);
  // A call that failed is told by nobody, and was made all the same.
  return { requests: Math.min(reserved.requests, Math.max(1, calls)), tokens };
}

/** All that needs reserve of a budget. A model without a price costs nothing here: nobody knows what it costs. */
export function amountOf(needs: readonly ModelNeed[]): Amount {
  return {
    tokens: needs.reduce((sum, need) => sum + need.tokens, 0),
    cost_usd: needs.reduce((sum, need) => sum + (need.cost_usd ?? 0), 0),
  };
}

/** Two amounts together; a negative sign takes away. What floating point leaves of nothing is nothing. */
export function addAmounts(one: Amount, other: Amount, sign: 1 | -1 = 1): Amount {
  const cost_usd = one.cost_usd + sign * other.cost_usd;
  return {
    tokens: Math.max(0, one.tokens + sign * other.tokens),
    cost_usd: Math.abs(cost_usd) < COST_DUST ? 0 : Math.max(0, cost_usd),
  };
}

const COST_DUST = 1e-9;

/** Whether a call may be made: now, once calls under way have ended, or never. */
export function fitsBudget(
  budget: Budget,
  state: { readonly spent: Amount; readonly reserved: Amount; readonly need: Amount },
): 'now' | 'later' | 'never' {
  const { spent, reserved, need } = state;
  const isWithin = (used: Amount): boolean =>
    (budget.tokens === null || used.tokens <= budget.tokens) &&
    (budget.cost_usd === null || used.cost_usd <= budget.cost_usd + COST_DUST);
  const alone = addAmounts(spent, need);
  if (!isWithin(alone)) return 'never';
  return isWithin(addAmounts(alone, reserved)) ? 'now' : 'later';
}
