/** What the API offers, as an interface: a server answers with it, and every client of one has its shape. */
import type {
  ApprovalView,
  ArtifactView,
  AttemptView,
  Content,
  ContextView,
  DeadMessageView,
  EventView,
  GraphView,
  LimitView,
  LogView,
  NewTokenView,
  OutboxMessageView,
  OutboxStatsView,
  Page,
  RunSummary,
  RunView,
  Scope,
  StatsView,
  TaskView,
  TokenView,
  ValidationView,
  WorkerView,
  WorkflowView,
} from '#client';
import type { TraceContext } from '../base/trace.ts';

export type {
  ApprovalView,
  ArtifactView,
  AttemptView,
  ContextView,
  DeadMessageView,
  EventView,
  GraphView,
  LimitView,
  LogView,
  OutboxMessageView,
  OutboxStatsView,
  Page,
  QuestionView,
  RunSummary,
  RunView,
  Scope,
  TaskView,
  TokenView,
  WorkerView,
  WorkflowView,
} from '#client';

/** The trace of whoever calls (SPEC S12.5). */
interface Traced {
  readonly trace?: TraceContext | undefined;
}

/** What a run is started with: a stored workflow by name, a definition, or nothing for an open run. */
export interface StartRunRequest extends Traced {
  readonly workflow?: string | undefined;
  readonly definition?: unknown;
  /** A run without a workflow, to which tasks are added. */
  readonly open?: boolean | undefined;
  readonly auto_close?: boolean | undefined;
  readonly inputs?: Readonly<Record<string, unknown>> | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly priority?: number | undefined;
  readonly idempotency_key?: string | undefined;
  /** Code of the modules that `script` tasks name, by module (SPEC S1.1). */
  readonly bundles?: Readonly<Record<string, string>> | undefined;
  /** Folder in which `shell` works; only a caller in this process may name one. */
  readonly workdir?: string | undefined;
}

/** A workflow as a value, or as the text of a file. */
export interface WrittenWorkflow {
  readonly definition?: unknown;
  readonly source?: string | undefined;
}

/** Where a list goes on, and how much of it is wanted. */
export interface Paging {
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}

/** Repeating a request with the same key gives the first answer (SPEC S4.7). */
interface Keyed {
  readonly idempotency_key?: string | undefined;
}

/** What the model calls of a run may use. */
export interface BudgetRequest {
  readonly tokens?: number | undefined;
  readonly cost_usd?: number | undefined;
}

interface Decided extends Keyed {
  readonly question_id?: string | undefined;
}

/** Which task runs of a run are wanted: all, those of one task, or one item of a map. */
export interface TaskFilter extends Paging {
  readonly task_id?: string | undefined;
  readonly map_index?: number | undefined;
}

type ByRun = Paging & { readonly run_id?: string | undefined };

interface DeadTasks {
  readonly task_run_ids?: readonly string[] | undefined;
  readonly run_id?: string | undefined;
  readonly dry_run: boolean;
}

/** What was done to which dead tasks, or would be. */
interface DeadTasksAnswer {
  readonly task_run_ids: readonly string[];
  readonly dry_run: boolean;
}

/** Runs: starting, looking, acting. */
export interface RunsApi {
  start(request: StartRunRequest): Promise<RunView>;
  /** With `wait_ms` the answer comes when the run has ended, when the time is over, or when aborted. */
  get(
    run_id: string,
    options?: { readonly wait_ms?: number | undefined; readonly signal?: AbortSignal | undefined },
  ): Promise<RunView>;
  list(
    filter: Paging & {
      readonly status?: string | undefined;
      readonly workflow?: string | undefined;
      readonly label?: string | undefined;
    },
  ): Promise<Page<RunSummary>>;
  /** The task runs of a run, or those of one of its tasks. */
  tasks(run_id: string, page: TaskFilter): Promise<Page<TaskView>>;
  enqueue(
    run_id: string,
    request: Keyed & { readonly tasks: Readonly<Record<string, Record<string, unknown>>> },
  ): Promise<Page<TaskView>>;
  graph(run_id: string): Promise<GraphView>;
  logs(
    run_id: string,
    page: Paging,
  ): Promise<Page<LogView & { readonly task_run_id: string; readonly task_id: string }>>;
  context(run_id: string): Promise<Page<ContextView>>;
  appendContext(
    run_id: string,
    snapshot: {
      readonly data: unknown;
      readonly label?: string | undefined;
      readonly parent_id?: string | undefined;
      readonly task_run_id?: string | undefined;
    },
  ): Promise<ContextView>;
  cancel(run_id: string, keyed?: Keyed): Promise<RunView>;
  pause(run_id: string, keyed?: Keyed): Promise<RunView>;
  resume(run_id: string, keyed?: Keyed): Promise<RunView>;
  close(run_id: string, keyed?: Keyed): Promise<RunView>;
  /** With a budget, the run may use that much from now on; what is not named stays as it is. */
  retry(run_id: string, options?: Keyed & { readonly budget?: BudgetRequest | undefined }): Promise<RunView>;
  rerun(run_id: string, task_id: string, keyed?: Keyed): Promise<RunView>;
  clone(run_id: string, inputs: Readonly<Record<string, unknown>>, keyed?: Keyed & Traced): Promise<RunView>;
  prune(request: {
    readonly older_than_ms: number;
    readonly statuses: readonly string[];
    readonly dry_run: boolean;
    readonly limit?: number | undefined;
  }): Promise<{ readonly run_ids: readonly string[]; readonly dry_run: boolean }>;
}

/** Task runs: state, content, and what people decide. */
export interface TasksApi {
  get(task_run_id: string): Promise<TaskView>;
  attempts(task_run_id: string): Promise<Page<AttemptView>>;
  artifacts(task_run_id: string): Promise<Page<ArtifactView>>;
  artifact(artifact_id: string): Promise<Content>;
  logs(task_run_id: string, page: Paging): Promise<Page<LogView>>;
  /** `with` as it was or will be rendered, secrets masked. */
  input(task_run_id: string): Promise<unknown>;
  approve(task_run_id: string, decision: Decided & { readonly answer?: unknown }): Promise<TaskView>;
  reject(
    task_run_id: string,
    decision: Decided & { readonly reason?: string | undefined },
  ): Promise<TaskView>;
  /** Answers what a worker asked; the task goes on with the answer. */
  answer(task_run_id: string, decision: Decided & { readonly answer: unknown }): Promise<TaskView>;
  /** Lets a paused task go on without an answer. */
  resume(task_run_id: string, decision?: Decided): Promise<TaskView>;
  cancel(task_run_id: string, keyed?: Keyed): Promise<TaskView>;
  replay(task_run_id: string, options: Keyed & { readonly reset_attempts: boolean }): Promise<TaskView>;
}

interface DeadMessages {
  readonly ids?: readonly string[] | undefined;
  readonly dry_run: boolean;
}
interface DeadMessagesAnswer {
  readonly ids: readonly string[];
  readonly dry_run: boolean;
}

/** Everything a client can ask for. Errors are RelayErrors with the codes of the table. */
export interface RelayApi {
  readonly workflows: {
    list(page?: Paging): Promise<Page<WorkflowView>>;
    get(name: string, version?: number): Promise<WorkflowView>;
    create(written: WrittenWorkflow): Promise<WorkflowView>;
    validate(written: WrittenWorkflow): Promise<ValidationView>;
  };
  readonly runs: RunsApi;
  readonly tasks: TasksApi;
  readonly approvals: { list(filter: ByRun): Promise<Page<ApprovalView>> };
  readonly deadLetters: {
    list(filter: ByRun): Promise<Page<TaskView>>;
    replay(request: DeadTasks & { readonly reset_attempts?: boolean | undefined }): Promise<DeadTasksAnswer>;
    purge(request: DeadTasks): Promise<DeadTasksAnswer>;
  };
  readonly events: {
    page(filter: ByRun & { readonly types?: readonly string[] | undefined }): Promise<Page<EventView>>;
    /** Resolves when something has been committed since the call, or when aborted. */
    changed(signal: AbortSignal): Promise<void>;
  };
  readonly workers: {
    list(): Promise<Page<WorkerView>>;
    /** Asks a worker to finish and leave. */
    drain(worker_id: string): Promise<WorkerView>;
  };
  readonly tokens: {
    list(): Promise<Page<TokenView>>;
    create(request: { readonly name: string; readonly scopes: readonly Scope[] }): Promise<NewTokenView>;
    revoke(id: string): Promise<TokenView>;
  };
  readonly limits: { list(): Promise<Page<LimitView>> };
  readonly outbox: {
    list(page?: Paging): Promise<Page<OutboxMessageView>>;
    stats(): Promise<OutboxStatsView>;
    deadLetters(page?: Paging): Promise<Page<DeadMessageView>>;
    /** Sends dead messages again; without ids the first 1,000. */
    replay(request: DeadMessages): Promise<DeadMessagesAnswer>;
    purge(request: DeadMessages): Promise<DeadMessagesAnswer>;
  };
  readonly stats: { get(): Promise<StatsView> };
}
