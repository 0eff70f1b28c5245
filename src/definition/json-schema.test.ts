/** The schema for editors accepts what the validator accepts, and knows keys and handlers (SPEC S1.6). */
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as formats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';
import { workflowJsonSchema } from './json-schema.ts';
import { checkWorkflowValue } from './load.ts';

const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true });
formats.default.default(ajv);
const validate = ajv.compile(workflowJsonSchema(BUILT_IN_HANDLERS));

const full = {
  name: 'full',
  description: 'every key of the format',
  inputs: { topic: { type: 'string', default: 'tides', enum: ['tides', 'tea'] }, points: { type: 'array' } },
  outputs: { brief: '{{ tasks.draft.output }}' },
  max_parallel: 8,
  on_failure: 'continue',
  timeout: '30m',
  budget: { tokens: 200_000, cost_usd: 5 },
  labels: { team: 'docs' },
  secrets: ['OPENAI_API_KEY'],
  env: ['HOME'],
  handlers: ['train'],
  defaults: { timeout: '60s', retry: { max_attempts: 2 } },
  tasks: {
    research: {
      uses: 'llm',
      with: { model: 'offline/brief', prompt: 'About {{ inputs.topic }}', max_tokens: '{{ 1000 + 1 }}' },
      output: {
        format: 'json',
        schema: { type: 'object' },
        repair: 1,
        max_chars: 10,
        allow_empty: false,
        allow_truncated: false,
      },
    },
    draft: {
      needs: 'research',
      if: 'tasks.research.output | length > 0',
      gate: {
        message: 'Go on?',
        form: { type: 'object' },
        timeout: '24h',
        on_timeout: 'reject',
        on_reject: 'skip',
      },
      when: 'done',
      uses: 'llm',
      with: {
        model: 'offline/brief',
        fallbacks: ['offline/other'],
        messages: [{ role: 'user', content: 'hi' }],
      },
      retry: {
        max_attempts: 3,
        max_losses: 10,
        initial: '1s',
        factor: 2,
        max: '60s',
        jitter: 0.5,
        on_output_error: true,
        after_max: '1h',
      },
      timeout: '2m',
      priority: 5,
      limits: ['openai'],
      worker: { pool: 'gpu', labels: { region: 'eu' }, resources: { vram_gb: 24 } },
    },
    check: {
      for_each: '{{ inputs.points }}',
      on_item_failure: 'collect',
      max_parallel: 4,
      uses: 'http',
      with: { url: 'https://example.org/?q={{ item | urlencode }}', expect: '{{ [200] }}' },
    },
    train: { uses: 'train', needs: ['draft', 'check'], with: { anything: { goes: true } } },
  },
};

// SPEC S1.6, S1.2
describe('the JSON Schema of workflow files', () => {
  it('accepts a file with every key of the format, as the validator does', async () => {
    expect(validate(full), JSON.stringify(validate.errors)).toBe(true);
    const { errors } = await checkWorkflowValue(full, { handlers: BUILT_IN_HANDLERS });
    expect(errors).toEqual([]);
  });

  for (const [what, change] of [
    ['an unknown key', { max_paralel: 1 }],
    ['a wrong type', { max_parallel: 'many' }],
    ['a bad duration', { timeout: 'soon' }],
    ['no name', { name: undefined }],
    ['an unknown key of a task', { tasks: { a: { uses: 'transform', neds: [] } } }],
    [
      'a wrong `with` of a handler',
      { tasks: { a: { uses: 'http', with: { url: 'https://x', methd: 'GET' } } } },
    ],
    [
      'a wrong value in `with`',
      { tasks: { a: { uses: 'http', with: { url: 'https://x', method: 'FETCH' } } } },
    ],
  ] as const) {
    it(`refuses ${what}`, () => {
      expect(validate(JSON.parse(JSON.stringify({ ...full, ...change })))).toBe(false);
    });
  }

  it('accepts a template wherever `with` takes a value that is not text', () => {
    const tasks = { a: { uses: 'http', with: { url: '{{ inputs.topic }}', method: '{{ inputs.topic }}' } } };
    expect(validate({ ...full, tasks }), JSON.stringify(validate.errors)).toBe(true);
  });

  it('describes its keys, for completion in editors', () => {
    const schema = workflowJsonSchema(BUILT_IN_HANDLERS) as {
      properties: Record<string, { description?: string }>;
    };
    const silent = Object.entries(schema.properties).filter(([, value]) => value.description === undefined);
    expect(silent.map(([key]) => key)).toEqual([]);
  });
});
