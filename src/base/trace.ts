/**
 * W3C trace context (SPEC S12.5): which trace a run belongs to, carried from whoever started it to what its tasks call. Only
 * carried: spans are recorded by those who have a tracer.
 */
import { randomBytes } from 'node:crypto';

/** A place in a trace, as the headers `traceparent` and `tracestate` spell it. */
export interface TraceContext {
  /** `00-<trace id>-<span id>-<flags>` */
  readonly traceparent: string;
  /** What tracers on the way have added. */
  readonly tracestate?: string;
}

const PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const STATE_CHARS_MAX = 512;
const SPAN_BYTES = 8;
/** Whoever records spans should record these. */
const SAMPLED = '01';

/** A trace context as it was received; undefined when it is none. A state that is too long or not plain text is dropped. */
export function parseTrace(
  traceparent: string | undefined,
  tracestate?: string | undefined,
): TraceContext | undefined {
  if (traceparent === undefined || traceparent.length > 200) return undefined;
  const [, version = '', trace = '', span = '', flags = '', rest] = PARENT.exec(traceparent.trim()) ?? [];
  if (version === '' || version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (/^0+$/.test(trace) || /^0+$/.test(span)) return undefined;
  const isKept = tracestate !== undefined && /^[\x20-\x7e]+$/.test(tracestate);
  const state = isKept && tracestate.length <= STATE_CHARS_MAX ? { tracestate: tracestate.trim() } : {};
  // A later version may say more; this is the part that is ours to pass on.
  return { traceparent: `00-${trace}-${span}-${flags}`, ...state };
}

/** The trace of a run that was started without one: its id is the run's id, so that either is found from the other. */
export function traceOfRun(run_id: string): TraceContext {
  const hex = run_id.replaceAll('-', '').toLowerCase();
  return { traceparent: `00-${hex}-${hex.slice(-2 * SPAN_BYTES)}-${SAMPLED}` };
}

/** A fresh span of the same trace, for one attempt or one call. */
export function childTrace({ traceparent, ...rest }: TraceContext): TraceContext {
  const [version = '', trace = '', , flags = ''] = traceparent.split('-');
  return { ...rest, traceparent: `${version}-${trace}-${randomBytes(SPAN_BYTES).toString('hex')}-${flags}` };
}

/** The trace that a context is a place in. */
export function traceIdOf({ traceparent }: TraceContext): string {
  return traceparent.split('-')[1] ?? '';
}
