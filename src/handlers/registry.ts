/** The built-in handlers. Adding one is a file and a line here. What a handler needs to run is loaded by its first attempt. */
import type { HandlerCatalog, HandlerSpec } from '../definition/handler-spec.ts';
import { approval } from './approval.ts';
import type { Handler } from './handler.ts';
import { http } from './http.ts';
import { llm } from './llm.ts';
import { script } from './script.ts';
import { shell } from './shell.ts';
import { transform } from './transform.ts';
import { wait } from './wait.ts';

const RUN_BY_WORKERS: readonly Handler[] = [llm, http, shell, script, transform];
const RUN_BY_ENGINE: readonly HandlerSpec[] = [wait, approval];

/** Handlers that a worker runs, by name. */
export const WORKER_HANDLERS: ReadonlyMap<string, Handler> = byName(RUN_BY_WORKERS);

/** Every built-in handler, by name: what a definition may use. */
export const BUILT_IN_HANDLERS: HandlerCatalog = byName([...RUN_BY_WORKERS, ...RUN_BY_ENGINE]);

function byName<Item extends HandlerSpec>(handlers: readonly Item[]): ReadonlyMap<string, Item> {
  return new Map(handlers.map((handler) => [handler.name, handler]));
}
