/** Task runs, what people decide about them, and what failed for good, over HTTP. */
import { ROUTES } from '#client';
import type { ServeRoutes } from '../context.ts';
import { resumeFrom, streamLogs } from '../stream-events.ts';

export const serveTasks: ServeRoutes = (serve, context) => {
  const routes = ROUTES.tasks;
  serve(routes.get, ({ api, params }) => api.tasks.get(params.task_run_id));
  serve(routes.attempts, ({ api, params }) => api.tasks.attempts(params.task_run_id));
  serve(routes.artifacts, ({ api, params }) => api.tasks.artifacts(params.task_run_id));
  serve(routes.artifact, ({ api, params }) => api.tasks.artifact(params.artifact_id));
  serve(routes.input, async ({ api, params }) => ({
    input: (await api.tasks.input(params.task_run_id)) as Record<string, unknown>,
  }));
  serve(
    routes.logs,
    ({ api, params, query: { after, limit } }) =>
      api.tasks.logs(params.task_run_id, { cursor: after, limit }),
    (call) =>
      streamLogs(call, context, {
        after: resumeFrom(call, call.query.after),
        page: (paging) => call.api.tasks.logs(call.params.task_run_id, paging),
        status: async () => (await call.api.tasks.get(call.params.task_run_id)).status,
      }),
  );
  serve(routes.approve, ({ api, params, body }) => api.tasks.approve(params.task_run_id, body));
  serve(routes.reject, ({ api, params, body }) => api.tasks.reject(params.task_run_id, body));
  serve(routes.answer, ({ api, params, body }) => api.tasks.answer(params.task_run_id, body));
  serve(routes.resume, ({ api, params, body }) => api.tasks.resume(params.task_run_id, body));
  serve(routes.cancel, ({ api, params, body }) => api.tasks.cancel(params.task_run_id, body));
  serve(routes.replay, ({ api, params, body }) => api.tasks.replay(params.task_run_id, body));
};

export const serveDeadLetters: ServeRoutes = (serve) => {
  serve(ROUTES.approvals.list, ({ api, query }) => api.approvals.list(query));
  const routes = ROUTES.dead_letters;
  serve(routes.list, ({ api, query }) => api.deadLetters.list(query));
  serve(routes.replay, ({ api, body }) => api.deadLetters.replay(body));
  serve(routes.purge, ({ api, body }) => api.deadLetters.purge(body));
};
