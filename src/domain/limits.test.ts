/** The arithmetic of limits and budgets (SPEC S8). */
import { describe, expect, it } from 'vitest';
import { askOf, corrected, fitsBudget, fitsLimit, matchesModel, parseRate, take, toLimit } from './limits.ts';

const needs = [
  { model: 'openai/gpt', requests: 2, tokens: 200, cost_usd: 0.1 },
  { model: 'lab/own', requests: 1, tokens: 50, cost_usd: null },
];

describe('a rate', () => {
  it.each([
    ['100/1m', { max: 100, ms: 60_000 }],
    ['1/500ms', { max: 1, ms: 500 }],
    ['5/1d', { max: 5, ms: 86_400_000 }],
    ['0/1m', null],
    ['5/2d', null],
    ['5/0s', null],
    ['5', null],
    ['-1/1m', null],
    ['5/minute', null],
  ])('%s', (text, rate) => expect(parseRate(text)).toEqual(rate));
});

describe('a pattern', () => {
  it.each([
    ['openai/*', 'openai/gpt-4o', true],
    ['openai/*', 'azure/openai/gpt', false],
    ['*', 'anything/at-all', true],
    ['openai/gpt', 'openai/gpt', true],
    ['openai/gpt', 'openai/gpt-4o', false],
    ['*/gpt-*-mini', 'openai/gpt-5-mini', true],
    ['*/gpt-*-mini', 'openai/gpt-mini', false],
    ['a*a', 'a', false],
    ['a.c/*', 'abc/x', false],
  ])('%s and %s', (pattern, model, fits) => expect(matchesModel(pattern, model)).toBe(fits));
});

describe('a limit', () => {
  const limit = toLimit({ concurrency: 2, rate: '3/10s', tokens_per_minute: 500 });

  it('asks for one request of a task without models, and for the sum of the models it is for', () => {
    expect(askOf([], null)).toEqual({ requests: 1, tokens: 0 });
    expect(askOf(needs, null)).toEqual({ requests: 3, tokens: 250 });
    expect(askOf(needs, ['lab/own'])).toEqual({ requests: 1, tokens: 50 });
  });

  it('has room until one of its bounds is reached', () => {
    const use = { slots: 0, spent: [0, 0] };
    const ask = { requests: 1, tokens: 300 };
    expect(fitsLimit(limit, use, ask)).toBe('now');
    take(limit, use, ask);
    expect(use).toEqual({ slots: 1, spent: [1, 300] });
    expect(fitsLimit(limit, use, ask)).toBe('later');
    expect(fitsLimit(limit, use, { requests: 2, tokens: 200 })).toBe('now');
    expect(fitsLimit(limit, use, { requests: 3, tokens: 0 })).toBe('later');
    expect(fitsLimit(limit, { slots: 2, spent: [0, 0] }, ask)).toBe('later');
  });

  it('says never where even an empty one would be too small', () => {
    expect(fitsLimit(limit, { slots: 2, spent: [9, 9] }, { requests: 1, tokens: 501 })).toBe('never');
    expect(fitsLimit(limit, { slots: 0, spent: [0, 0] }, { requests: 4, tokens: 0 })).toBe('never');
    expect(fitsLimit(toLimit({}), { slots: 9, spent: [] }, { requests: 9, tokens: 9 })).toBe('now');
  });
});

describe('a correction', () => {
  const reserved = { requests: 3, tokens: 250 };
  const use = (calls: number, tokens: number) => ({
    calls,
    tokens_in: tokens,
    tokens_out: 0,
    tokens_cached: 0,
    cost_usd: 0,
  });

  it('counts only the models it is for', () => {
    const used = { tokens: 90, models: { 'openai/gpt': use(2, 60), 'lab/own': use(1, 30) } };
    expect(corrected(reserved, ['openai/gpt'], used)).toEqual({ requests: 2, tokens: 60 });
    expect(corrected(reserved, null, used)).toEqual({ requests: 3, tokens: 90 });
  });

  it('keeps one request where none is told, and may be larger than the reservation in tokens', () => {
    expect(corrected(reserved, ['openai/gpt'], { tokens: 30, models: { 'lab/own': use(1, 30) } })).toEqual({
      requests: 1,
      tokens: 0,
    });
    expect(corrected(reserved, null, { tokens: 400, models: null })).toEqual({ requests: 3, tokens: 400 });
  });
});

describe('a budget', () => {
  const budget = { tokens: 1_000, cost_usd: 1 };
  const none = { tokens: 0, cost_usd: 0 };

  it.each([
    ['within', { spent: none, reserved: none, need: { tokens: 1_000, cost_usd: 1 } }, 'now'],
    [
      'beside others',
      { spent: none, reserved: { tokens: 1, cost_usd: 0 }, need: { tokens: 1_000, cost_usd: 0 } },
      'later',
    ],
    [
      'beyond',
      { spent: { tokens: 1, cost_usd: 0 }, reserved: none, need: { tokens: 1_000, cost_usd: 0 } },
      'never',
    ],
    [
      'beyond in money',
      { spent: { tokens: 0, cost_usd: 0.5 }, reserved: none, need: { tokens: 0, cost_usd: 0.6 } },
      'never',
    ],
  ] as const)('%s', (_, state, verdict) => expect(fitsBudget(budget, state)).toBe(verdict));

  it('forgives the dust of binary fractions', () => {
    const spent = { tokens: 0, cost_usd: 0.1 + 0.2 };
    const need = { tokens: 0, cost_usd: 0.7 };
    expect(fitsBudget({ tokens: null, cost_usd: 1 }, { spent, reserved: none, need })).toBe('now');
  });
});
