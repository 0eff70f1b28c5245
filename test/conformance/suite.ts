/** The frame of a conformance test: the same behaviours on every registered store, each on a fresh one. */
import { afterEach, describe, expect } from 'vitest';
import { RelayError } from '../../src/base/errors.ts';
import { Harness, type HarnessOptions } from '../support/harness.ts';
import { brokenPromises } from '../support/invariants.ts';
import { brokenLimits } from '../support/limit-invariants.ts';
import { STORES } from './stores.ts';

/** Opens an engine on a fresh store; it is closed after the test. */
export type Open = (options?: HarnessOptions & { onStatement?: (name: string) => void }) => Promise<Harness>;

/** Describes behaviours once for all stores. */
export function conformance(title: string, behaviours: (open: Open) => void): void {
  for (const kind of STORES) {
    const name = `${title} (${kind.name}${kind.skipped === undefined ? '' : `, skipped: ${kind.skipped}`})`;
    describe.skipIf(kind.skipped !== undefined)(name, () => {
      const opened: Harness[] = [];
      afterEach(async () => {
        for (const harness of opened.splice(0)) await harness.close();
      });
      behaviours(async (options = {}) => {
        const harness = await Harness.on(kind, options);
        opened.push(harness);
        return harness;
      });
    });
  }
}

/** Nothing that DESIGN promises is broken in this run. */
export async function expectSound(harness: Harness, run_id: string): Promise<void> {
  expect(await brokenPromises(harness.store, run_id)).toEqual([]);
  expect(await brokenLimits(harness.store, harness.clock.now())).toEqual([]);
}

/** The code that a refused call was refused with. */
export async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    if (error instanceof RelayError) return error.code;
    throw error;
  }
  return 'nothing was refused';
}
