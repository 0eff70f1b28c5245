/** What a call of a model costs: the price of a model, and the cost of what was used at that price. Unknown is null, never zero. */
import { PRICES } from './prices.ts';

/** USD for a million tokens. Without a price of their own (null) cached tokens cost what input costs. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  readonly cached_input: number | null;
}

/** Prices of the config, by `provider/model`; they win over the table. */
export type PriceOverrides = Readonly<Record<string, ModelPrice>>;

const FREE: ModelPrice = Object.freeze({ input: 0, output: 0, cached_input: 0 });
const TOKENS_PER_UNIT = 1_000_000;
/** Sums of costs stay free of binary dust: ten decimals are a hundredth of the cheapest token. */
const DECIMALS = 1e10;
const SNAPSHOT_DATE = /-(\d{8}|\d{4}-\d{2}-\d{2})$/;

/** The price of `provider/model`; a dated snapshot has the price of its model. Null when it is not known. */
export function priceOf(model: string, overrides: PriceOverrides = {}): ModelPrice | null {
  if (model.startsWith('offline/')) return FREE;
  const names = [model, model.replace(SNAPSHOT_DATE, '')];
  const own = names.find((name) => Object.hasOwn(overrides, name));
  if (own !== undefined) return overrides[own] ?? null;
  const listed = names.map((name) => PRICES.get(name)).find((found) => found !== undefined);
  if (listed === undefined) return null;
  const { input, output, cached_input } = listed;
  return { input, output, cached_input };
}

/** What the use costs at a price, in USD; `tokens_in` counts the cached ones too. Null when the price is not known. */
export function costOf(
  usage: { readonly tokens_in: number; readonly tokens_out: number; readonly tokens_cached?: number },
  price: ModelPrice | null,
): number | null {
  if (price === null) return null;
  const cached = Math.min(usage.tokens_cached ?? 0, usage.tokens_in);
  const units =
    (usage.tokens_in - cached) * price.input +
    cached * (price.cached_input ?? price.input) +
    usage.tokens_out * price.output;
  return Math.round((units / TOKENS_PER_UNIT) * DECIMALS) / DECIMALS;
}
