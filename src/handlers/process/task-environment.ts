/** The environment of a child process: the worker's, the task's own, and who is asking. */
import type { HandlerContext } from '../handler.ts';

/** Variables for one attempt's child; the task's own win, the `RELAY_…` ones always tell the truth. */
export function taskEnvironment(
  { env, task, trace }: Pick<HandlerContext<unknown>, 'env' | 'task' | 'trace'>,
  own: Readonly<Record<string, string | number | boolean>> = {},
): Record<string, string | undefined> {
  const merged: Record<string, string | undefined> = { ...env };
  // The names under which programs look for the trace that they are part of.
  merged.TRACEPARENT = trace.traceparent;
  merged.TRACESTATE = trace.tracestate;
  for (const [name, value] of Object.entries(own)) merged[name] = String(value);
  merged.RELAY_RUN_ID = task.run_id;
  merged.RELAY_TASK_RUN_ID = task.task_run_id;
  merged.RELAY_TASK_ID = task.task_id;
  merged.RELAY_ATTEMPT = String(task.attempt);
  return merged;
}
