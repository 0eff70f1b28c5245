/** What an `llm` task reserves (SPEC S8.2: input estimate + `max_tokens`). */
import { expect, it } from 'vitest';
import { estimateTokens } from '../../models/estimate.ts';
import { priceOf } from '../../models/pricing.ts';
import { reserveLlm } from './reserve-llm.ts';

const prompt = 'Say hello to the tides';
const opening = estimateTokens([{ role: 'user', content: prompt }]);

it('one call is its input and the longest answer', () => {
  expect(reserveLlm({ model: 'offline/brief', prompt, max_tokens: 100 }, null, priceOf)).toEqual([
    { model: 'offline/brief', requests: 1, tokens: opening + 100, cost_usd: 0 },
  ]);
});

it('an answer without a bound is taken for 8,192 tokens', () => {
  expect(reserveLlm({ model: 'offline/brief', prompt }, null, priceOf)[0]?.tokens).toBe(opening + 8_192);
});

it('a repair is asked with everything that was said before it', () => {
  const [need] = reserveLlm({ model: 'offline/brief', prompt, max_tokens: 100 }, { repair: 2 }, priceOf);
  expect(need).toMatchObject({ requests: 3, tokens: 3 * opening + 3 * 100 + 3 * (100 + 128) });
});

it('fallbacks are reserved too, each model once, and an unknown price is null', () => {
  const needs = reserveLlm(
    { model: 'lab/own', fallbacks: ['openai/gpt-4o-mini', 'lab/own'], prompt, max_tokens: 1_000_000 },
    null,
    priceOf,
  );
  expect(needs.map(({ model, cost_usd }) => [model, cost_usd === null])).toEqual([
    ['lab/own', true],
    ['openai/gpt-4o-mini', false],
  ]);
  expect(needs[1]?.cost_usd).toBeGreaterThan(0.6);
});
