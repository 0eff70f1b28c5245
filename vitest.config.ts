import { defineConfig } from 'vitest/config';

const shared = { environment: 'node', testTimeout: 30_000, hookTimeout: 60_000 } as const;

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
    ],
  },
});
