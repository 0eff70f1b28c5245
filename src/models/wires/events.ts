/** Server-sent events of an answer, as the data of each; an answer that is one JSON value is one event. Bounded. */
import type { IncomingMessage } from 'node:http';
import { AttemptFailure } from '../../domain/attempt-failure.ts';

const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

/** Gives the data of every event. Names and ids of events are not needed: the data says what it is. */
export async function* readEvents(response: IncomingMessage): AsyncGenerator<string> {
  const isStream = /^text\/event-stream\b/i.test(response.headers['content-type'] ?? '');
  if (!isStream) {
    let whole = '';
    for await (const text of readText(response)) whole += text;
    yield whole;
    return;
  }
  let rest = '';
  let data: string[] = [];
  for await (const text of readText(response)) {
    const lines = (rest + text).split(/\r?\n/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
      else if (line === '' && data.length > 0) {
        yield data.join('\n');
        data = [];
      }
    }
  }
  // The last event of a server that does not end it with an empty line.
  if (rest.startsWith('data:')) data.push(rest.slice(5).trimStart());
  if (data.length > 0) yield data.join('\n');
}

async function* readText(response: IncomingMessage): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) {
      const message = `the answer is longer than ${ANSWER_BYTES_MAX} bytes`;
      throw new AttemptFailure({ kind: 'output', problem: 'too_long' }, message);
    }
    yield decoder.decode(chunk, { stream: true });
  }
  yield decoder.decode();
}
