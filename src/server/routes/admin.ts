/** Numbers, lists for operators, and tokens over HTTP. */
import { ROUTES } from '#client';
import type { ServeRoutes } from '../context.ts';

export const serveAdmin: ServeRoutes = (serve) => {
  serve(ROUTES.admin.stats, ({ api }) => api.stats.get());
  serve(ROUTES.admin.limits, ({ api }) => api.limits.list());
};

export const serveTokens: ServeRoutes = (serve) => {
  const routes = ROUTES.tokens;
  serve(routes.list, ({ api }) => api.tokens.list());
  serve(routes.create, ({ api, body }) => api.tokens.create(body));
  serve(routes.revoke, ({ api, params }) => api.tokens.revoke(params.id));
};
