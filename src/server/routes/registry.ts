/** The resources of the API. Adding one is a file and a line here. */
import type { ServeRoutes } from '../context.ts';
import { serveAdmin, serveTokens } from './admin.ts';
import { serveEvents } from './events.ts';
import { serveOutbox } from './outbox.ts';
import { serveRuns } from './runs.ts';
import { serveDeadLetters, serveTasks } from './tasks.ts';
import { serveLeases, serveWorkers } from './workers.ts';
import { serveWorkflows } from './workflows.ts';

export const RESOURCES: readonly ServeRoutes[] = [
  serveWorkflows,
  serveRuns,
  serveTasks,
  serveDeadLetters,
  serveEvents,
  serveWorkers,
  serveLeases,
  serveOutbox,
  serveAdmin,
  serveTokens,
];
