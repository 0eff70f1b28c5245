/** The trace that a request comes from, by its W3C headers. */
import type { FastifyRequest } from 'fastify';
import { parseTrace, type TraceContext } from '../base/trace.ts';

/** What the caller says; a header that says nothing sensible is as good as none. */
export function traceOf({ headers }: FastifyRequest): TraceContext | undefined {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== 'string') return undefined;
  return parseTrace(traceparent, Array.isArray(tracestate) ? tracestate.join(',') : tracestate);
}
