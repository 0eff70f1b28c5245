/** Messages for a broker on the wire: what waits, what is dead, what to do about it. */
import { z } from 'zod';
import { id, pageOf, paging, time } from './fields.ts';
import { route, type Wire } from './route.ts';

const messageView = z.object({
  task_run_id: id,
  run_id: id,
  task_id: z.string(),
  attempt: z.int().describe('the attempt that the message can start'),
  status: z.enum(['due', 'delayed', 'in_flight']).describe('in_flight: a daemon has it in hand'),
  available_at: time,
  created_at: time,
  retries: z.int().describe('how often the broker has refused it'),
  last_error: z.string().nullable(),
});

const outboxStatsView = z.object({
  depth: z.int().describe('messages that could be sent now'),
  oldest_ms: z.number().nullable().describe('age of the oldest of them'),
  delayed: z.int(),
  in_flight: z.int(),
  outstanding: z.int().describe('sent, and their tasks not claimed yet'),
  dead: z.int(),
  unknown: z.int().describe('written by a later version, and left alone'),
});

const deadMessageView = z.object({
  id,
  task_run_id: id,
  run_id: id,
  task_id: z.string(),
  attempt: z.int(),
  retries: z.int(),
  last_error: z.string().nullable(),
  created_at: time,
  died_at: time,
});

const chosen = z.strictObject({
  ids: z.array(id).max(1_000).optional().describe('without them, the first 1,000'),
  dry_run: z.boolean(),
});
const answer = z.object({ ids: z.array(id), dry_run: z.boolean() });

/** A message that waits for a broker. */
export type OutboxMessageView = Wire<typeof messageView>;
/** How much there is to send. */
export type OutboxStatsView = Wire<typeof outboxStatsView>;
/** A message that the broker has refused too often. */
export type DeadMessageView = Wire<typeof deadMessageView>;

export const outboxRoutes = {
  list: route({
    method: 'GET',
    path: '/outbox',
    scope: 'read',
    summary: 'List messages that wait for a broker',
    query: z.strictObject(paging),
    response: pageOf(messageView),
  }),
  stats: route({
    method: 'GET',
    path: '/outbox/stats',
    scope: 'read',
    summary: 'How many messages wait, are sent, are dead',
    response: outboxStatsView,
  }),
  deadLetters: route({
    method: 'GET',
    path: '/outbox/dead-letters',
    scope: 'read',
    summary: 'List messages that the broker has refused too often',
    query: z.strictObject(paging),
    response: pageOf(deadMessageView),
  }),
  replay: route({
    method: 'POST',
    path: '/outbox/replay',
    scope: 'operate',
    summary: 'Send dead messages again, as far as their tasks still wait',
    body: chosen,
    response: answer,
  }),
  purge: route({
    method: 'POST',
    path: '/outbox/purge',
    scope: 'operate',
    summary: 'Take dead messages off the list; their tasks stay claimable',
    body: chosen,
    response: answer,
  }),
};
