/** Events over HTTP, in pages or as they happen. */
import { ROUTES } from '#client';
import type { ServeRoutes } from '../context.ts';
import { resumeFrom, streamEvents } from '../stream-events.ts';

export const serveEvents: ServeRoutes = (serve, context) => {
  serve(
    ROUTES.events.page,
    ({ api, query: { after, limit, run_id, types } }) =>
      api.events.page({ cursor: after, limit, run_id, types: types?.split(',') }),
    (call) =>
      streamEvents(call, context, {
        run_id: call.query.run_id,
        types: call.query.types?.split(','),
        after: resumeFrom(call, call.query.after),
      }),
  );
};
