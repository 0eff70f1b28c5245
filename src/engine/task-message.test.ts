/** The body of a message: what is written is read, and what is not ours is told apart. */
import { describe, expect, it } from 'vitest';
import { readTaskMessage, writeTaskMessage } from './task-message.ts';

const message = {
  task_run_id: '01a1df20-5a73-7cea-8159-8fdc1ffc150b',
  run_id: '01a1df20-5a73-7cea-8159-8fdb08532790',
  attempt: 2,
};

describe('a message', () => {
  // SPEC S10.1
  it('is read as it was written, and carries the trace of its run', () => {
    const trace = {
      traceparent: '00-01a1df205a737cea81598fdb08532790-81598fdc1ffc150b-01',
      tracestate: 'a=b',
    };
    const body = writeTaskMessage(message, trace);
    expect(readTaskMessage(body)).toEqual(message);
    expect(JSON.parse(body)).toEqual({ schema_version: 1, ...message, ...trace });
  });

  // SPEC S10.1
  it('of a later version is known as such, whatever else it holds', () => {
    expect(readTaskMessage('{"schema_version":2,"what":"ever"}')).toBe('unknown');
  });

  // SPEC S10.1
  it.each(['', 'null', '[]', '{}', '7', '{"schema_version":1}', '{"schema_version":1,"task_run_id":1}', '{'])(
    '%j is no message',
    (body) => expect(readTaskMessage(body)).toBeNull(),
  );

  // SPEC S10.1
  it('needs a whole number as its attempt', () => {
    expect(readTaskMessage(JSON.stringify({ schema_version: 1, ...message, attempt: 1.5 }))).toBeNull();
  });
});
