/** What grows and can be followed: events and logs. */
import { z } from 'zod';
import { followingEvents, id, pageOf, time } from './fields.ts';
import { route, type Wire } from './route.ts';

export const eventView = z.object({
  cursor: z.string(),
  type: z.string(),
  at: time,
  run_id: z.string().nullable(),
  task_run_id: z.string().nullable(),
  task_id: z.string().nullable(),
  map_index: z.int().nullable().describe('of an item of a map'),
  data: z.record(z.string(), z.unknown()),
});

export const logView = z.object({
  cursor: z.string(),
  attempt: z.int(),
  at: time,
  stream: z.string(),
  text: z.string(),
});

/** A committed change. */
export type EventView = Wire<typeof eventView>;
/** A line of an attempt's log. */
export type LogView = Wire<typeof logView>;

export const eventRoutes = {
  page: route({
    method: 'GET',
    path: '/events',
    scope: 'read',
    summary: 'Read events, as a page or as a stream; a stream without a cursor starts now',
    query: z.strictObject({
      ...followingEvents,
      run_id: id.optional(),
      types: z.string().max(2_000).optional().describe('names with commas between'),
    }),
    response: pageOf(eventView),
    streams: true,
  }),
};
