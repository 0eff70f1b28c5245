/**
 * The price table: data, no code. Only prices with a public source that can be cited, with the day it was read; a model that is
 * not here has no known price (null), and `prices` of the config adds or replaces entries. Models whose price depends on the length of the
 * prompt or on the date are left out: one number would be wrong.
 */

/** A price with where it is from. USD for a million tokens; `cached_input` is null where the source gives none. */
export interface PriceEntry {
  readonly input: number;
  readonly output: number;
  readonly cached_input: number | null;
  /** Which of `PRICE_SOURCES`. */
  readonly source: keyof typeof PRICE_SOURCES;
}

/** Where prices are from, and when a stored copy of that page was read. */
export const PRICE_SOURCES = Object.freeze({
  anthropic_pricing: {
    url: 'https://platform.claude.com/docs/en/about-claude/pricing',
    read: '2026-11-15',
  },
  anthropic_opus_5_5: {
    url: 'https://platform.claude.com/docs/zh-CN/models/opus-5-5/overview',
    read: '2026-11-15',
  },
  anthropic_sonnet_5_5: {
    url: 'https://platform.claude.com/docs/zh-CN/models/sonnet-5-5/overview',
    read: '2026-11-15',
  },
  // A maintained list of OpenAI's prices; the provider's own page could not be read.
  openai_list: { url: 'https://github.com/simonw/llm-prices/blob/main/data/openai.json', read: '2026-11-15' },
  // Quotes of https://ai.google.dev/gemini-api/docs/pricing, of 2026-10-07.
  google_quotes: {
    url: 'https://github.com/api-evangelist/deepmind/blob/main/plans/deepmind-plans-pricing.yml',
    read: '2026-11-15',
  },
});

const entry = (
  source: PriceEntry['source'],
  [input, output, cached_input]: readonly [number, number, number | null],
): PriceEntry => Object.freeze({ input, output, cached_input, source });

/** Prices by `provider/model`, without the date of a snapshot. */
export const PRICES: ReadonlyMap<string, PriceEntry> = new Map([
  ['anthropic/claude-fable-5', entry('anthropic_pricing', [10, 50, 1])],
  // Its price of cached input has a condition.
  ['anthropic/claude-fable-5-1', entry('anthropic_pricing', [10, 50, null])],
  ['anthropic/claude-opus-5-5', entry('anthropic_opus_5_5', [4, 20, 0.2])],
  ['anthropic/claude-opus-5', entry('anthropic_pricing', [5, 25, 0.5])],
  ['anthropic/claude-opus-4-8', entry('anthropic_pricing', [5, 25, 0.5])],
  ['anthropic/claude-opus-4-7', entry('anthropic_pricing', [5, 25, 0.5])],
  ['anthropic/claude-opus-4-6', entry('anthropic_pricing', [5, 25, 0.5])],
  ['anthropic/claude-opus-4-5', entry('anthropic_pricing', [5, 25, 0.5])],
  ['anthropic/claude-sonnet-5-5', entry('anthropic_sonnet_5_5', [2, 10, 0.2])],
  ['anthropic/claude-sonnet-4-6', entry('anthropic_pricing', [3, 15, 0.3])],
  ['anthropic/claude-sonnet-4-5', entry('anthropic_pricing', [3, 15, 0.3])],
  ['anthropic/claude-haiku-4-5', entry('anthropic_pricing', [1, 5, 0.1])],
  ['google/gemini-3.5-flash', entry('google_quotes', [1.5, 9, null])],
  ['google/gemini-3.5-flash-lite', entry('google_quotes', [0.3, 2.5, null])],
  ['openai/gpt-4.1', entry('openai_list', [2, 8, 0.5])],
  ['openai/gpt-4.1-mini', entry('openai_list', [0.4, 1.6, 0.1])],
  ['openai/gpt-4.1-nano', entry('openai_list', [0.1, 0.4, 0.025])],
  ['openai/gpt-4o', entry('openai_list', [2.5, 10, 1.25])],
  ['openai/gpt-4o-mini', entry('openai_list', [0.15, 0.6, 0.075])],
  ['openai/gpt-5', entry('openai_list', [1.25, 10, 0.125])],
  ['openai/gpt-5-mini', entry('openai_list', [0.25, 2, 0.025])],
  ['openai/gpt-5-nano', entry('openai_list', [0.05, 0.4, 0.005])],
  ['openai/gpt-5.1', entry('openai_list', [1.25, 10, 0.125])],
  ['openai/gpt-5.2', entry('openai_list', [1.75, 14, 0.175])],
]);
