import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** In tests the client is its sources; the built program takes it from dist/. */
const resolve = { alias: { '#client': fileURLToPath(new URL('client/src/index.ts', import.meta.url)) } };
const shared = { environment: 'node', testTimeout: 30_000, hookTimeout: 120_000 } as const;

/** Quick tests first; those that start programs after them, one file at a time. */
export default defineConfig({
  test: {
    projects: [
      {
        resolve,
        test: {
          ...shared,
          name: 'unit',
          include: ['src/**/*.test.ts', 'client/src/**/*.test.ts', 'test/*.test.ts'],
          sequence: { groupOrder: 0 },
        },
      },
      {
        resolve,
        test: {
          ...shared,
          name: 'conformance',
          include: ['test/conformance/**/*.test.ts'],
          sequence: { groupOrder: 0 },
        },
      },
      {
        resolve,
        test: {
          ...shared,
          name: 'crash',
          include: ['test/crash/**/*.test.ts', 'test/simulation/**/*.test.ts'],
          sequence: { groupOrder: 1 },
        },
      },
      {
        resolve,
        test: {
          ...shared,
          name: 'scenarios',
          include: ['test/scenarios/**/*.test.ts'],
          sequence: { groupOrder: 1 },
        },
      },
      {
        resolve,
        test: {
          ...shared,
          name: 'services',
          // Conformance, crash sweep and simulation again, on a real Postgres.
          include: ['test/{services,conformance,crash,simulation}/**/*.test.ts'],
          env: { RELAY_TEST_STORE: 'postgres', RELAY_SIMULATIONS: process.env.RELAY_SIMULATIONS ?? '100' },
          globalSetup: ['test/support/postgres-setup.ts'],
          fileParallelism: false,
          testTimeout: 180_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
