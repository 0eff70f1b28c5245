/** Runs over HTTP. */
import { ROUTES } from '#client';
import { parseDuration } from '../../base/duration.ts';
import type { ServeRoutes } from '../context.ts';
import { resumeFrom, streamEvents, streamLogs } from '../stream-events.ts';

/** The longest a look at a run may wait for its end. */
const WAIT_MS_MAX = 60_000;

export const serveRuns: ServeRoutes = (serve, context) => {
  const routes = ROUTES.runs;
  serve(routes.start, ({ api, body, workdir, trace }) => api.runs.start({ ...body, workdir, trace }));
  serve(routes.list, ({ api, query }) => api.runs.list(query));
  serve(routes.get, ({ api, params, query, gone }) => {
    const wait_ms =
      query.wait === undefined ? undefined : Math.min(parseDuration(query.wait) ?? 0, WAIT_MS_MAX);
    return api.runs.get(params.id, wait_ms === undefined ? {} : { wait_ms, signal: gone() });
  });
  serve(routes.tasks, ({ api, params, query }) => api.runs.tasks(params.id, query));
  serve(routes.enqueue, ({ api, params, body }) => api.runs.enqueue(params.id, body));
  serve(
    routes.events,
    ({ api, params, query: { after, limit, types } }) =>
      api.events.page({ run_id: params.id, cursor: after, limit, types: types?.split(',') }),
    (call) =>
      streamEvents(call, context, {
        run_id: call.params.id,
        types: call.query.types?.split(','),
        after: resumeFrom(call, call.query.after) ?? '0',
      }),
  );
  serve(
    routes.logs,
    ({ api, params, query: { after, limit } }) => api.runs.logs(params.id, { cursor: after, limit }),
    (call) =>
      streamLogs(call, context, {
        after: resumeFrom(call, call.query.after),
        page: (paging) => call.api.runs.logs(call.params.id, paging),
        status: async () => (await call.api.runs.get(call.params.id)).status,
      }),
  );
  serve(routes.graph, ({ api, params }) => api.runs.graph(params.id));
  serve(routes.context, ({ api, params }) => api.runs.context(params.id));
  serve(routes.appendContext, ({ api, params, body }) => api.runs.appendContext(params.id, body));
  for (const verb of ['cancel', 'pause', 'resume', 'close', 'retry'] as const) {
    serve(routes[verb], ({ api, params, body }) => api.runs[verb](params.id, body));
  }
  serve(routes.rerun, ({ api, params, body }) => api.runs.rerun(params.id, body.task_id, body));
  serve(routes.clone, ({ api, params, body, trace }) =>
    api.runs.clone(params.id, body.inputs ?? {}, { ...body, trace }),
  );
  serve(routes.prune, ({ api, body }) => api.runs.prune(body));
};
