/** The API of a server as an object, typed by the wire contract; what carries its calls is somebody else's matter. */
import type { z } from 'zod';
import { Changes } from './changes.ts';
import { adminRoutes, tokenRoutes } from './contract/admin.ts';
import { outboxRoutes } from './contract/outbox.ts';
import type { Route } from './contract/route.ts';
import { approvalRoutes, deadLetterRoutes, runRoutes } from './contract/runs.ts';
import { eventRoutes } from './contract/streams.ts';
import { taskRoutes } from './contract/tasks.ts';
import { workerRoutes } from './contract/workers.ts';
import { workflowRoutes } from './contract/workflows.ts';
import { type Carrier, Http, type HttpOptions } from './http.ts';

type BodyOf<Called extends Route> = z.input<Called['body']>;
type QueryOf<Called extends Route> = z.input<Called['query']>;
/** A request as a caller may write it: nobody changes what is sent. */
type Loose<T> = {
  readonly [Key in keyof T]: T[Key] extends readonly (infer Item)[] | undefined
    ? readonly Item[] | Extract<T[Key], undefined>
    : T[Key];
};

/** Makes a client of one server. `close` ends what it has open. */
export function createClient(options: HttpOptions) {
  const http = new Http(options);
  const changes = new Changes(http);
  const changed = (signal: AbortSignal): Promise<void> => changes.after(signal);
  return { ...clientOver(http, { changed }), http, close: () => changes.close() };
}

/** The API over anything that carries calls; `changed` resolves when something has been committed, or when aborted. */
export function clientOver(
  http: Carrier,
  { changed }: { readonly changed: (signal: AbortSignal) => Promise<void> },
) {
  return {
    workflows: workflowsOf(http),
    runs: runsOf(http),
    tasks: tasksOf(http),
    approvals: {
      list: (filter: QueryOf<typeof approvalRoutes.list> = {}) =>
        http.call(approvalRoutes.list, { query: filter }),
    },
    deadLetters: {
      list: (filter: QueryOf<typeof deadLetterRoutes.list> = {}) =>
        http.call(deadLetterRoutes.list, { query: filter }),
      replay: (request: Loose<BodyOf<typeof deadLetterRoutes.replay>>) =>
        http.call(deadLetterRoutes.replay, { body: writable(request) }),
      purge: (request: Loose<BodyOf<typeof deadLetterRoutes.purge>>) =>
        http.call(deadLetterRoutes.purge, { body: writable(request) }),
    },
    events: {
      page: ({ cursor, types, ...rest }: EventFilter = {}) =>
        http.call(eventRoutes.page, { query: { ...rest, after: cursor, types: types?.join(',') } }),
      /** Resolves when something has been committed since the call, or when aborted. */
      changed,
    },
    workers: {
      list: () => http.call(workerRoutes.list),
      drain: (id: string) => http.call(workerRoutes.drain, { params: { id } }),
    },
    tokens: {
      list: () => http.call(tokenRoutes.list),
      create: (request: Loose<BodyOf<typeof tokenRoutes.create>>) =>
        http.call(tokenRoutes.create, { body: writable(request) }),
      revoke: (id: string) => http.call(tokenRoutes.revoke, { params: { id } }),
    },
    limits: { list: () => http.call(adminRoutes.limits) },
    outbox: {
      list: (query: Paging = {}) => http.call(outboxRoutes.list, { query }),
      stats: () => http.call(outboxRoutes.stats),
      deadLetters: (query: Paging = {}) => http.call(outboxRoutes.deadLetters, { query }),
      replay: (request: Loose<BodyOf<typeof outboxRoutes.replay>>) =>
        http.call(outboxRoutes.replay, { body: writable(request) }),
      purge: (request: Loose<BodyOf<typeof outboxRoutes.purge>>) =>
        http.call(outboxRoutes.purge, { body: writable(request) }),
    },
    stats: { get: () => http.call(adminRoutes.stats) },
  };
}

/** A client of one server. */
export type RelayClient = ReturnType<typeof createClient>;

interface Paging {
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}
interface EventFilter extends Paging {
  readonly run_id?: string | undefined;
  readonly types?: readonly string[] | undefined;
}
/** A definition may be any value; the server says what is wrong with it. */
type StartRequest = Omit<Loose<BodyOf<typeof runRoutes.start>>, 'definition'> & {
  readonly definition?: unknown;
  readonly workdir?: string | undefined;
};
interface Written {
  readonly definition?: unknown;
  readonly source?: string | undefined;
}
type Keyed = { readonly idempotency_key?: string | undefined };

function workflowsOf(http: Carrier) {
  return {
    list: (query: Paging = {}) => http.call(workflowRoutes.list, { query }),
    get: (name: string, version?: number) =>
      version === undefined
        ? http.call(workflowRoutes.get, { params: { name } })
        : http.call(workflowRoutes.version, { params: { name, version } }),
    create: (body: Written) =>
      http.call(workflowRoutes.create, { body: body as BodyOf<typeof workflowRoutes.create> }),
    validate: (body: Written) =>
      http.call(workflowRoutes.validate, { body: body as BodyOf<typeof workflowRoutes.validate> }),
  };
}

function runsOf(http: Carrier) {
  const act =
    (route: typeof runRoutes.cancel) =>
    (id: string, { idempotency_key }: Keyed = {}) =>
      http.call(route, { params: { id }, body: { idempotency_key } });
  return {
    start: ({ workdir, ...body }: StartRequest) =>
      http.call(runRoutes.start, { body: body as BodyOf<typeof runRoutes.start>, workdir }),
    get: (
      id: string,
      {
        wait_ms,
        signal,
      }: { readonly wait_ms?: number | undefined; readonly signal?: AbortSignal | undefined } = {},
    ) =>
      http.call(runRoutes.get, {
        params: { id },
        signal,
        ...(wait_ms === undefined ? {} : { query: { wait: `${Math.round(wait_ms)}ms` }, waitMs: wait_ms }),
      }),
    list: (
      query: Omit<QueryOf<typeof runRoutes.list>, 'status'> & { readonly status?: string | undefined } = {},
    ) => http.call(runRoutes.list, { query: query as QueryOf<typeof runRoutes.list> }),
    tasks: (id: string, query: QueryOf<typeof runRoutes.tasks> = {}) =>
      http.call(runRoutes.tasks, { params: { id }, query }),
    enqueue: (id: string, body: BodyOf<typeof runRoutes.enqueue>) =>
      http.call(runRoutes.enqueue, { params: { id }, body }),
    graph: (id: string) => http.call(runRoutes.graph, { params: { id } }),
    logs: (id: string, { cursor, limit }: Paging = {}) =>
      http.call(runRoutes.logs, { params: { id }, query: { after: cursor, limit } }),
    context: (id: string) => http.call(runRoutes.context, { params: { id } }),
    appendContext: (id: string, body: BodyOf<typeof runRoutes.appendContext>) =>
      http.call(runRoutes.appendContext, { params: { id }, body }),
    cancel: act(runRoutes.cancel),
    pause: act(runRoutes.pause),
    resume: act(runRoutes.resume),
    close: act(runRoutes.close),
    retry: (id: string, body: BodyOf<typeof runRoutes.retry> = {}) =>
      http.call(runRoutes.retry, { params: { id }, body }),
    rerun: (id: string, task_id: string, { idempotency_key }: Keyed = {}) =>
      http.call(runRoutes.rerun, { params: { id }, body: { task_id, idempotency_key } }),
    clone: (id: string, inputs: Readonly<Record<string, unknown>>, { idempotency_key }: Keyed = {}) =>
      http.call(runRoutes.clone, { params: { id }, body: { inputs, idempotency_key } }),
    prune: (
      body: Omit<BodyOf<typeof runRoutes.prune>, 'statuses'> & { readonly statuses: readonly string[] },
    ) => http.call(runRoutes.prune, { body: body as BodyOf<typeof runRoutes.prune> }),
  };
}

function tasksOf(http: Carrier) {
  const of = (task_run_id: string) => ({ params: { task_run_id } });
  return {
    get: (id: string) => http.call(taskRoutes.get, of(id)),
    attempts: (id: string) => http.call(taskRoutes.attempts, of(id)),
    artifacts: (id: string) => http.call(taskRoutes.artifacts, of(id)),
    artifact: (artifact_id: string) => http.call(taskRoutes.artifact, { params: { artifact_id } }),
    logs: (id: string, { cursor, limit }: Paging = {}) =>
      http.call(taskRoutes.logs, { ...of(id), query: { after: cursor, limit } }),
    input: async (id: string): Promise<unknown> => (await http.call(taskRoutes.input, of(id))).input,
    approve: (id: string, body: BodyOf<typeof taskRoutes.approve>) =>
      http.call(taskRoutes.approve, { ...of(id), body }),
    reject: (id: string, body: BodyOf<typeof taskRoutes.reject>) =>
      http.call(taskRoutes.reject, { ...of(id), body }),
    answer: (id: string, body: BodyOf<typeof taskRoutes.answer>) =>
      http.call(taskRoutes.answer, { ...of(id), body }),
    resume: (id: string, body: BodyOf<typeof taskRoutes.resume> = {}) =>
      http.call(taskRoutes.resume, { ...of(id), body }),
    cancel: (id: string, body: BodyOf<typeof taskRoutes.cancel> = {}) =>
      http.call(taskRoutes.cancel, { ...of(id), body }),
    replay: (id: string, body: BodyOf<typeof taskRoutes.replay>) =>
      http.call(taskRoutes.replay, { ...of(id), body }),
  };
}

/** The same request; only its type says that its lists may be changed. */
function writable<T>(request: Loose<T>): T {
  return request as T;
}
