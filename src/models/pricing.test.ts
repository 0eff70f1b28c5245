/** Prices, costs and estimates (SPEC S8.2, S9.1). */
import { describe, expect, it } from 'vitest';
import { estimateTokens } from './estimate.ts';
import { PRICE_SOURCES, PRICES } from './prices.ts';
import { costOf, priceOf } from './pricing.ts';

describe('priceOf', () => {
  it('a listed model has its price, and a dated snapshot that of its model', () => {
    const price = { input: 1, output: 5, cached_input: 0.1 };
    expect(priceOf('anthropic/claude-haiku-4-5')).toEqual(price);
    expect(priceOf('anthropic/claude-haiku-4-5-20251001')).toEqual(price);
    expect(priceOf('openai/gpt-4o-mini-2024-07-18')).toEqual(priceOf('openai/gpt-4o-mini'));
  });

  it('an unknown model has no price, and the offline model costs nothing', () => {
    expect(priceOf('openai/no-such-model')).toBeNull();
    expect(priceOf('lab/gpt-4o')).toBeNull();
    expect(priceOf('constructor')).toBeNull();
    expect(priceOf('offline/brief')).toEqual({ input: 0, output: 0, cached_input: 0 });
  });

  it('the config wins over the table and adds to it', () => {
    const overrides = {
      'openai/gpt-4o': { input: 1, output: 2, cached_input: null },
      'lab/small': { input: 0.1, output: 0.2, cached_input: 0.01 },
    };
    expect(priceOf('openai/gpt-4o', overrides)).toEqual(overrides['openai/gpt-4o']);
    expect(priceOf('lab/small', overrides)).toEqual(overrides['lab/small']);
  });

  it('every price names a source that can be cited, with its date', () => {
    for (const [model, { input, output, cached_input, source }] of PRICES) {
      expect(PRICE_SOURCES[source].url, model).toMatch(/^https:\/\//);
      expect(PRICE_SOURCES[source].read, model).toMatch(/^\d{4}-\d{2}-\d{2}$/);
      expect(input, model).toBeGreaterThan(0);
      expect(output, model).toBeGreaterThan(input);
      expect(cached_input ?? input, model).toBeLessThanOrEqual(input);
    }
  });
});

describe('costOf', () => {
  const price = { input: 2, output: 10, cached_input: 0.5 };

  it('input, cached input and output are paid at their own prices', () => {
    const usage = { tokens_in: 1_000_000, tokens_cached: 400_000, tokens_out: 100_000 };
    expect(costOf(usage, price)).toBe(0.6 * 2 + 0.4 * 0.5 + 0.1 * 10);
    expect(costOf(usage, { ...price, cached_input: null })).toBe(2 + 1);
  });

  it('an unknown price gives an unknown cost, not zero', () => {
    expect(costOf({ tokens_in: 10, tokens_out: 10 }, null)).toBeNull();
  });

  it('a sum of small costs stays exact', () => {
    expect(costOf({ tokens_in: 3, tokens_out: 0 }, { input: 0.1, output: 1, cached_input: null })).toBe(
      0.0000003,
    );
  });
});

describe('estimateTokens', () => {
  it('bytes are counted, not characters, and each message has a margin', () => {
    expect(estimateTokens([])).toBe(16);
    expect(estimateTokens([{ role: 'user', content: 'abcdef' }])).toBe(16 + 2 + 8);
    expect(estimateTokens([{ role: 'user', content: '潮汐' }])).toBe(16 + 2 + 8);
    const message = { role: 'user', content: '' } as const;
    expect(estimateTokens([message, message])).toBe(32);
  });

  it('a schema counts too', () => {
    expect(estimateTokens([], { type: 'object' })).toBe(16 + 6);
  });
});
