/** Task runs on the wire: state, attempts, artifacts, logs, and what people decide. */
import { z } from 'zod';
import {
  anyObject,
  following,
  id,
  idempotencyKey,
  pageOf,
  taskFailure,
  taskParams,
  text,
  time,
  usage,
} from './fields.ts';
import { route, type Wire } from './route.ts';
import { logView } from './streams.ts';

const TASK_STATUSES = [
  'PENDING',
  'READY',
  'QUEUED',
  'LEASED',
  'RUNNING',
  'BLOCKED',
  'WAITING_INPUT',
  'SUCCESS',
  'FAILED',
  'CANCELLED',
  'SKIPPED',
] as const;
const WAITING_FOR = [
  'dependency',
  'capacity',
  'limit',
  'budget',
  'pool',
  'person',
  'time',
  'paused',
] as const;

const questionView = z.object({
  question_id: z.string(),
  kind: z.enum(['gate', 'approval', 'worker']),
  message: z.string(),
  schema: z.unknown(),
  timeout_at: time.nullable(),
});

const itemCounts = z.object({
  total: z.int(),
  done: z.int().describe('items that have ended, however they did'),
  failed: z.int(),
});

export const taskView = z.object({
  task_run_id: id,
  run_id: id,
  task_id: z.string(),
  map_index: z.int().nullable().describe('the place in the list, of an item of a map'),
  items: itemCounts.nullable().describe('how far a map is; null for a task without `for_each`'),
  status: z.enum(TASK_STATUSES),
  reason: z.string().nullable(),
  waiting_for: z.enum(WAITING_FOR).nullable(),
  limit: z.string().nullable().describe('the named limit that holds the task back'),
  attempt: z.int(),
  output: z.unknown(),
  output_ref: z.string().nullable().describe('the artifact with the output, when it is over 16 KiB'),
  error: taskFailure.nullable(),
  progress: z.number().nullable(),
  message: z.string().nullable(),
  question: questionView.nullable(),
  not_before: time.nullable(),
  started_at: time.nullable(),
  finished_at: time.nullable(),
  usage: usage.nullable(),
});

const attemptView = z.object({
  attempt: z.int(),
  outcome: z.string(),
  error: taskFailure.nullable(),
  usage: usage.nullable(),
  worker: z.string().nullable(),
  started_at: time.nullable(),
  finished_at: time,
});

const artifactView = z.object({
  id: z.string(),
  kind: z.string(),
  name: z.string(),
  content_type: z.string(),
  bytes: z.int(),
  attempt: z.int(),
  created_at: time,
});

/** What a person is asked. */
export type QuestionView = Wire<typeof questionView>;
/** A task of a run. */
export type TaskView = Wire<typeof taskView>;
/** One claim of a task run. */
export type AttemptView = Wire<typeof attemptView>;
/** A stored piece of data of a task. */
export type ArtifactView = Wire<typeof artifactView>;

const params = taskParams;
const decided = { question_id: id.optional(), idempotency_key: idempotencyKey };
const decide = <Body extends z.ZodObject>(verb: string, summary: string, body: Body) =>
  route({
    method: 'POST',
    path: `/tasks/:task_run_id/${verb}`,
    scope: 'operate',
    summary,
    params,
    body,
    response: taskView,
  });
const look = <Response extends z.ZodType>(what: string, summary: string, response: Response) =>
  route({ method: 'GET', path: `/tasks/:task_run_id${what}`, scope: 'read', summary, params, response });

export const taskRoutes = {
  get: look('', 'Look at a task run', taskView),
  attempts: look('/attempts', 'List the attempts that have ended', pageOf(attemptView)),
  artifacts: look('/artifacts', 'List outputs and files', pageOf(artifactView)),
  input: look(
    '/input',
    '`with` as it was or will be rendered, secrets masked',
    z.object({ input: anyObject }),
  ),
  logs: route({
    method: 'GET',
    path: '/tasks/:task_run_id/logs',
    scope: 'read',
    summary: 'Read logs and model tokens, as a page or as a stream',
    params,
    query: z.strictObject(following),
    response: pageOf(logView),
    streams: true,
  }),
  artifact: route({
    method: 'GET',
    path: '/artifacts/:artifact_id',
    scope: 'read',
    summary: 'Read the content of an artifact',
    params: z.strictObject({ artifact_id: id }),
    response: 'bytes',
  }),
  approve: decide(
    'approve',
    'Say yes, with an answer that fits the form',
    z.strictObject({ answer: z.unknown().optional(), ...decided }),
  ),
  reject: decide('reject', 'Say no', z.strictObject({ reason: text.optional(), ...decided })),
  answer: decide('answer', 'Answer what a worker asked', z.strictObject({ answer: z.unknown(), ...decided })),
  resume: decide('resume', 'Let a paused task go on without an answer', z.strictObject(decided)),
  cancel: decide('cancel', 'Cancel a task', z.strictObject({ idempotency_key: idempotencyKey })),
  replay: decide(
    'replay',
    'Let a dead task run again',
    z.strictObject({ reset_attempts: z.boolean(), idempotency_key: idempotencyKey }),
  ),
};
