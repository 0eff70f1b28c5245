/** What calls of models used, model by model. Attempts, tasks and runs add it up the same way. */

/** Calls of one model, added up. */
interface ModelUse {
  readonly calls: number;
  readonly tokens_in: number;
  readonly tokens_out: number;
  readonly tokens_cached: number;
  /** Null when the price of the model is not known. */
  readonly cost_usd: number | null;
}

/** By `provider/model`. */
export type ModelUses = Readonly<Record<string, ModelUse>>;

/** Both together. A cost that is unknown makes the sum unknown. */
export function addModelUses(a: ModelUses = {}, b: ModelUses = {}): ModelUses {
  const sum: Record<string, ModelUse> = { ...a };
  for (const [model, use] of Object.entries(b)) {
    const before = Object.hasOwn(sum, model) ? sum[model] : undefined;
    sum[model] = before === undefined ? use : add(before, use);
  }
  return sum;
}

/** Both costs together; an unknown one makes the sum unknown. */
export function addCosts(a: number | null, b: number | null): number | null {
  // Ten decimals, as single costs have: sums stay free of binary dust.
  return a === null || b === null ? null : Math.round((a + b) * 1e10) / 1e10;
}

function add(a: ModelUse, b: ModelUse): ModelUse {
  return {
    calls: a.calls + b.calls,
    tokens_in: a.tokens_in + b.tokens_in,
    tokens_out: a.tokens_out + b.tokens_out,
    tokens_cached: a.tokens_cached + b.tokens_cached,
    cost_usd: addCosts(a.cost_usd, b.cost_usd),
  };
}
