/** Runs on the wire: starting, looking, acting. */
import { z } from 'zod';
import {
  anyObject,
  following,
  followingEvents,
  id,
  idempotencyKey,
  labels,
  pageOf,
  paging,
  runParams,
  time,
  usage,
} from './fields.ts';
import { route, type Wire } from './route.ts';
import { eventView, logView } from './streams.ts';
import { taskView } from './tasks.ts';

const RUN_STATUSES = ['PENDING', 'RUNNING', 'WAITING', 'SUCCESS', 'FAILED', 'CANCELLED'] as const;

/** The code of one module of a `script` task. */
const BUNDLE_CHARS_MAX = 16 * 1024 * 1024;
const START_BYTES_MAX = 24 * 1024 * 1024;

const runSummary = z.object({
  id,
  status: z.enum(RUN_STATUSES),
  reason: z.string().nullable().describe('why it ended or rests: a stop reason, `task_failed`, `paused`'),
  workflow_name: z.string().nullable(),
  workflow_version: z.int().nullable(),
  labels: z.record(z.string(), z.string()),
  priority: z.int(),
  counts: z.record(z.string(), z.int()),
  cloned_from: z.string().nullable(),
  trace_id: z.string().describe('the W3C trace that the run belongs to'),
  created_at: time,
  started_at: time.nullable(),
  finished_at: time.nullable(),
});

const runView = runSummary.extend({
  inputs: z.unknown(),
  outputs: z.unknown(),
  error: z.unknown(),
  usage: usage.nullable(),
  budget: z
    .object({ tokens: z.int().nullable(), cost_usd: z.number().nullable() })
    .nullable()
    .describe('what its model calls may use; null is no bound'),
  tasks: z.array(taskView).describe('the first 1,000'),
  tasks_next_cursor: z.string().nullable(),
});

const contextView = z.object({
  id,
  run_id: id,
  task_run_id: z.string().nullable(),
  parent_id: z.string().nullable(),
  label: z.string().nullable(),
  data: z.unknown(),
  created_by: z.string().nullable(),
  created_at: time,
});

const graphView = z.object({
  nodes: z.array(
    z.object({
      task_run_id: id,
      task_id: z.string(),
      map_index: z.int().nullable(),
      status: taskView.shape.status,
    }),
  ),
  edges: z.array(z.object({ from: id, to: id })).describe('by task_run_id'),
});

/** A run without its tasks. Times are ISO 8601. */
export type RunSummary = Wire<typeof runSummary>;
/** A run with its tasks; above 1,000 tasks the rest is paged. */
export type RunView = Wire<typeof runView>;
/** An immutable note on a run or a task. */
export type ContextView = Wire<typeof contextView>;
/** The tasks of a run and what each waits for. */
export type GraphView = Wire<typeof graphView>;

const startBody = z.strictObject({
  workflow: z.string().min(1).max(200).optional().describe('name of a stored workflow'),
  definition: anyObject.optional().describe('a workflow, as in a file'),
  bundles: z
    .record(z.string().max(1_000), z.string().max(BUNDLE_CHARS_MAX))
    .optional()
    .describe('ES modules, with all they import, for the `script` tasks of the definition, by `module`'),
  open: z.boolean().optional().describe('a run without a workflow, to which tasks are added'),
  auto_close: z.boolean().optional().describe('an open run ends when nothing is left to do; default true'),
  inputs: anyObject.optional(),
  labels: labels.optional(),
  priority: z.int().min(-1_000_000).max(1_000_000).optional(),
  idempotency_key: idempotencyKey,
});
const keyed = z.strictObject({ idempotency_key: idempotencyKey });
const params = runParams;
const scope = 'operate';

const act = (verb: string, summary: string) =>
  route({
    method: 'POST',
    path: `/runs/:id/${verb}`,
    scope,
    summary,
    params,
    body: keyed,
    response: runView,
  });

export const runRoutes = {
  start: route({
    method: 'POST',
    path: '/runs',
    scope,
    summary: 'Start a run',
    body: startBody,
    bodyBytesMax: START_BYTES_MAX,
    response: runView,
  }),
  list: route({
    method: 'GET',
    path: '/runs',
    scope: 'read',
    summary: 'List runs, the newest first',
    query: z.strictObject({
      ...paging,
      status: z.enum(RUN_STATUSES).optional(),
      workflow: z.string().max(200).optional(),
      label: z.string().max(1_200).optional().describe('name=value'),
    }),
    response: pageOf(runSummary),
  }),
  get: route({
    method: 'GET',
    path: '/runs/:id',
    scope: 'read',
    summary: 'Look at a run; with `wait`, when it has ended or the time is over',
    params,
    query: z.strictObject({
      wait: z
        .string()
        .regex(/^\d{1,6}(ms|s|m)$/)
        .optional()
        .describe('for example 30s; at most 60s are waited'),
    }),
    response: runView,
  }),
  tasks: route({
    method: 'GET',
    path: '/runs/:id/tasks',
    scope: 'read',
    summary: 'List the task runs of a run',
    params,
    query: z.strictObject({
      ...paging,
      task_id: id.optional().describe('one task of the workflow; of a map its own task run, then its items'),
      map_index: z.int().min(0).optional().describe('with `task_id`: this item of the map'),
    }),
    response: pageOf(taskView),
  }),
  enqueue: route({
    method: 'POST',
    path: '/runs/:id/tasks',
    scope,
    summary: 'Add tasks to a run; `needs` may name tasks of the run',
    params,
    body: z.strictObject({
      tasks: z.record(z.string().max(200), anyObject).describe('by task id, as in a workflow file'),
      idempotency_key: idempotencyKey,
    }),
    response: pageOf(taskView),
  }),
  events: route({
    method: 'GET',
    path: '/runs/:id/events',
    scope: 'read',
    summary: 'Read the events of a run, as a page or as a stream',
    params,
    query: z.strictObject({ ...followingEvents, types: z.string().max(2_000).optional() }),
    response: pageOf(eventView),
    streams: true,
  }),
  logs: route({
    method: 'GET',
    path: '/runs/:id/logs',
    scope: 'read',
    summary: 'Read the logs of all tasks of a run, as a page or as a stream',
    params,
    query: z.strictObject(following),
    response: pageOf(logView.extend({ task_run_id: id, task_id: z.string() })),
    streams: true,
  }),
  graph: route({
    method: 'GET',
    path: '/runs/:id/graph',
    scope: 'read',
    summary: 'The tasks of a run and their dependencies',
    params,
    response: graphView,
  }),
  context: route({
    method: 'GET',
    path: '/runs/:id/context',
    scope: 'read',
    summary: 'List the context snapshots of a run, oldest first',
    params,
    response: pageOf(contextView),
  }),
  appendContext: route({
    method: 'POST',
    path: '/runs/:id/context',
    scope,
    summary: 'Append a context snapshot',
    params,
    body: z.strictObject({
      data: z.unknown(),
      label: z.string().max(200).optional(),
      parent_id: id.optional(),
      task_run_id: id.optional(),
    }),
    response: contextView,
  }),
  cancel: act('cancel', 'Cancel a run: everything unfinished is CANCELLED at once'),
  pause: act('pause', 'Hand out nothing more; leased work finishes'),
  resume: act('resume', 'Undo a pause'),
  close: act('close', 'Let an open run end when nothing is left to do'),
  retry: route({
    method: 'POST',
    path: '/runs/:id/retry',
    scope,
    summary: 'Run again what did not succeed, with another budget where given',
    params,
    body: z.strictObject({
      budget: z
        .strictObject({
          tokens: z.int().min(1).max(Number.MAX_SAFE_INTEGER).optional(),
          cost_usd: z.number().gt(0).max(1e12).optional(),
        })
        .optional()
        .describe('what the run may use from its start on; what is not named stays as it is'),
      idempotency_key: idempotencyKey,
    }),
    response: runView,
  }),
  rerun: route({
    method: 'POST',
    path: '/runs/:id/rerun',
    scope,
    summary: 'Run a task and everything after it again',
    params,
    body: z.strictObject({ task_id: id, idempotency_key: idempotencyKey }),
    response: runView,
  }),
  clone: route({
    method: 'POST',
    path: '/runs/:id/clone',
    scope,
    summary: 'Start a new run of the same version, with other inputs where given',
    params,
    body: z.strictObject({ inputs: anyObject.optional(), idempotency_key: idempotencyKey }),
    response: runView,
  }),
  prune: route({
    method: 'POST',
    path: '/runs/prune',
    scope: 'admin',
    summary: 'Remove runs that ended long ago',
    body: z.strictObject({
      older_than_ms: z.number().min(0).max(1e13),
      statuses: z
        .array(z.enum(['SUCCESS', 'FAILED', 'CANCELLED']))
        .min(1)
        .max(3),
      dry_run: z.boolean(),
      limit: z.int().min(1).max(100_000).optional(),
    }),
    response: z.object({ run_ids: z.array(z.string()), dry_run: z.boolean() }),
  }),
};

export const approvalRoutes = {
  list: route({
    method: 'GET',
    path: '/approvals',
    scope: 'read',
    summary: 'List what waits for a person',
    query: z.strictObject({ ...paging, run_id: id.optional() }),
    response: pageOf(
      taskView.shape.question.unwrap().extend({
        run_id: id,
        task_run_id: id,
        task_id: z.string(),
        map_index: z.int().nullable(),
        workflow_name: z.string().nullable(),
      }),
    ),
  }),
};

export const deadLetterRoutes = {
  list: route({
    method: 'GET',
    path: '/dead-letters',
    scope: 'read',
    summary: 'List tasks that failed for good',
    query: z.strictObject({ ...paging, run_id: id.optional() }),
    response: pageOf(taskView),
  }),
  replay: route({
    method: 'POST',
    path: '/dead-letters/replay',
    scope,
    summary: 'Let dead tasks run again',
    body: z.strictObject({
      task_run_ids: z.array(id).max(1_000).optional(),
      run_id: id.optional(),
      reset_attempts: z.boolean().optional(),
      dry_run: z.boolean(),
    }),
    response: z.object({ task_run_ids: z.array(id), dry_run: z.boolean() }),
  }),
  purge: route({
    method: 'POST',
    path: '/dead-letters/purge',
    scope,
    summary: 'Take dead tasks off the list; they stay FAILED',
    body: z.strictObject({
      task_run_ids: z.array(id).max(1_000).optional(),
      run_id: id.optional(),
      dry_run: z.boolean(),
    }),
    response: z.object({ task_run_ids: z.array(id), dry_run: z.boolean() }),
  }),
};

/** A question with the task that asks it. */
export type ApprovalView = Wire<(typeof approvalRoutes)['list']['response']>['items'][number];
