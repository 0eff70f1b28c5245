/** Public exports of `@relay/client`: the wire contract and the client that speaks it. */

export { clientOver, createClient, type RelayClient } from './client.ts';
export type { LimitView, NewTokenView, StatsView, TokenView } from './contract/admin.ts';
export { type ErrorShape, errorShape, PAGE_MAX, type Page } from './contract/fields.ts';
export type { DeadMessageView, OutboxMessageView, OutboxStatsView } from './contract/outbox.ts';
export { type Immutable, type Route, SCOPES, type Scope, type Wire } from './contract/route.ts';
export { allRoutes, ROUTES } from './contract/routes.ts';
export type { ApprovalView, ContextView, GraphView, RunSummary, RunView } from './contract/runs.ts';
export type { EventView, LogView } from './contract/streams.ts';
export type { ArtifactView, AttemptView, QuestionView, TaskView } from './contract/tasks.ts';
export {
  CLAIM_MAX,
  CLAIM_WAIT_S_MAX,
  type LeaseView,
  type WireSettlement,
  type WorkerView,
} from './contract/workers.ts';
export type { ValidationView, WorkflowView } from './contract/workflows.ts';
export {
  type AnswerOf,
  bytesOf,
  CallError,
  type CallParts,
  type CallProblem,
  type Carrier,
  type Content,
  Http,
  type HttpOptions,
} from './http.ts';
export { follow, messagesOf, type StreamMessage } from './sse.ts';
