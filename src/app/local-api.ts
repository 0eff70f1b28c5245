/** The API over an engine in this process. It reads rows and calls the engine; it decides nothing. */
import { RelayError } from '../base/errors.ts';
import { checkWorkflowText, checkWorkflowValue, requireWorkflow } from '../definition/load.ts';
import { phases } from '../domain/graph.ts';
import type { Engine } from '../engine/engine.ts';
import type { RelayApi, WrittenWorkflow } from './api.ts';
import type { DefinitionCache } from './definition-cache.ts';
import { limitsApi, statsApi, tokensApi, workersApi } from './local-admin.ts';
import { outboxApi } from './local-outbox.ts';
import { runsApi } from './local-runs.ts';
import { tasksApi } from './local-tasks.ts';
import { PAGE_MAX, Reader } from './reader.ts';
import * as views from './views.ts';

/** What the parts of the API share. */
export interface Local {
  readonly engine: Engine;
  readonly reader: Reader;
  /** Who is written down for what is decided. */
  readonly by: string;
  /** Checked definitions of callers that send JSON; null checks every time. */
  readonly definitions: DefinitionCache | null;
}

/** The API for one caller. */
export function createLocalApi(
  engine: Engine,
  { by, definitions = null }: { readonly by: string; readonly definitions?: DefinitionCache | null },
): RelayApi {
  const local: Local = { engine, reader: new Reader(engine), by, definitions };
  return {
    workflows: workflowsApi(local),
    runs: runsApi(local),
    tasks: tasksApi(local),
    approvals: { list: (filter) => local.reader.approvals(filter) },
    deadLetters: deadLettersApi(local),
    events: {
      page: (filter) => local.reader.events(filter),
      changed: (signal) => engine.changed.after(engine.changed.mark(), signal),
    },
    workers: workersApi(local),
    tokens: tokensApi(local),
    limits: limitsApi(local),
    outbox: outboxApi(local),
    stats: statsApi(local),
  };
}

function workflowsApi({ engine, reader }: Local): RelayApi['workflows'] {
  const check = ({ definition, source }: WrittenWorkflow) => {
    const { handlers } = engine.context;
    if (source !== undefined) return checkWorkflowText(source, { handlers });
    if (definition !== undefined) return checkWorkflowValue(definition, { handlers });
    throw new RelayError('USAGE', 'give a definition, or the source of a file');
  };
  return {
    list: (page) => reader.workflows(page),
    get: async (name, version) => views.workflowView(await reader.workflow(name, version)),
    create: async (written) => {
      const workflow = requireWorkflow(await check(written));
      const version = await engine.storeWorkflow(workflow);
      return views.workflowView(await reader.workflow(workflow.name, version));
    },
    validate: async (written) => {
      const { workflow, graph, errors, warnings, dropped } = await check(written);
      return {
        valid: workflow !== null,
        errors,
        warnings,
        tasks: graph?.ids.length ?? 0,
        edges: graph?.edgeCount ?? 0,
        phases: graph === null ? [] : phases(graph),
        ...(dropped > 0 ? { dropped } : {}),
      };
    },
  };
}

function deadLettersApi({ engine, reader, by }: Local): RelayApi['deadLetters'] {
  const named = async (task_run_ids: readonly string[] | undefined, run_id: string | undefined) =>
    task_run_ids ?? (await reader.dead({ run_id, limit: PAGE_MAX })).items.map((task) => task.task_run_id);
  return {
    list: (filter) => reader.dead(filter),
    replay: async ({ task_run_ids, run_id, dry_run, reset_attempts = true }) => {
      const listed = await named(task_run_ids, run_id);
      if (!dry_run)
        for (const id of listed) await engine.replayTask(id, { resetAttempts: reset_attempts, by });
      return { task_run_ids: listed, dry_run };
    },
    purge: async ({ task_run_ids, run_id, dry_run }) => {
      const listed = await named(task_run_ids, run_id);
      if (!dry_run) for (const id of listed) await engine.purgeDeadTask(id, by);
      return { task_run_ids: listed, dry_run };
    },
  };
}
