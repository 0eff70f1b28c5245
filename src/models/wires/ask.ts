/**
 * One exchange with a provider over HTTP, streamed (SPEC S5.1, S9.1). Whatever ends it early is told apart here: what the network did,
 * what the provider answered, an answer that is not what it should be. Nothing is sent twice: trying again is the engine's.
 */
import type { IncomingMessage } from 'node:http';
import { childTrace } from '../../base/trace.ts';
import { AttemptFailure } from '../../domain/attempt-failure.ts';
import { networkFailure } from '../../domain/network-error.ts';
import { estimateTokens } from '../estimate.ts';
import type { ModelAnswer, ModelRequest, ModelUsage } from '../model.ts';
import { readEvents } from './events.ts';
import { providerFailure } from './provider-failure.ts';
import { send } from './send.ts';
import type { Connection, Piece, Wire } from './wire.ts';

const SHOWN_CHARS = 200;

/** Who is asked what, and how. */
interface Exchange {
  readonly wire: Wire;
  readonly connection: Connection;
  readonly request: ModelRequest;
}

/** Asks and reads the answer to its end. */
export async function ask(exchange: Exchange): Promise<ModelAnswer> {
  const { wire, connection, request } = exchange;
  const { path, headers: own, body } = wire.request(connection, request);
  const headers = { ...childTrace(request.trace), ...own };
  const url = `${connection.baseUrl}${path}`;
  try {
    const response = await send(url, { headers, body: JSON.stringify(body), signal: request.signal });
    const { statusCode: status = 0 } = response;
    if (status < 200 || status > 299) {
      throw providerFailure(
        connection,
        { status, headers: response.headers, text: await readText(response) },
        request,
      );
    }
    return await readAnswer(exchange, response);
  } catch (error) {
    request.signal.throwIfAborted();
    throw networkFailure(`${connection.name} (${new URL(url).origin})`, error);
  }
}

/** What has been said so far. */
interface Heard {
  text: string;
  usage: Partial<ModelUsage>;
  finish: ModelAnswer['finish'] | null;
}

async function readAnswer(exchange: Exchange, response: IncomingMessage): Promise<ModelAnswer> {
  const { wire, connection, request } = exchange;
  const heard: Heard = { text: '', usage: {}, finish: null };
  let last = '';
  for await (const data of readEvents(response)) {
    // Some servers end in order without saying why they stopped.
    if (data === '[DONE]') return finished(heard, request);
    last = data;
    hear(heard, wire.read(parseData(connection, data)), exchange);
  }
  if (heard.finish !== null) return finished(heard, request);
  if (heard.text === '' && Object.keys(heard.usage).length === 0) throw malformed(connection, last);
  const message = `${connection.name} broke off in the middle of its answer, after ${heard.text.length} characters`;
  throw new AttemptFailure({ kind: 'network', code: 'ECONNRESET' }, message);
}

function hear(heard: Heard, piece: Piece, { connection, request }: Exchange): void {
  if (piece.error !== undefined) {
    const { status, body } = piece.error;
    throw providerFailure(connection, { status, headers: {}, text: JSON.stringify(body) }, request);
  }
  if (piece.text !== undefined && piece.text !== '') {
    heard.text += piece.text;
    request.onToken(piece.text);
  }
  Object.assign(heard.usage, piece.usage);
  // A refusal stays one, whatever the end of the stream says.
  if (piece.finish !== undefined && heard.finish !== 'filter') heard.finish = piece.finish;
}

/** A provider that does not count is counted by the estimate, so that a budget is not evaded. */
function finished({ text, usage, finish }: Heard, { messages, schema }: ModelRequest): ModelAnswer {
  return {
    text,
    usage: {
      tokens_in: estimateTokens(messages, schema),
      tokens_out: estimateTokens([{ role: 'assistant', content: text }]),
      ...usage,
    },
    finish: finish ?? 'other',
  };
}

function parseData(connection: Connection, data: string): unknown {
  try {
    return JSON.parse(data) as unknown;
  } catch (error) {
    throw malformed(connection, data, error);
  }
}

/** The answer is not what this kind of provider sends: a proxy's page, another API, a body that was cut. */
function malformed({ name }: Connection, data: string, cause?: unknown): AttemptFailure {
  const begin = data === '' ? 'it is empty' : `it begins with ${JSON.stringify(data.slice(0, SHOWN_CHARS))}`;
  const message = `${name} gave an answer that cannot be read; ${begin}`;
  return new AttemptFailure({ kind: 'malformed' }, message, {
    hint: 'Check `base_url` of the provider: what answers there may be a proxy, or speak another API.',
    cause,
  });
}

/** The body of an error, as far as it is worth reading. */
async function readText(response: IncomingMessage): Promise<string> {
  const BYTES_MAX = 64 * 1024;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > BYTES_MAX) break;
  }
  return Buffer.concat(chunks).toString('utf8').slice(0, BYTES_MAX);
}
