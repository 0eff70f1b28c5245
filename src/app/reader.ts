/** Reads for views: rows in one consistent look, outputs loaded together, lists in pages. */
import { RelayError } from '../base/errors.ts';
import { didYouMean } from '../base/suggest.ts';
import type { Engine } from '../engine/engine.ts';
import type { RunRow, TaskRow, WorkflowRow } from '../stores/rows.ts';
import type { Tx } from '../stores/store.ts';
import type { GraphView, Page, Paging, RelayApi, RunView, TaskFilter, TaskView } from './api.ts';
import * as views from './views.ts';

/** Items of a page when the caller does not say, and at most. */
const PAGE_DEFAULT = 100;
export const PAGE_MAX = 1_000;
/** Outputs up to this size stand in the view itself (SPEC S13.1). */
const INLINE_BYTES_MAX = 16 * 1024;

/** Answers questions about runs, tasks and events. */
export class Reader {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  get #store(): Engine['context']['store'] {
    return this.#engine.context.store;
  }

  /** Workflows are few; the cursor is the place in the list. */
  async workflows(filter: Paging = {}): ReturnType<RelayApi['workflows']['list']> {
    const { limit, after } = paging(filter);
    const rows = await this.#store.read((tx) => tx.workflows.list());
    const isMore = rows.length > after + limit;
    return {
      items: rows.slice(after, after + limit).map(views.workflowView),
      next_cursor: isMore ? String(after + limit) : null,
    };
  }

  async workflow(name: string, version?: number): Promise<WorkflowRow> {
    return this.#store.read(async (tx) => {
      const row =
        version === undefined ? await tx.workflows.latest(name) : await tx.workflows.get(name, version);
      if (row !== null) return row;
      const known = (await tx.workflows.list()).map((workflow) => workflow.name);
      const which = version === undefined ? name : `${name} version ${version}`;
      throw new RelayError('NOT_FOUND', `there is no workflow ${which}`, { hint: didYouMean(name, known) });
    });
  }

  async run(id: string): Promise<RunView> {
    return this.#store.read(async (tx) => {
      const run = await findRun(tx, id);
      const tasks = await tx.tasks.ofRun(run.key, { after: 0, limit: PAGE_MAX + 1 });
      const shown = tasks.slice(0, PAGE_MAX);
      const next = tasks.length > PAGE_MAX ? String(shown.at(-1)?.key) : null;
      return views.runView(run, await this.#taskViews(tx, shown, run.id), next);
    });
  }

  runRow(id: string): Promise<RunRow> {
    return this.#store.read((tx) => findRun(tx, id));
  }

  async taskRow(tx: Tx, id: string): Promise<TaskRow> {
    const task = await tx.tasks.byId(id);
    if (task === null) throw new RelayError('NOT_FOUND', `there is no task run ${id}`);
    return task;
  }

  async runs(
    filter: Paging & {
      status?: string | undefined;
      workflow?: string | undefined;
      label?: string | undefined;
    },
  ): Promise<Page<ReturnType<typeof views.runSummary>>> {
    const { limit, after } = paging(filter);
    const label = filter.label ?? '';
    const at = label.includes('=') ? label.indexOf('=') : label.length;
    const rows = await this.#store.read((tx) =>
      tx.runs.list({
        limit: limit + 1,
        ...(after === 0 ? {} : { before: after }),
        ...(filter.status === undefined ? {} : { status: filter.status }),
        ...(filter.workflow === undefined ? {} : { workflow_name: filter.workflow }),
        ...(filter.label === undefined ? {} : { label: [label.slice(0, at), label.slice(at + 1)] as const }),
      }),
    );
    return page(rows, limit, (run) => run.key, views.runSummary);
  }

  async tasksOf(run_id: string, filter: TaskFilter): Promise<Page<TaskView>> {
    const { limit, after } = paging(filter);
    return this.#store.read(async (tx) => {
      const run = await findRun(tx, run_id);
      const rows =
        filter.task_id === undefined
          ? await tx.tasks.ofRun(run.key, { after, limit: limit + 1 })
          : await this.#ofTask(tx, run, { ...filter, after, limit: limit + 1 });
      return this.#taskPage(tx, rows, limit);
    });
  }

  /** A task, and behind it its items when it is a map: they were made in the order of their keys. */
  async #ofTask(
    tx: Tx,
    run: RunRow,
    { task_id = '', map_index, after, limit }: TaskFilter & { after: number; limit: number },
  ): Promise<TaskRow[]> {
    const [node] = await tx.tasks.byTaskIds(run.key, [task_id]);
    if (node === undefined) return [];
    if (map_index !== undefined) {
      const rows = await tx.tasks.items(node, { from: map_index, limit: 1 });
      return rows.filter((row) => row.map_index === map_index && row.key > after);
    }
    const [last] = after <= node.key ? [] : await tx.tasks.byKeys([after]);
    const items = await tx.tasks.items(node, { from: (last?.map_index ?? -1) + 1, limit });
    return [...(node.key > after ? [node] : []), ...items].slice(0, limit);
  }

  async task(id: string): Promise<TaskView> {
    return this.#store.read(async (tx) => {
      const task = await this.taskRow(tx, id);
      const run = await requireRun(tx, task.run_key);
      const [view] = await this.#taskViews(tx, [task], run.id);
      return view as TaskView;
    });
  }

  async logs(id: string, paged: Paging): ReturnType<RelayApi['tasks']['logs']> {
    const { limit, after } = paging(paged);
    const rows = await this.#store.read(async (tx) =>
      tx.logs.page((await this.taskRow(tx, id)).key, { after, limit: limit + 1 }),
    );
    return page(
      rows,
      limit,
      (row) => row.key,
      ({ key, attempt, at, stream, text }) => ({
        cursor: String(key),
        attempt,
        at: views.iso(at),
        stream,
        text,
      }),
    );
  }

  /** The logs of all tasks of a run. */
  async logsOf(run_id: string, paged: Paging): ReturnType<RelayApi['runs']['logs']> {
    const { limit, after } = paging(paged);
    const rows = await this.#store.read(async (tx) =>
      tx.logs.pageOfRun((await findRun(tx, run_id)).key, { after, limit: limit + 1 }),
    );
    return page(
      rows,
      limit,
      (row) => row.key,
      ({ key, at, ...rest }) => ({ ...rest, cursor: String(key), at: views.iso(at) }),
    );
  }

  async context(run_id: string): ReturnType<RelayApi['runs']['context']> {
    const rows = await this.#store.read(async (tx) => tx.contexts.ofRun((await findRun(tx, run_id)).key));
    return { items: rows.map(views.contextView), next_cursor: null };
  }

  /** The tasks of a run by name. */
  async taskIds(run_id: string): Promise<ReadonlySet<string>> {
    return new Set((await this.#nodes(run_id)).map((task) => task.task_id));
  }

  /** Items are no nodes of the graph: the map they belong to is. */
  async graph(run_id: string): Promise<GraphView> {
    const tasks = await this.#nodes(run_id);
    const idOf = new Map(tasks.map(({ key, id }) => [key, id]));
    const edges = await this.#store.read((tx) => tx.tasks.parentsOf([...idOf.keys()]));
    return {
      nodes: tasks.map(({ id, task_id, map_index, status }) => ({
        task_run_id: id,
        task_id,
        map_index,
        status,
      })),
      edges: edges.map(({ parent, child }) => ({
        from: idOf.get(parent) ?? '',
        to: idOf.get(child) ?? '',
      })),
    };
  }

  async #nodes(run_id: string): Promise<TaskRow[]> {
    return this.#store.read(async (tx) => {
      const run = await findRun(tx, run_id);
      const tasks: TaskRow[] = [];
      for (let after = 0; ; after = tasks.at(-1)?.key ?? 0) {
        const rows = await tx.tasks.nodesOf(run.key, { after, limit: PAGE_MAX });
        tasks.push(...rows);
        if (rows.length < PAGE_MAX) return tasks;
      }
    });
  }

  async approvals(
    filter: Paging & { run_id?: string | undefined },
  ): ReturnType<RelayApi['approvals']['list']> {
    const { limit, after } = paging(filter);
    return this.#store.read(async (tx) => {
      const run_key = filter.run_id === undefined ? undefined : (await findRun(tx, filter.run_id)).key;
      const rows = await tx.tasks.asking({
        after,
        limit: limit + 1,
        ...(run_key === undefined ? {} : { run_key }),
      });
      const runs = new Map(
        (await tx.runs.byKeys([...new Set(rows.map((row) => row.run_key))])).map((run) => [run.key, run]),
      );
      return page(
        rows,
        limit,
        (task) => task.key,
        (task) => {
          const run = runs.get(task.run_key);
          return {
            ...views.questionView(task),
            run_id: run?.id ?? '',
            task_run_id: task.id,
            task_id: task.task_id,
            map_index: task.map_index,
            workflow_name: run?.workflow_name ?? null,
          };
        },
      );
    });
  }

  async dead(filter: Paging & { run_id?: string | undefined }): Promise<Page<TaskView>> {
    const { limit, after } = paging(filter);
    return this.#store.read(async (tx) => {
      const run_key = filter.run_id === undefined ? undefined : (await findRun(tx, filter.run_id)).key;
      const rows = await tx.tasks.dead({
        after,
        limit: limit + 1,
        ...(run_key === undefined ? {} : { run_key }),
      });
      return this.#taskPage(tx, rows, limit);
    });
  }

  async events(
    filter: Paging & { run_id?: string | undefined; types?: readonly string[] | undefined },
  ): ReturnType<RelayApi['events']['page']> {
    // Cursor 0 is the beginning, whatever has been pruned. Any other is the store's own.
    const after = filter.cursor === '0' ? undefined : filter.cursor;
    const { limit } = paging({ ...filter, cursor: undefined });
    return this.#store.read(async (tx) => {
      if (after !== undefined && filter.run_id === undefined && (await tx.events.isExpired(after))) {
        throw new RelayError('CURSOR_EXPIRED', `events after ${after} have been pruned`);
      }
      const run_key = filter.run_id === undefined ? undefined : (await findRun(tx, filter.run_id)).key;
      const rows = await tx.events.page({
        limit,
        ...(after === undefined ? {} : { after }),
        ...(run_key === undefined ? {} : { run_key }),
        ...(filter.types === undefined ? {} : { types: filter.types }),
      });
      return { items: rows.map(views.eventView), next_cursor: rows.at(-1)?.cursor ?? after ?? '0' };
    });
  }

  async #taskPage(tx: Tx, rows: readonly TaskRow[], limit: number): Promise<Page<TaskView>> {
    const shown = rows.slice(0, limit);
    const runs = new Map(
      (await tx.runs.byKeys([...new Set(shown.map((row) => row.run_key))])).map((run) => [run.key, run.id]),
    );
    const views = new Map<string, TaskView>();
    for (const [run_key, run_id] of runs) {
      const own = shown.filter((row) => row.run_key === run_key);
      for (const view of await this.#taskViews(tx, own, run_id)) views.set(view.task_run_id, view);
    }
    const items = shown.flatMap((row) => views.get(row.id) ?? []);
    return { items, next_cursor: rows.length > limit ? String(shown.at(-1)?.key) : null };
  }

  /** Outputs are read together; large ones are left where they are. */
  async #taskViews(tx: Tx, tasks: readonly TaskRow[], run_id: string): Promise<TaskView[]> {
    const places = tasks.flatMap(({ key, output_attempt }) =>
      output_attempt === null ? [] : [[key, output_attempt, 0] as const],
    );
    const artifacts = new Map((await tx.artifacts.find(places)).map((row) => [row.task_key, row]));
    const list: TaskView[] = [];
    for (const task of tasks) {
      const artifact = artifacts.get(task.key);
      const isInline = artifact !== undefined && artifact.bytes <= INLINE_BYTES_MAX;
      const value = isInline ? await this.#engine.context.scopes.output(tx, task) : null;
      list.push(
        views.taskView(task, run_id, {
          value,
          ref: artifact === undefined || isInline ? null : views.artifactId(artifact),
        }),
      );
    }
    return list;
  }
}

function paging({ cursor, limit }: Paging): { limit: number; after: number } {
  const after = cursor === undefined ? 0 : Number(cursor);
  if (!Number.isSafeInteger(after) || after < 0)
    throw new RelayError('USAGE', `\`${cursor}\` is not a cursor`);
  return { after, limit: Math.min(Math.max(1, limit ?? PAGE_DEFAULT), PAGE_MAX) };
}

function page<Row, Item>(
  rows: readonly Row[],
  limit: number,
  keyOf: (row: Row) => number,
  toItem: (row: Row) => Item,
): Page<Item> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    items: shown.map(toItem),
    next_cursor: rows.length > limit && last !== undefined ? String(keyOf(last)) : null,
  };
}

/** A run by its id. */
async function findRun(tx: Tx, id: string): Promise<RunRow> {
  const run = await tx.runs.byId(id);
  if (run === null) throw new RelayError('NOT_FOUND', `there is no run ${id}`);
  return run;
}

/** The run of a row. */
export async function requireRun(tx: Tx, key: number): Promise<RunRow> {
  const [run] = await tx.runs.byKeys([key]);
  if (run === undefined) throw new RelayError('NOT_FOUND', 'the run is gone');
  return run;
}
