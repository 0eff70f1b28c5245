/** Runs of an engine in this process: starting, looking, acting. */
import { RelayError } from '../base/errors.ts';
import { checkWorkflowValue, requireWorkflow } from '../definition/load.ts';
import type { Workflow } from '../definition/workflow.ts';
import { isTerminal } from '../domain/states.ts';
import { readNewTasks } from '../engine/new-tasks.ts';
import type { RunsApi, RunView, StartRunRequest } from './api.ts';
import { withBundles } from './bundle-scripts.ts';
import type { Local } from './local-api.ts';
import { PAGE_MAX } from './reader.ts';

/** The part of the API that is about runs. */
export function runsApi(local: Local): RunsApi {
  const { engine, reader, by } = local;
  const act = async (run_id: string, action: () => Promise<unknown>): Promise<RunView> => {
    await action();
    return reader.run(run_id);
  };
  return {
    start: (request) => start(local, request),
    get: (id, { wait_ms, signal } = {}) =>
      wait_ms === undefined ? reader.run(id) : awaitEnd(local, id, { wait_ms, signal }),
    list: (filter) => reader.runs(filter),
    tasks: (id, page) => reader.tasksOf(id, page),
    enqueue: async (id, { tasks, idempotency_key: key }) => {
      const known = await reader.taskIds(id);
      const added = await readNewTasks(tasks, { known, handlers: engine.context.handlers });
      const rows = await engine.enqueue(id, added, { caller: by, key });
      const views = await Promise.all(rows.map((row) => reader.task(row.id)));
      return { items: views, next_cursor: null };
    },
    graph: (id) => reader.graph(id),
    logs: (id, page) => reader.logsOf(id, page),
    context: (id) => reader.context(id),
    appendContext: async (id, { data, label, parent_id, task_run_id }) => {
      const snapshot_id = await engine.appendContext(id, {
        data,
        by,
        ...(label === undefined ? {} : { label }),
        ...(parent_id === undefined ? {} : { parent_id }),
        ...(task_run_id === undefined ? {} : { task_run_id }),
      });
      const { items } = await reader.context(id);
      const added = items.find((item) => item.id === snapshot_id);
      if (added === undefined) throw new RelayError('NOT_FOUND', `run ${id} was removed`);
      return added;
    },
    cancel: (id, keyed) => act(id, () => engine.cancelRun(id, by, keyed?.idempotency_key)),
    pause: (id, keyed) => act(id, () => engine.pauseRun(id, by, keyed?.idempotency_key)),
    resume: (id, keyed) => act(id, () => engine.resumeRun(id, by, keyed?.idempotency_key)),
    close: (id, keyed) => act(id, () => engine.closeRun(id, by, keyed?.idempotency_key)),
    retry: (id, keyed) =>
      act(id, () => engine.retryRun(id, by, { key: keyed?.idempotency_key, budget: keyed?.budget })),
    rerun: (id, task_id, keyed) => act(id, () => engine.rerunFrom(id, task_id, by, keyed?.idempotency_key)),
    clone: (id, inputs, keyed) => cloneRun(local, id, inputs, keyed),
    prune: async ({ older_than_ms, statuses, dry_run, limit = PAGE_MAX }) => {
      const before = engine.context.clock.now() - older_than_ms;
      const run_ids = await engine.prune({ statuses, before, limit, dryRun: dry_run });
      return { run_ids, dry_run };
    },
  };
}

async function start(local: Local, request: StartRunRequest): Promise<RunView> {
  const { engine, reader, by } = local;
  const { inputs = {}, labels = {}, priority = 0, workdir = null, trace } = request;
  const once = { caller: by, key: request.idempotency_key };
  if (request.open === true) {
    if (request.workflow !== undefined || request.definition !== undefined)
      throw new RelayError('USAGE', 'an open run has no workflow');
    const { auto_close = true } = request;
    const open = await engine.startOpenRun({ inputs, labels, priority, auto_close, trace }, once);
    return reader.run(open.id);
  }
  const workflow = await definitionOf(request, local);
  const run = await engine.startRun({ workflow, inputs, labels, priority, workdir, trace }, once);
  return reader.run(run.id);
}

/** The run when it has ended, or as it is when the time is over. */
async function awaitEnd(
  { engine, reader }: Local,
  id: string,
  { wait_ms, signal }: { readonly wait_ms: number; readonly signal: AbortSignal | undefined },
): Promise<RunView> {
  const timeout = AbortSignal.any([AbortSignal.timeout(wait_ms), ...(signal === undefined ? [] : [signal])]);
  for (;;) {
    const mark = engine.finished.mark();
    const { status } = await reader.runRow(id);
    if (isTerminal(status) || timeout.aborted) return reader.run(id);
    await engine.finished.after(mark, timeout);
  }
}

/** A new run of the same version, with other inputs where given. */
async function cloneRun(
  { engine, reader, by }: Local,
  id: string,
  inputs: Readonly<Record<string, unknown>>,
  { idempotency_key: key, trace }: NonNullable<Parameters<RunsApi['clone']>[2]> = {},
): Promise<RunView> {
  const run = await reader.runRow(id);
  if (run.workflow_name === null)
    throw new RelayError('USAGE', `run ${id} is an open run and cannot be cloned`);
  const row = await reader.workflow(run.workflow_name, run.workflow_version ?? undefined);
  const { priority, workdir } = run;
  const cloned = await engine.startRun(
    {
      workflow: JSON.parse(row.definition) as Workflow,
      inputs: { ...(JSON.parse(run.inputs) as object), ...inputs },
      labels: JSON.parse(run.labels) as Record<string, string>,
      priority,
      workdir,
      cloned_from: run.id,
      trace,
    },
    { caller: by, key },
  );
  return reader.run(cloned.id);
}

/** The workflow to run: a stored version as it is, a definition after it has been checked, with the code of its scripts. */
async function definitionOf(request: StartRunRequest, local: Local): Promise<Workflow> {
  const { engine, reader, definitions } = local;
  if (request.workflow !== undefined)
    return JSON.parse((await reader.workflow(request.workflow)).definition) as Workflow;
  if (request.definition === undefined) throw new RelayError('USAGE', 'name a workflow or give a definition');
  const { handlers } = engine.context;
  const workflow =
    definitions === null
      ? requireWorkflow(await checkWorkflowValue(request.definition, { handlers }))
      : await definitions.check(request.definition);
  return withBundles(workflow, handlers, request.bundles);
}
