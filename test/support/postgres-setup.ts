/** Starts one PostgreSQL for all tests of a project and tells them where it is, or why they are skipped. */
import type { TestProject } from 'vitest/node';
import { type PostgresPlace, startPostgres } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    postgres: PostgresPlace;
  }
}

/** Called by vitest before the first test; what it returns is called after the last. */
export async function setup(project: TestProject): Promise<() => void> {
  const server = await startPostgres();
  if ('reason' in server) {
    project.provide('postgres', server);
    return () => {};
  }
  project.provide('postgres', { url: server.url });
  return () => server.remove();
}
