/** Ids are well formed, sort by birth and do not repeat. */
import { describe, expect, it } from 'vitest';
import { newRunId } from './ids.ts';

describe('ids', () => {
  it('are UUIDs of version 7 with the time in front', () => {
    const before = Date.now();
    const id = newRunId();
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const time = Number.parseInt(id.slice(0, 13).replace('-', ''), 16);
    expect(time).toBeGreaterThanOrEqual(before);
    // Many ids in one millisecond run ahead of the clock by a little.
    expect(time).toBeLessThan(Date.now() + 1_000);
  });

  it('sort by birth, also within a millisecond, and do not repeat', () => {
    const ids = Array.from({ length: 20_000 }, newRunId);
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
    // The random part differs even between neighbours.
    expect(new Set(ids.map((id) => id.slice(19))).size).toBe(ids.length);
  });
});
