/** Workflows on the wire: storing, looking, checking. */
import { z } from 'zod';
import { anyObject, pageOf, paging, time } from './fields.ts';
import { route, type Wire } from './route.ts';

const name = z.string().min(1).max(200);
const SOURCE_CHARS_MAX = 8 * 1024 * 1024;

const workflowView = z.object({
  name: z.string(),
  version: z.int(),
  hash: z.string(),
  created_at: time,
  definition: z.unknown(),
});

const problem = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.exactOptional(z.string()),
  path: z.string(),
  line: z.int().nullable(),
  column: z.int().nullable(),
});

const validationView = z.object({
  valid: z.boolean(),
  errors: z.array(problem),
  warnings: z.array(problem),
  tasks: z.int(),
  edges: z.int(),
  phases: z.array(z.array(z.string())),
  dropped: z.exactOptional(z.int()),
});

/** A workflow version. */
export type WorkflowView = Wire<typeof workflowView>;
/** What a check of a definition found. */
export type ValidationView = Wire<typeof validationView>;

const written = z.strictObject({
  definition: anyObject.optional().describe('the workflow as a value'),
  source: z.string().max(SOURCE_CHARS_MAX).optional().describe('or as the text of a YAML or JSON file'),
});

export const workflowRoutes = {
  create: route({
    method: 'POST',
    path: '/workflows',
    scope: 'operate',
    summary: 'Store a workflow; a version is added when it differs from the newest',
    body: written,
    response: workflowView,
  }),
  validate: route({
    method: 'POST',
    path: '/workflows/validate',
    scope: 'read',
    summary: 'Check a workflow and tell all its problems',
    body: written,
    response: validationView,
  }),
  list: route({
    method: 'GET',
    path: '/workflows',
    scope: 'read',
    summary: 'List workflows with their newest version',
    query: z.strictObject(paging),
    response: pageOf(workflowView),
  }),
  get: route({
    method: 'GET',
    path: '/workflows/:name',
    scope: 'read',
    summary: 'The newest version of a workflow',
    params: z.strictObject({ name }),
    response: workflowView,
  }),
  version: route({
    method: 'GET',
    path: '/workflows/:name/versions/:version',
    scope: 'read',
    summary: 'One version of a workflow',
    params: z.strictObject({ name, version: z.int().min(1).max(1_000_000_000) }),
    response: workflowView,
  }),
};
