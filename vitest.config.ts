import { defineConfig } from 'vitest/config';

const shared = { environment: 'node', testTimeout: 30_000, hookTimeout: 120_000 } as const;

/** Quick tests first; those that start programs after them, one file at a time. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/*.test.ts'],
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: 'conformance',
          include: ['test/conformance/**/*.test.ts'],
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: 'crash',
          include: ['test/crash/**/*.test.ts', 'test/simulation/**/*.test.ts'],
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...shared,
          name: 'scenarios',
          include: ['test/scenarios/**/*.test.ts'],
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...shared,
          name: 'services',
          include: ['test/services/**/*.test.ts'],
          fileParallelism: false,
          testTimeout: 180_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
