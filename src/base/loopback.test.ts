import { describe, expect, it } from 'vitest';
import { isLoopback } from './loopback.ts';

// SPEC S14.3
describe('this machine', () => {
  it('is meant by its own names and addresses only', () => {
    for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '::1', '[::1]'])
      expect(isLoopback(host)).toBe(true);
    for (const host of [
      '127.0.0.1.evil.example',
      '127.evil.example',
      'localhost.evil.example',
      '0.0.0.0',
      '',
    ])
      expect(isLoopback(host)).toBe(false);
  });
});
