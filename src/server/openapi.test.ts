/** The OpenAPI document is one that people and generators like to read: the linter's strict rules hold (SPEC S13.1). */
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { describe, expect, it } from 'vitest';
import { openApi } from './openapi.ts';

describe('the OpenAPI document', () => {
  const document = openApi({ version: '1.0.0' });

  const problemsOf = async (source: object): Promise<readonly string[]> => {
    const config = await createConfig({
      extends: ['recommended-strict'],
      rules: { 'operation-operationId-url-safe': 'error' },
    });
    const problems = await lintFromString({
      source: JSON.stringify(source),
      absoluteRef: 'openapi.json',
      config,
    });
    return problems.map(
      ({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer ?? ''})`,
    );
  };

  it('passes the strict rules of a linter', async () => {
    expect(await problemsOf(document)).toEqual([]);
  });

  it('would not pass with an operation that nobody can name', async () => {
    const { paths } = document as { paths: Record<string, Record<string, object>> };
    const { operationId: _, ...nameless } = (paths['/api/v1/runs']?.post ?? {}) as Record<string, unknown>;
    const broken = { ...document, paths: { ...paths, '/api/v1/runs': { post: nameless } } };
    expect((await problemsOf(broken)).join()).toContain('operation-operationId');
  });
});
