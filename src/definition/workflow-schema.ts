/** The shape of a workflow file (SPEC S1.2) as one schema: it validates, and `relay schema` is generated from it. */
import { z } from 'zod';
import { duration, timeout } from './duration-schema.ts';

const count = z.int().min(1);
const name = z.string().min(1).max(128);
const jsonSchema = z.union([z.record(z.string(), z.unknown()), z.boolean()]);

const retry = z
  .strictObject({
    max_attempts: count.max(1000).describe('attempts in all, failures counted; default 3'),
    max_losses: z.int().min(0).max(1000).describe('lost workers tolerated; default 10'),
    initial: duration.describe('first delay; default 1s'),
    factor: z.number().min(1).max(100).describe('growth of the delay; default 2'),
    max: duration.describe('longest delay; default 60s'),
    jitter: z.number().min(0).max(1).describe('share of the delay that is random; default 0.5'),
    on_output_error: z.boolean().describe('retry output that is not what was asked for; default true'),
    after_max: duration.describe('a longer Retry-After fails at once; default 1h'),
  })
  .partial()
  .describe('when and how often a failed attempt is tried again');

const output = z
  .strictObject({
    format: z.enum(['text', 'json']),
    schema: jsonSchema.describe('JSON Schema that the output must fit'),
    repair: z.int().min(0).max(10).describe('how often the error is fed back to the model'),
    max_chars: count,
    allow_empty: z.boolean(),
    allow_truncated: z.boolean(),
  })
  .partial()
  .describe('what the output must be');

const gate = z
  .strictObject({
    message: z.string().describe('what the person is asked; may use templates'),
    form: jsonSchema.optional().describe('JSON Schema of the answer'),
    timeout: timeout.optional(),
    on_timeout: z.enum(['approve', 'reject']).optional(),
    on_reject: z.enum(['fail', 'skip']).optional(),
  })
  .describe('a person decides before the task runs');

const worker = z
  .strictObject({
    pool: name,
    labels: z.record(z.string(), z.string()),
    resources: z.record(z.string(), z.number().min(0)),
  })
  .partial()
  .describe('which workers may take the task');

const sharedTaskKeys = {
  uses: name
    .optional()
    .describe('the handler: llm, http, shell, script, transform, wait, approval, or a declared one'),
  with: z.record(z.string(), z.unknown()).optional().describe('the config of the handler; may use templates'),
  output: output.optional(),
  retry: retry.optional(),
  timeout: timeout.optional().describe('of one attempt; default 1h'),
  priority: z.int().min(-1000).max(1000).optional().describe('higher first; default 0'),
  limits: z.array(name).max(16).optional().describe('named limits that the task counts against'),
  worker: worker.optional(),
};

const task = z
  .strictObject({
    needs: z
      .union([name, z.array(name)])
      .optional()
      .describe('tasks that must be done before; references in templates are added by themselves'),
    if: z.union([z.string(), z.boolean()]).optional().describe('expression; when false the task is skipped'),
    gate: gate.optional(),
    when: z.enum(['success', 'done']).optional().describe('done: run whatever the parents did'),
    for_each: z
      .union([z.string(), z.array(z.unknown())])
      .optional()
      .describe('one task run per item of this list'),
    on_item_failure: z.enum(['fail', 'collect']).optional(),
    max_parallel: count.optional().describe('items at once, at most'),
    ...sharedTaskKeys,
  })
  .describe('a node of the graph');

/** The whole file. Strict: a key that is not here is an error. */
export const workflowSchema = z.strictObject({
  name: name.describe('names the workflow; runs and versions are listed under it'),
  description: z.string().optional().describe('what the workflow is for'),
  inputs: z
    .record(z.string(), z.record(z.string(), z.unknown()))
    .optional()
    .describe('a JSON Schema per input; an input without a default is required'),
  outputs: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('values of the finished run; may use templates'),
  max_parallel: count.optional().describe('tasks of one run at work at once, at most'),
  on_failure: z.enum(['fail_fast', 'continue']).optional().describe('default fail_fast'),
  timeout: timeout.optional().describe('of the run; time waiting for people or paused does not count'),
  budget: z
    .strictObject({ tokens: count, cost_usd: z.number().gt(0) })
    .partial()
    .optional()
    .describe('what the model calls of one run may use, at most'),
  labels: z.record(z.string(), z.string()).optional().describe('words to find runs by'),
  secrets: z.array(name).optional().describe('what {{ secrets.X }} may name'),
  env: z.array(name).optional().describe('what {{ env.X }} may name'),
  handlers: z.array(name).optional().describe('handlers that are not built in, served by some worker'),
  defaults: z.strictObject(sharedTaskKeys).optional().describe('merged into every task'),
  tasks: z.record(z.string(), task).describe('the nodes by id'),
});

/** A workflow as written, once its shape is right. */
export type WorkflowInput = z.output<typeof workflowSchema>;
/** A task as written. */
export type TaskInput = z.output<typeof task>;

/** `id` and `handler` may be absent here so that their absence is reported without losing the node. */
const nodeSchema = z.strictObject({
  id: z.string().optional(),
  handler: name.optional(),
  config: z.record(z.string(), z.unknown()).optional(),
  dependencies: z.array(name).optional(),
  timeout_seconds: z.number().gt(0).max(31_536_000).optional(),
});

/** The node-list dialect (SPEC S1.3). */
export const nodeListSchema = z.strictObject({
  name,
  description: z.string().optional(),
  nodes: z.array(nodeSchema),
});

/** A node-list file, once its shape is right. */
export type NodeListInput = z.output<typeof nodeListSchema>;
