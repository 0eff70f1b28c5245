/** The page about events names every event there is, and no other (SPEC S12.1). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { EVENT_TYPES } from '../src/domain/event-types.ts';

it('docs/reference/events.md has one row for every event type, and no other', () => {
  const text = readFileSync(join(import.meta.dirname, '../docs/reference/events.md'), 'utf8');
  const rows = [...text.matchAll(/^\| `([a-z_.]+)` \|/gm)].map((match) => match[1] ?? '');
  expect(rows.toSorted()).toEqual(EVENT_TYPES.toSorted());
});
