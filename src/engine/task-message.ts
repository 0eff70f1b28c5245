/**
 * The body of a message: which attempt of which task can be claimed, and nothing else (SPEC S10.1). The database decides what it is
 * worth. The trace context is for whoever looks on at the broker; the lease carries it to the worker.
 */
import type { TraceContext } from '../base/trace.ts';

/** What a consumer needs to claim. */
export interface TaskMessage {
  readonly task_run_id: string;
  readonly run_id: string;
  readonly attempt: number;
}

const SCHEMA_VERSION = 1;

/** The text that travels. */
export function writeTaskMessage(
  { task_run_id, run_id, attempt }: TaskMessage,
  { traceparent, tracestate }: TraceContext,
): string {
  const body = { schema_version: SCHEMA_VERSION, task_run_id, run_id, attempt, traceparent, tracestate };
  return JSON.stringify(body);
}

/** Reads a body. `unknown` is one of a later version, which is not for this process; null is no message of Relay at all. */
export function readTaskMessage(body: string): TaskMessage | 'unknown' | null {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { schema_version, task_run_id, run_id, attempt } = value as Record<string, unknown>;
  if (typeof schema_version !== 'number') return null;
  if (schema_version !== SCHEMA_VERSION) return 'unknown';
  if (typeof task_run_id !== 'string' || typeof run_id !== 'string') return null;
  return typeof attempt === 'number' && Number.isSafeInteger(attempt)
    ? { task_run_id, run_id, attempt }
    : null;
}
