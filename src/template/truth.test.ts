import { describe, expect, it } from 'vitest';
import { isTruthy } from './truth.ts';

describe('truth', () => {
  // SPEC S2.1
  it.each([[null], [false], [0], [''], [[]], [{}]])('%j is false', (value) => {
    expect(isTruthy(value)).toBe(false);
  });

  it.each([[true], [1], [-1], ['0'], ['false'], [[0]], [{ a: null }]])('%j is true', (value) => {
    expect(isTruthy(value)).toBe(true);
  });
});
