/** The embedding example is true (SPEC S13.5). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { trendAt } from '../examples/typescript/embed.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-embed-'));
const store = `sqlite:${join(folder, 'embed.db')}`;
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('examples/typescript/embed.ts', () => {
  it('runs its workflow with a handler of its own', async () => {
    expect(await trendAt(6, store)).toEqual({ trend: 'rising', height_cm: 101 });
    expect(await trendAt(12, store)).toMatchObject({ trend: 'falling' });
  });

  it('a terminal error is not tried again', async () => {
    expect(await trendAt(30, store)).toMatchObject({
      status: 'FAILED',
      errors: expect.arrayContaining([
        expect.objectContaining({ code: 'HANDLER_TERMINAL', message: 'a day has no hour 30', attempt: 1 }),
      ]),
    });
  });
});
