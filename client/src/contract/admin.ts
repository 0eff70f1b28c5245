/** Tokens, numbers and lists for operators on the wire. */
import { z } from 'zod';
import { id, pageOf, time } from './fields.ts';
import { route, SCOPES, type Wire } from './route.ts';

const tokenView = z.object({
  id,
  name: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  created_at: time,
  last_used_at: time.nullable(),
  revoked_at: time.nullable(),
});

const newTokenView = tokenView.extend({
  token: z.string().describe('shown this once; only its hash is kept'),
});

const statsView = z.object({
  runs: z.record(z.string(), z.int()).describe('by status'),
  queued: z.int(),
  oldest_queued_ms: z.number().nullable(),
  leased: z.int(),
  asking: z.int(),
  delayed: z.int(),
  workers: z.int(),
});

const limitView = z.object({
  name: z.string(),
  concurrency: z.int().nullable().describe('attempts at once; null is no bound'),
  in_use: z.int().describe('slots that are taken'),
  windows: z
    .array(
      z.object({
        unit: z.enum(['requests', 'tokens']),
        max: z.int(),
        per: z.string().describe('the length of the window, for example 1m'),
        used: z.int().describe('in the window that ends now; reservations of calls under way included'),
      }),
    )
    .describe('bounds on what is spent in any stretch of time'),
  models: z.array(z.string()).describe('models whose calls count'),
  waiting: z.int().describe('tasks that are held back'),
  updated_at: time,
});

/** A named limit and its use. */
export type LimitView = Wire<typeof limitView>;
/** A token without its secret. */
export type TokenView = Wire<typeof tokenView>;
/** A token that was just made. */
export type NewTokenView = Wire<typeof newTokenView>;
/** How much there is to do. */
export type StatsView = Wire<typeof statsView>;

export const adminRoutes = {
  stats: route({
    method: 'GET',
    path: '/stats',
    scope: 'read',
    summary: 'How much there is to do',
    response: statsView,
  }),
  limits: route({
    method: 'GET',
    path: '/limits',
    scope: 'read',
    summary: 'List named limits and their use',
    response: pageOf(limitView),
  }),
};

export const tokenRoutes = {
  list: route({
    method: 'GET',
    path: '/tokens',
    scope: 'admin',
    summary: 'List tokens',
    response: pageOf(tokenView),
  }),
  create: route({
    method: 'POST',
    path: '/tokens',
    scope: 'admin',
    summary: 'Make a token',
    body: z.strictObject({
      name: z
        .string()
        .min(1)
        .max(100)
        .regex(/^[\w.@-]+$/),
      scopes: z.array(z.enum(SCOPES)).min(1).max(SCOPES.length),
    }),
    response: newTokenView,
  }),
  revoke: route({
    method: 'DELETE',
    path: '/tokens/:id',
    scope: 'admin',
    summary: 'End a token',
    params: z.strictObject({ id }),
    response: tokenView,
  }),
};
