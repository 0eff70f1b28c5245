/** The lease protocol (SPEC S11.1): any program that can call these routes can be a worker. */
import { z } from 'zod';
import { anyObject, id, labels, pageOf, taskFailure, text, time, usage } from './fields.ts';
import { route, type Wire } from './route.ts';

/** Leases and settlements of one call, at most. */
export const CLAIM_MAX = 1_000;
/** The longest a claim may wait for work. */
export const CLAIM_WAIT_S_MAX = 60;
const BLOB_BYTES_MAX = 1024 * 1024 * 1024;
const LOG_CHUNKS_MAX = 1_000;
const LOG_CHARS_MAX = 64 * 1024;

const sha256 = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .describe('SHA-256 of the content, in hex');

const leaseView = z.object({
  lease_id: id,
  run_id: id,
  task_run_id: id,
  task_id: z.string(),
  map_index: z.int().nullable(),
  attempt: z.int(),
  handler: z.string(),
  config: anyObject.describe('`with` after rendering'),
  output: anyObject.nullable().describe('what the output must be'),
  secrets: z
    .exactOptional(z.array(z.string()))
    .describe('secrets that are in `config`: mask them in what is kept'),
  lease_ms: z.number().describe('how long the lease lasts without a heartbeat'),
  timeout_ms: z.number().describe('how long the attempt may take'),
  checkpoint: z.unknown().describe('what an earlier attempt left'),
  answers: anyObject.describe('answers to questions of earlier attempts, by key'),
  workdir: z.string().nullable(),
  trace: z
    .object({ traceparent: z.string(), tracestate: z.exactOptional(z.string()) })
    .describe('W3C trace context of the run'),
});

const artifacts = z
  .array(z.strictObject({ name: z.string().min(1).max(1_000), content_type: z.string().max(200), sha256 }))
  .max(1_000)
  .describe('files whose content was sent to `blobs` before');
const question = z.strictObject({
  key: id,
  message: text,
  schema: z.exactOptional(z.unknown()),
  timeout: z
    .exactOptional(z.string().regex(/^\d{1,12}(\.\d{1,6})?(ms|s|m|h|d)$/))
    .describe('how long to wait for an answer, such as 24h; then the task is FAILED as rejected'),
});
const used = z.exactOptional(usage);

const completed = {
  output: z.unknown().optional(),
  output_sha256: sha256.optional().describe('the output is JSON that was sent to `blobs` before'),
  usage: used,
  artifacts: z.exactOptional(artifacts),
  enqueue: z
    .exactOptional(z.record(z.string().max(200), anyObject))
    .describe('tasks to add to the run in the same step, by id'),
  context: z.exactOptional(
    z
      .array(
        z.strictObject({
          data: z.unknown(),
          label: z.exactOptional(z.string().max(200)),
          parent_id: z.exactOptional(id),
        }),
      )
      .max(100),
  ),
};
const failed = { failure: taskFailure.strict(), usage: used, artifacts: z.exactOptional(artifacts) };
const released = { delay_ms: z.exactOptional(z.number().min(0).max(86_400_000)), usage: used };
const paused = { status: z.enum(['BLOCKED', 'WAITING_INPUT']), question, usage: used };

const settlement = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('complete'), lease_id: id, ...completed }),
  z.strictObject({ kind: z.literal('fail'), lease_id: id, ...failed }),
  z.strictObject({ kind: z.literal('release'), lease_id: id, ...released }),
  z.strictObject({ kind: z.literal('pause'), lease_id: id, ...paused }),
]);

const settled = z.object({
  lease_id: z.string(),
  ok: z.literal(true),
  status: z.string(),
  not_before: time.nullable(),
});
const refused = z.object({
  lease_id: z.string(),
  ok: z.literal(false),
  code: z.string(),
  message: z.string(),
});

const beat = {
  progress: z.exactOptional(z.number().min(0).max(1)),
  message: z.exactOptional(text),
  checkpoint: z.exactOptional(z.unknown()),
};

const leaseAnswer = z.object({
  lease_id: z.string(),
  order: z.enum(['continue', 'cancel', 'lost']),
  expires_in_ms: z.number(),
});

const chunk = z.strictObject({
  stream: z.enum(['stdout', 'stderr', 'log', 'token']),
  text: z.string().max(LOG_CHARS_MAX),
});

const workerView = z.object({
  id,
  status: z.enum(['ACTIVE', 'DRAINING', 'GONE']),
  handlers: z.array(z.string()),
  labels: z.record(z.string(), z.string()),
  pool: z.string().nullable(),
  is_remote: z.boolean(),
  started_at: time,
  seen_at: time,
});

/** The right to one attempt, as it travels. */
export type LeaseView = Wire<typeof leaseView>;
/** How an attempt ended, as it travels. */
export type WireSettlement = z.input<typeof settlement>;
/** A process that takes work. */
export type WorkerView = Wire<typeof workerView>;

const worker = z.strictObject({ id });
const lease = z.strictObject({ lease_id: id });
const ok = z.object({ ok: z.literal(true) });
const settle = <Body extends z.ZodObject>(verb: string, summary: string, body: Body) =>
  route({
    method: 'POST',
    path: `/leases/:lease_id/${verb}`,
    scope: 'worker',
    summary,
    params: lease,
    body,
    response: settled,
  });

export const workerRoutes = {
  list: route({
    method: 'GET',
    path: '/workers',
    scope: 'read',
    summary: 'List workers',
    response: pageOf(workerView),
  }),
  register: route({
    method: 'POST',
    path: '/workers/register',
    scope: 'worker',
    summary: 'Say what a worker can do; a new boot_id frees the leases of the old one',
    body: z.strictObject({
      worker_id: id.optional().describe('the same after a restart; one is made up when it is left out'),
      boot_id: id.describe('new with every start of the worker'),
      handlers: z.array(z.string().min(1).max(200)).min(1).max(1_000),
      labels: labels.optional(),
      pool: z.string().min(1).max(200).optional(),
      resources: z.record(z.string().max(200), z.number()).optional(),
      slurm_job_id: z.string().max(200).optional(),
    }),
    response: z.object({ worker_id: id, lease_ms: z.number(), freed: z.int() }),
  }),
  claim: route({
    method: 'POST',
    path: '/workers/:id/claim',
    scope: 'worker',
    summary: 'Hand over results and take new leases, in one step',
    params: worker,
    body: z.strictObject({
      limit: z.int().min(0).max(CLAIM_MAX),
      wait_s: z
        .number()
        .min(0)
        .max(CLAIM_WAIT_S_MAX)
        .optional()
        .describe('how long to wait for work; a call with settlements answers at once'),
      start: z.boolean().optional().describe('RUNNING at once; default true'),
      claim_id: id.optional().describe('repeating it gives the same leases'),
      settlements: z.array(settlement).max(CLAIM_MAX).optional(),
    }),
    response: z.object({
      results: z.array(z.discriminatedUnion('ok', [settled, refused])),
      leases: z.array(leaseView),
      drain: z.boolean(),
    }),
  }),
  heartbeat: route({
    method: 'POST',
    path: '/workers/:id/heartbeat',
    scope: 'worker',
    summary: 'A sign of life for leases; tells what to do about each',
    params: worker,
    body: z.strictObject({
      leases: z.array(z.strictObject({ lease_id: id, ...beat })).max(10_000),
    }),
    response: z.object({ leases: z.array(leaseAnswer), drain: z.boolean() }),
  }),
  logs: route({
    method: 'POST',
    path: '/workers/:id/logs',
    scope: 'worker',
    summary: 'Send logs of many leases at once',
    params: worker,
    body: z.strictObject({ chunks: z.array(chunk.extend({ lease_id: id })).max(LOG_CHUNKS_MAX) }),
    response: ok,
  }),
  drain: route({
    method: 'POST',
    path: '/workers/:id/drain',
    scope: 'operate',
    summary: 'Ask a worker to finish and leave',
    params: worker,
    response: workerView,
  }),
  deregister: route({
    method: 'POST',
    path: '/workers/:id/deregister',
    scope: 'worker',
    summary: 'Leave; leases that are still held are released',
    params: worker,
    response: z.object({ released: z.int() }),
  }),
};

export const leaseRoutes = {
  start: route({
    method: 'POST',
    path: '/leases/:lease_id/start',
    scope: 'worker',
    summary: 'The work begins',
    params: lease,
    response: leaseAnswer,
  }),
  checkpoint: route({
    method: 'POST',
    path: '/leases/:lease_id/checkpoint',
    scope: 'worker',
    summary: 'Keep something for the next attempt',
    params: lease,
    body: z.strictObject({ ...beat, checkpoint: z.unknown() }),
    response: leaseAnswer,
  }),
  logs: route({
    method: 'POST',
    path: '/leases/:lease_id/logs',
    scope: 'worker',
    summary: 'Append to the log of the attempt',
    params: lease,
    body: z.strictObject({ chunks: z.array(chunk).max(LOG_CHUNKS_MAX) }),
    response: ok,
  }),
  complete: settle('complete', 'The work is done', z.strictObject(completed)),
  fail: settle('fail', 'The attempt has failed', z.strictObject(failed)),
  release: settle('release', 'Give the task back; nothing is spent', z.strictObject(released)),
  pause: settle('pause', 'Ask a person; the answer comes with the next attempt', z.strictObject(paused)),
  putBlob: route({
    method: 'PUT',
    path: '/leases/:lease_id/blobs/:key',
    scope: 'worker',
    summary: 'Store bytes under their SHA-256, for files and large outputs',
    params: z.strictObject({ lease_id: id, key: sha256 }),
    takesBytes: true,
    bodyBytesMax: BLOB_BYTES_MAX,
    response: z.object({ key: z.string(), bytes: z.int() }),
  }),
  getBlob: route({
    method: 'GET',
    path: '/leases/:lease_id/blobs/:key',
    scope: 'worker',
    summary: 'Read bytes by their SHA-256',
    params: z.strictObject({ lease_id: id, key: sha256 }),
    response: 'bytes',
  }),
};
