/** Every route of the API, by resource. Adding one is an entry in its resource's file. */
import { adminRoutes, tokenRoutes } from './admin.ts';
import { outboxRoutes } from './outbox.ts';
import type { Route } from './route.ts';
import { approvalRoutes, deadLetterRoutes, runRoutes } from './runs.ts';
import { eventRoutes } from './streams.ts';
import { taskRoutes } from './tasks.ts';
import { leaseRoutes, workerRoutes } from './workers.ts';
import { workflowRoutes } from './workflows.ts';

export const ROUTES = Object.freeze({
  workflows: workflowRoutes,
  runs: runRoutes,
  tasks: taskRoutes,
  approvals: approvalRoutes,
  dead_letters: deadLetterRoutes,
  events: eventRoutes,
  workers: workerRoutes,
  leases: leaseRoutes,
  outbox: outboxRoutes,
  admin: adminRoutes,
  tokens: tokenRoutes,
});

/** All routes with their names: `runs.start`. */
export function allRoutes(): readonly { readonly name: string; readonly route: Route }[] {
  return Object.entries(ROUTES).flatMap(([resource, routes]) =>
    Object.entries(routes as Readonly<Record<string, Route>>).map(([verb, route]) => ({
      name: `${resource}.${verb}`,
      route,
    })),
  );
}
