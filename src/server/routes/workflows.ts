/** Workflows over HTTP. */
import { ROUTES } from '#client';
import type { ServeRoutes } from '../context.ts';

export const serveWorkflows: ServeRoutes = (serve) => {
  const routes = ROUTES.workflows;
  serve(routes.create, ({ api, body }) => api.workflows.create(body));
  serve(routes.validate, ({ api, body }) => api.workflows.validate(body));
  serve(routes.list, ({ api, query }) => api.workflows.list(query));
  serve(routes.get, ({ api, params }) => api.workflows.get(params.name));
  serve(routes.version, ({ api, params }) => api.workflows.get(params.name, params.version));
};
