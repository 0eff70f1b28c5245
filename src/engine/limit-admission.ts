/** Whether limits and the budget let a task begin (SPEC S8, TRANSITIONS 15, 16): now, later and where it waits, or never. */
import type { TaskFailure } from '../domain/failure.ts';
import {
  type Amount,
  amountOf,
  askOf,
  type Budget,
  fitsBudget,
  type Limit,
  type ModelNeed,
  matchesModel,
} from '../domain/limits.ts';
import type { RunRow, TaskRow } from '../stores/rows.ts';
import type { Usage } from '../worker/work-source.ts';
import { reservedOf } from './limit-changes.ts';
import { runSettings } from './run-settings.ts';
import { AT_BUDGET, type NewShare, readLimits, type TaskLimits, TO_ESTIMATE } from './task-limits.ts';
import type { Work } from './work.ts';

/** What becomes of a task that a worker could take. */
export type Admission =
  | { readonly kind: 'now'; readonly shares: readonly NewShare[]; readonly reserved: Amount | null }
  | { readonly kind: 'later'; readonly place: string }
  | { readonly kind: 'never'; readonly failure: TaskFailure };

/** The names of the limits that these tasks count against, so that they can be loaded at once. */
export function limitsOfAll(work: Work, tasks: readonly TaskRow[]): readonly string[] {
  return tasks.flatMap((task) => {
    const limits = readLimits(task);
    return limits === null ? [] : namesOf(work, limits);
  });
}

/** Where a READY task belongs that would only stand in the way of others as QUEUED; null when it can be handed out. */
export function placeOf(work: Work, task: TaskRow): string | null {
  const limits = readLimits(task);
  if (limits === null) return null;
  if (mustEstimate(work, task, limits)) return TO_ESTIMATE;
  return namesOf(work, limits).find((name) => work.book.isCrowded(name)) ?? null;
}

/**
 * Judges a task whose limits are loaded. `shut` holds the limits that had no room for somebody before: whoever comes later stands
 * behind them, so that a large request is not passed by small ones for ever.
 */
export function judge(work: Work, task: TaskRow, shut: Set<string>): Admission {
  const limits = readLimits(task);
  if (limits === null) return { kind: 'now', shares: [], reserved: null };
  if (mustEstimate(work, task, limits)) return { kind: 'later', place: TO_ESTIMATE };
  const needs = limits.needs ?? [];
  const budget = limits.model ? budgetOf(work.runOf(task)) : null;
  const reserved = budget === null ? null : amountOf(needs);
  if (budget !== null && reserved !== null) {
    const verdict = checkBudget(work.runOf(task), budget, reserved);
    if (verdict === 'never')
      return { kind: 'never', failure: overBudget(work.runOf(task), budget, reserved) };
    if (verdict === 'later') return { kind: 'later', place: AT_BUDGET };
  }
  const shares: NewShare[] = [];
  for (const name of namesOf(work, limits)) {
    const limit = work.ledger.limit(name);
    if (limit === null) continue;
    const models = limits.names.includes(name) ? null : modelsOf(limit, needs);
    const ask = askOf(needs, models);
    const verdict = work.ledger.fits(name, ask);
    if (verdict === 'never') return { kind: 'never', failure: impossible(name, ask) };
    if (verdict === 'later' || shut.has(name)) {
      shut.add(name);
      return { kind: 'later', place: name };
    }
    shares.push({ limit: name, ...ask, models });
  }
  for (const share of shares) work.ledger.take(share.limit, share);
  return { kind: 'now', shares, reserved };
}

/** The budget of a run, or null when it has none. */
export function budgetOf(run: RunRow): Budget | null {
  return runSettings(run).budget ?? null;
}

/** Whether the budget of a run has room for an amount. */
export function checkBudget(run: RunRow, budget: Budget, need: Amount): 'now' | 'later' | 'never' {
  return fitsBudget(budget, { spent: spentOf(run), reserved: reservedOf(run), need });
}

function namesOf(work: Work, { names, needs }: TaskLimits): readonly string[] {
  if (needs === null || needs.length === 0) return names;
  return [...new Set([...names, ...work.book.matching(needs.map(({ model }) => model))])];
}

function modelsOf(limit: Limit, needs: readonly ModelNeed[]): readonly string[] {
  const fits = (model: string): boolean => limit.models.some((pattern) => matchesModel(pattern, model));
  return needs.flatMap(({ model }) => (fits(model) ? [model] : []));
}

/** Only where somebody asks does it have to be known beforehand what a model call will use. */
function mustEstimate(work: Work, task: TaskRow, { model, needs, names }: TaskLimits): boolean {
  if (!model || needs !== null) return false;
  return names.length > 0 || work.book.hasModels || budgetOf(work.runOf(task)) !== null;
}

function spentOf(run: RunRow): Amount {
  const usage = run.usage === null ? {} : (JSON.parse(run.usage) as Usage);
  const { tokens_in = 0, tokens_out = 0, cost_usd = 0, models = {} } = usage;
  // Where the price of one model is not known, the others still count.
  const known = Object.values(models).reduce((sum, use) => sum + (use.cost_usd ?? 0), 0);
  return { tokens: tokens_in + tokens_out, cost_usd: cost_usd ?? known };
}

function impossible(name: string, ask: { requests: number; tokens: number }): TaskFailure {
  const asked =
    ask.tokens > 0 ? `${ask.tokens} tokens in ${ask.requests} requests` : `${ask.requests} requests`;
  return {
    class: 'limit',
    code: 'LIMIT_IMPOSSIBLE',
    message: `the task needs up to ${asked}, more than the limit \`${name}\` ever allows`,
    hint: 'lower `max_tokens`, shorten the prompt, or raise the limit in the config file',
  };
}

function overBudget(run: RunRow, budget: Budget, need: Amount): TaskFailure {
  const spent = spentOf(run);
  const isTokens = budget.tokens !== null && spent.tokens + need.tokens > budget.tokens;
  const [used, asked, max] = isTokens
    ? [`${spent.tokens} tokens`, `${need.tokens}`, `${budget.tokens}`]
    : [`${usd(spent.cost_usd)} USD`, usd(need.cost_usd), usd(budget.cost_usd ?? 0)];
  return {
    class: 'budget',
    code: 'BUDGET_EXCEEDED',
    message: `the run has used ${used}; this call may need ${asked} more, and its budget is ${max}`,
    hint: 'raise it with `relay runs retry RUN_ID --budget tokens=…` (or `cost_usd=…`), or lower `max_tokens`',
  };
}

/** Money without the dust of binary fractions. */
function usd(value: number): string {
  return String(Math.round(value * 1e6) / 1e6);
}
