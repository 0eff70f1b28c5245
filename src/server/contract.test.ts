/** Every route, driven from the OpenAPI document with valid, mutated and hostile input: never a 5xx, always the shape it promises. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allRoutes } from '../../client/src/index.ts';
import { fc } from '../../test/support/property.ts';
import { fitting, hostileValue, mutated } from '../../test/support/schema-values.ts';
import { OWN_TOKEN, ServerBench } from '../../test/support/server-bench.ts';
import { openApi } from './openapi.ts';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly schema: Record<string, unknown>;
}
interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Record<string, unknown> }> };
  readonly responses: Record<string, { readonly content: Record<string, { readonly schema: object }> }>;
}

const RUNS_PER_ROUTE = 60;
const document = openApi({ version: '0' }) as unknown as {
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: { readonly Error: object } };
};
const ajv = new Ajv2020({ strict: false });
const isError = ajv.compile(document.components.schemas.Error);

let bench: ServerBench;
/** Ids that exist, so that valid input reaches further than the first lookup. */
let known: Readonly<Record<string, readonly string[]>> = {};

beforeAll(async () => {
  bench = await ServerBench.open({ concurrency: 4 });
  const { runs, tasks } = bench.client();
  const { id } = await runs.start({
    definition: {
      name: 'known',
      tasks: {
        a: { uses: 'transform', with: { value: 1 } },
        gated: { needs: ['a'], gate: { message: 'go on?' }, uses: 'transform', with: { value: 2 } },
        broken: { uses: 'shell', with: { run: ['false'] }, retry: { max_attempts: 1 } },
      },
      on_failure: 'continue',
    },
  });
  const open = await runs.start({ open: true, auto_close: false });
  const run = await runs.get(id, { wait_ms: 300 });
  const worker = (await (
    await bench.post('/workers/register', { boot_id: 'b', handlers: ['far'], worker_id: 'w' })
  ).json()) as { worker_id: string };
  const artifacts = await tasks.artifacts(run.tasks[0]?.task_run_id ?? '');
  known = {
    run: [id, open.id],
    task: run.tasks.map(({ task_run_id }) => task_run_id),
    worker: [worker.worker_id],
    artifact: artifacts.items.map((artifact) => artifact.id),
    name: ['known'],
  };
});
afterAll(() => bench.close());

/** What a parameter may be: something that exists, something that fits, or something hostile. */
function parameterValue(path: string, { name, schema }: Parameter): fc.Arbitrary<unknown> {
  const kinds: Readonly<Record<string, string>> = {
    run_id: 'run',
    task_run_id: 'task',
    artifact_id: 'artifact',
    name: 'name',
    id: path.includes('/runs/') ? 'run' : 'worker',
  };
  const existing = known[kinds[name] ?? ''] ?? [];
  const valid = existing.length === 0 ? fitting(schema) : fc.constantFrom(...existing);
  return fc.oneof({ weight: 3, arbitrary: valid }, { weight: 1, arbitrary: hostileValue });
}

function encoded(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  // Half a character cannot be written in a URL.
  return encodeURIComponent(Buffer.from(text.slice(0, 300)).toString()) || '%20';
}

function checkAnswer(
  operation: Operation,
  success: ValidateFunction | null,
  answer: { readonly statusCode: number; readonly body: string },
): void {
  expect(answer.statusCode, `${operation.operationId}: ${answer.body.slice(0, 500)}`).toBeLessThan(500);
  if (answer.statusCode === 200 && success === null) return;
  const body: unknown = JSON.parse(answer.body);
  const check = answer.statusCode === 200 ? success : isError;
  expect(
    check?.(body),
    `${operation.operationId} ${answer.statusCode}: ${ajv.errorsText(check?.errors)}`,
  ).toBe(true);
}

// SPEC S13.1
describe('every route of the OpenAPI document', () => {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );

  it('is a route of the contract', () => {
    expect(operations).toHaveLength(allRoutes().length);
  });

  for (const { path, method, operation } of operations) {
    it(`${operation.operationId} takes anything and answers as documented`, async () => {
      const json = operation.responses['200']?.content['application/json']?.schema;
      const success = json === undefined ? null : ajv.compile(json);
      const body = operation.requestBody?.content['application/json']?.schema;
      const parameters = operation.parameters ?? [];
      const request = () =>
        fc.record({
          params: fc.tuple(...parameters.map((parameter) => parameterValue(path, parameter))),
          shown: fc.array(fc.boolean(), { minLength: parameters.length, maxLength: parameters.length }),
          body:
            body === undefined
              ? fc.constant(undefined)
              : fc.oneof(fitting(body), mutated(body), hostileValue),
        });
      await fc.assert(
        fc.asyncProperty(request(), async ({ params, shown, body: content }) => {
          const query = new URLSearchParams();
          let url = path;
          for (const [index, { name, in: place }] of parameters.entries()) {
            const value = params[index];
            if (place === 'path') url = url.replace(`{${name}}`, encoded(value));
            else if (shown[index] === true)
              query.set(name, typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
          }
          // Waiting is tested elsewhere; here it would only take time.
          query.delete('wait');
          const isBytes = operation.requestBody?.content['application/octet-stream'] !== undefined;
          const sent = content as { wait_s?: unknown } | null | undefined;
          if (typeof sent === 'object' && typeof sent?.wait_s === 'number')
            sent.wait_s = Math.min(sent.wait_s, 0);
          const answer = await bench.running.server.app.inject({
            method: method.toUpperCase() as 'GET',
            url: query.size === 0 ? url : `${url}?${query}`,
            headers: {
              host: '127.0.0.1',
              authorization: `Bearer ${OWN_TOKEN}`,
              ...(method === 'get' || method === 'delete'
                ? {}
                : { 'content-type': isBytes ? 'application/octet-stream' : 'application/json' }),
            },
            ...(isBytes ? { payload: 'bytes' } : {}),
            ...(content === undefined ? {} : { payload: JSON.stringify(content) }),
          });
          checkAnswer(operation, success, answer);
        }),
        { numRuns: RUNS_PER_ROUTE },
      );
    });
  }

  it('takes no body that is not JSON', async () => {
    for (const payload of ['{', '[1,', '"', 'nul', '\u0000', '{"__proto__": {"a": 1}}', '{"a":1}{"b":2}']) {
      const answer = await bench.post('/runs', {}).then(() =>
        bench.request('/runs', {
          method: 'POST',
          body: payload,
          headers: { 'content-type': 'application/json' },
        }),
      );
      expect(answer.status).toBe(400);
      expect(isError(await answer.json())).toBe(true);
    }
  });
});
