import { describe, expect, it } from 'vitest';
import { newRunId } from './ids.ts';
import { childTrace, parseTrace, traceIdOf, traceOfRun } from './trace.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = `00-${TRACE}-00f067aa0ba902b7-01`;

// SPEC S12.5
describe('a trace context', () => {
  it('is taken as it comes, with its state', () => {
    expect(parseTrace(PARENT)).toEqual({ traceparent: PARENT });
    expect(parseTrace(PARENT, 'congo=t61rcWkgMzE,rojo=00f067')).toEqual({
      traceparent: PARENT,
      tracestate: 'congo=t61rcWkgMzE,rojo=00f067',
    });
  });

  it('of a later version is passed on as far as it is understood', () => {
    expect(parseTrace(`cc-${TRACE}-00f067aa0ba902b7-01-what-comes-later`)?.traceparent).toBe(PARENT);
  });

  it('that is none is left out, and so is a state that is too long or not text', () => {
    for (const wrong of [
      undefined,
      '',
      'x',
      `ff-${TRACE}-00f067aa0ba902b7-01`,
      `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
      `00-${TRACE}-${'0'.repeat(16)}-01`,
      `00-${TRACE.toUpperCase()}-00f067aa0ba902b7-01`,
      `${PARENT}-more`,
      `${PARENT}\r\nx: y`,
    ])
      expect(parseTrace(wrong, 'a=1')).toBeUndefined();
    expect(parseTrace(PARENT, 'a'.repeat(513))).toEqual({ traceparent: PARENT });
    expect(parseTrace(PARENT, 'a=\u00e9')).toEqual({ traceparent: PARENT });
  });

  it('of a run of its own is found from the id of the run', () => {
    const id = newRunId();
    const own = traceOfRun(id);
    expect(parseTrace(own.traceparent)).toEqual(own);
    expect(traceIdOf(own)).toBe(id.replaceAll('-', ''));
  });

  it('gives every call a span of its own in the same trace', () => {
    const given = { traceparent: PARENT, tracestate: 'a=1' };
    const [one, other] = [childTrace(given), childTrace(given)];
    expect(traceIdOf(one)).toBe(TRACE);
    expect(one.tracestate).toBe('a=1');
    expect(new Set([one.traceparent, other.traceparent, PARENT]).size).toBe(3);
    expect(parseTrace(one.traceparent)).toBeDefined();
  });
});
