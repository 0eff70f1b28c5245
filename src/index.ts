/** Public exports of `relay`, by name. */

export type { RelayApi, RunView, TaskView } from './app/api.ts';
export { checkWorkflow } from './app/check-workflow.ts';
export { type OpenOptions, openRelay, type Relay, type RunHandle } from './app/open-relay.ts';
export { ERROR_CODES, type ErrorCode } from './base/error-codes.ts';
export { RelayError } from './base/errors.ts';
export { childTrace, type TraceContext } from './base/trace.ts';
export { type TaskDefinition, task, type WorkflowDefinition, workflow } from './definition/builder.ts';
export type { CheckedWorkflow } from './definition/load.ts';
export type { Problem } from './definition/problem.ts';
export { hashWorkflow, type Task, type Workflow } from './definition/workflow.ts';
export {
  defineHandler,
  type Handler,
  type HandlerContext,
  RetryAfter,
  TerminalError,
} from './handlers/handler.ts';
