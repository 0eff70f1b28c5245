/** What a template sees (SPEC S2.1): committed data of the run, loaded only as far as the template names it. */
import type { TaskFailure } from '../domain/failure.ts';
import type { BlobStore } from '../stores/blob-store.ts';
import type { RunRow, TaskRow } from '../stores/rows.ts';
import type { Tx } from '../stores/store.ts';
import type { Reference, Scope } from '../template/template.ts';
import { referencedTasks } from './compiled-value.ts';
import { itemScope, MapLists } from './map-lists.ts';
import { ERRORS_ORDINAL } from './map-row.ts';
import { readJson } from './payload.ts';

/** Where values come from that are not in the store. */
export interface Surroundings {
  readonly blobs: BlobStore;
  readonly secret: (name: string) => string | undefined;
  readonly env: (name: string) => string | undefined;
}

/** A template's wish: which references of which task are to be resolved. */
export interface ScopeRequest {
  readonly task: TaskRow;
  readonly run: RunRow;
  readonly references: readonly Reference[];
  /** Secrets are shown as `***`. */
  readonly isMasked?: boolean;
}

const OUTPUTS_MAX = 256;
const OUTPUT_BYTES_MAX = 1024 * 1024;

/** Builds scopes. Outputs that were read lately are kept: artifacts never change. */
export class Scopes {
  readonly #surroundings: Surroundings;
  readonly #outputs = new Map<string, unknown>();
  readonly #lists: MapLists;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
    this.#lists = new MapLists(surroundings.blobs);
  }

  /** One scope per request; all rows and artifacts are read together. */
  async build(tx: Tx, requests: readonly ScopeRequest[]): Promise<Scope[]> {
    const needy = requests.filter(({ references }) => references.some(({ root }) => root === 'tasks'));
    // What an item may read is what its map was made to wait for.
    const edges =
      needy.length === 0 ? [] : await tx.tasks.parentsOf([...new Set(needy.map(({ task }) => nodeOf(task)))]);
    const parents = new Map(
      (edges.length === 0 ? [] : await tx.tasks.byKeys([...new Set(edges.map((edge) => edge.parent))])).map(
        (row) => [row.key, row],
      ),
    );
    const parentsOf = groupByChild(edges);
    const wanted = requests.map(({ task, references }) => {
      const ids = new Set(referencedTasks(references));
      const rows = (parentsOf.get(nodeOf(task)) ?? []).flatMap((parent) => parents.get(parent) ?? []);
      return rows.filter((row) => ids.has(row.task_id));
    });
    const outputs = await this.#load(tx, wanted.flat());
    const errors = await this.#loadErrors(tx, wanted.flat(), requests);
    const lists = await this.#lists.load(tx, requests);
    return requests.map((request, index) => ({
      ...this.#scope(request, taskScope(wanted[index] ?? [], outputs, errors)),
      ...itemScope(request.task, lists),
    }));
  }

  /** The scope of a run's outputs: any of its tasks, no task of its own. */
  async ofRun(
    tx: Tx,
    run: RunRow,
    references: readonly Reference[],
  ): Promise<{ scope: Scope; tasks: readonly TaskRow[] }> {
    const ids = referencedTasks(references);
    const tasks = ids.length === 0 ? [] : await tx.tasks.byTaskIds(run.key, ids);
    const outputs = await this.#load(tx, tasks);
    const errors = await this.#loadErrors(tx, tasks, [{ references }]);
    const common = this.#common(run, references, () => undefined);
    return { scope: { ...common, tasks: taskScope(tasks, outputs, errors) }, tasks };
  }

  /** The output of a task, for showing. */
  async output(tx: Tx, task: TaskRow): Promise<unknown> {
    const outputs = await this.#load(tx, [task]);
    return outputs.get(outputName(task) ?? '') ?? null;
  }

  /** Outputs by task key and attempt, read or remembered. */
  async #load(tx: Tx, tasks: readonly TaskRow[]): Promise<ReadonlyMap<string, unknown>> {
    const outputs = new Map<string, unknown>();
    const missing: [number, number, number][] = [];
    for (const task of tasks) {
      const name = outputName(task);
      if (name === null || outputs.has(name)) continue;
      outputs.set(name, this.#outputs.get(name));
      if (!this.#outputs.has(name)) missing.push([task.key, task.output_attempt ?? 0, 0]);
    }
    for (const artifact of await tx.artifacts.find(missing)) {
      const name = `${artifact.task_key}.${artifact.attempt}`;
      const value = await readJson(artifact, this.#surroundings.blobs);
      outputs.set(name, value);
      if (artifact.bytes <= OUTPUT_BYTES_MAX) this.#outputs.set(name, value);
    }
    for (const oldest of this.#outputs.keys()) {
      if (this.#outputs.size <= OUTPUTS_MAX) break;
      this.#outputs.delete(oldest);
    }
    return outputs;
  }

  /** What `tasks.<id>.errors` gives, by task key; read only where a template names it. */
  async #loadErrors(
    tx: Tx,
    tasks: readonly TaskRow[],
    requests: readonly Pick<ScopeRequest, 'references'>[],
  ): Promise<ReadonlyMap<number, unknown>> {
    const names = requests.flatMap(({ references }) =>
      references.filter(({ root, path }) => root === 'tasks' && path[1] === 'errors'),
    );
    const ids = new Set(referencedTasks(names));
    const maps = tasks.filter((task) => task.map_size !== null && ids.has(task.task_id));
    const places = [...new Set(maps)].map(({ key, attempt }) => [key, attempt, ERRORS_ORDINAL] as const);
    const errors = new Map<number, unknown>();
    for (const artifact of await tx.artifacts.find(places))
      errors.set(artifact.task_key, await readJson(artifact, this.#surroundings.blobs));
    return errors;
  }

  #scope({ task, run, references, isMasked }: ScopeRequest, tasks: Record<string, unknown>): Scope {
    return {
      ...this.#common(run, references, isMasked === true ? () => '***' : this.#surroundings.secret),
      tasks,
      task: { id: task.task_id, task_run_id: task.id, attempt: task.attempt },
    };
  }

  #common(
    run: RunRow,
    references: readonly Reference[],
    secret: (name: string) => string | undefined,
  ): Record<string, unknown> {
    const named = (root: string, find: (name: string) => string | undefined): Record<string, string> => {
      const names = references
        .filter((reference) => reference.root === root)
        .map(({ path }) => String(path[0]));
      return Object.fromEntries(
        names.flatMap((name) => (find(name) === undefined ? [] : [[name, find(name) ?? '']])),
      );
    };
    return {
      inputs: JSON.parse(run.inputs) as unknown,
      run: {
        id: run.id,
        workflow_name: run.workflow_name,
        workflow_version: run.workflow_version,
        labels: JSON.parse(run.labels) as unknown,
        created_at: new Date(run.created_at).toISOString(),
      },
      env: named('env', this.#surroundings.env),
      secrets: named('secrets', secret),
    };
  }
}

/** The task of the workflow that a row stands for: an item stands for its map. */
function nodeOf(task: TaskRow): number {
  return task.map_key ?? task.key;
}

/** Names a task's output; a rerun has another one. */
function outputName(task: TaskRow): string | null {
  return task.output_attempt === null ? null : `${task.key}.${task.output_attempt}`;
}

function groupByChild(edges: readonly { parent: number; child: number }[]): ReadonlyMap<number, number[]> {
  const groups = new Map<number, number[]>();
  for (const { parent, child } of edges) {
    const group = groups.get(child);
    if (group === undefined) groups.set(child, [parent]);
    else group.push(parent);
  }
  return groups;
}

/** `tasks` as templates see it; a task that did not succeed has no output. */
function taskScope(
  tasks: readonly TaskRow[],
  outputs: ReadonlyMap<string, unknown>,
  errors: ReadonlyMap<number, unknown>,
): Record<string, unknown> {
  return Object.fromEntries(
    tasks.map((task) => {
      const { task_id, status, error } = task;
      const output = status === 'SUCCESS' ? (outputs.get(outputName(task) ?? '') ?? null) : null;
      const failure = error === null || status === 'SUCCESS' ? null : (JSON.parse(error) as TaskFailure);
      return [task_id, { status, output, error: failure, errors: errors.get(task.key) ?? null }];
    }),
  );
}
