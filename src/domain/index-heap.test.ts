/** The heap against sorting. */
import { expect, test } from 'vitest';
import { fc } from '../../test/support/property.ts';
import { popIndex, pushIndex } from './index-heap.ts';

test('what goes in comes out in order, also when taking and adding alternate', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.nat(50))), (steps) => {
      const heap: number[] = [];
      const model: number[] = [];
      for (const step of steps) {
        if (step === null) expect(popIndex(heap)).toBe(model.shift());
        else {
          pushIndex(heap, step);
          model.push(step);
          model.sort((a, b) => a - b);
        }
      }
      expect(model.map(() => popIndex(heap))).toEqual(model);
    }),
  );
});
