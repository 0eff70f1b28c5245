/** Messages for a broker over HTTP. */
import { ROUTES } from '#client';
import type { ServeRoutes } from '../context.ts';

export const serveOutbox: ServeRoutes = (serve) => {
  const routes = ROUTES.outbox;
  serve(routes.list, ({ api, query }) => api.outbox.list(query));
  serve(routes.stats, ({ api }) => api.outbox.stats());
  serve(routes.deadLetters, ({ api, query }) => api.outbox.deadLetters(query));
  serve(routes.replay, ({ api, body }) => api.outbox.replay(body));
  serve(routes.purge, ({ api, body }) => api.outbox.purge(body));
};
