/** Puts a route of the contract on Fastify: who may call it, what it takes, how its answer goes out. */

import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Content, Route } from '#client';
import { RelayError } from '../base/errors.ts';
import type { Auth } from './auth.ts';
import type { AnswerStream, Caller, SentContent, Serve, ServerContext, StreamCall } from './context.ts';
import { traceOf } from './trace-of.ts';
import { requestChecks } from './validation.ts';

const API_PREFIX = '/api/v1';

/** Who a request comes from, once that is known. */
const callers = new WeakMap<FastifyRequest, Caller>();

/** What serves routes on an instance. */
export function routeServer(app: FastifyInstance, context: ServerContext, auth: Auth): Serve {
  return (route, answer, stream) => {
    const checks = requestChecks(route);
    app.route({
      method: route.method,
      url: API_PREFIX + route.path,
      bodyLimit: route.bodyBytesMax,
      // Before the body is read: a stranger's is not worth the memory.
      onRequest: async (request) => {
        callers.set(request, await auth.admit(request, route.scope));
        requireMediaType(request, route);
      },
      handler: async (request, reply) => {
        checks.params(request.params);
        checks.query(request.query);
        if (route.method === 'POST') checks.body(request.body);
        const call = callOf(request, reply, { context, route }) as StreamCall<typeof route>;
        if (stream !== undefined && wantsStream(request)) return openStream(call, stream, context);
        try {
          return await send(await answer(call), route, { request, reply });
        } catch (error) {
          // What is left of a body would stand in the way of the next request.
          if (route.takesBytes) request.raw.resume();
          throw error;
        }
      },
    });
  };
}

async function send(
  answer: unknown,
  route: Route,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
): Promise<FastifyReply> {
  if (route.response !== 'bytes')
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(answer));
  const { content_type, size, etag, read } = answer as Content;
  reply.header('etag', etag);
  if (request.headers['if-none-match'] === etag) return reply.code(304).send();
  // What tasks have made is never shown by a browser as if it were a page of ours.
  reply
    .header('content-disposition', 'attachment')
    .header('content-length', size)
    .type(safeType(content_type));
  // Whoever only asks about it does not make the store fetch it.
  return reply.send(request.method === 'HEAD' ? Readable.from([]) : toStream(await read()));
}

function toStream(pieces: AsyncIterable<Uint8Array>): Readable {
  return pieces instanceof Readable ? pieces : Readable.from(pieces);
}

/** The body of a route that takes bytes. Its length has to be said, so that a store knows it before the first piece. */
function contentOf({ headers, body, raw }: FastifyRequest, { takesBytes, bodyBytesMax }: Route): SentContent {
  if (!takesBytes) return { bytes: 0, pieces: Readable.from([]) };
  const bytes = Number(headers['content-length'] ?? Number.NaN);
  if (!Number.isSafeInteger(bytes))
    throw new RelayError('USAGE', 'say how long the content is', {
      hint: 'send the header `content-length`',
    });
  if (bytes > bodyBytesMax)
    throw new RelayError(
      'PAYLOAD_TOO_LARGE',
      `content of ${bytes} bytes is over the limit of ${bodyBytesMax}`,
    );
  // A failure is answered over the same connection, so leaving the body half-way must not close it.
  const stream = body instanceof Readable ? body : raw;
  return { bytes, pieces: stream.iterator({ destroyOnReturn: false }) };
}

function safeType(type: string): string {
  return /^[\w.+-]+\/[\w.+-]+(; ?[\w-]+=[\w.+-]+)*$/.test(type) ? type : 'application/octet-stream';
}

/** A page of another site cannot send these types without asking first, which it is not allowed to. */
function requireMediaType({ headers, method }: FastifyRequest, route: Route): void {
  if (method !== 'POST' && method !== 'PUT') return;
  const wanted = route.takesBytes ? 'application/octet-stream' : 'application/json';
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (type !== wanted)
    throw new RelayError('UNSUPPORTED_MEDIA_TYPE', `the body must be ${wanted}`, {
      hint: `send the header \`content-type: ${wanted}\``,
    });
}

function callOf(
  request: FastifyRequest,
  reply: FastifyReply,
  { context, route }: { readonly context: ServerContext; readonly route: Route },
): StreamCall<Route> {
  const caller = callers.get(request) ?? { name: 'nobody', scopes: [] };
  let gone: AbortSignal | null = null;
  return {
    params: request.params as StreamCall<Route>['params'],
    query: request.query as StreamCall<Route>['query'],
    body: (route.takesBytes ? {} : (request.body ?? {})) as StreamCall<Route>['body'],
    content: contentOf(request, route),
    caller,
    api: context.apiFor(caller.name),
    workdir: undefined,
    trace: traceOf(request),
    request,
    reply,
    gone: () => {
      gone ??= goneSignal(reply, context.stopping);
      return gone;
    },
  };
}

/** Aborted when the connection closes or the server stops. */
function goneSignal({ raw }: FastifyReply, stopping: AbortSignal): AbortSignal {
  const gone = new AbortController();
  if (raw.destroyed || stopping.aborted) gone.abort();
  const leave = (): void => {
    stopping.removeEventListener('abort', leave);
    gone.abort();
  };
  raw.once('close', leave);
  stopping.addEventListener('abort', leave, { once: true });
  return gone.signal;
}

function wantsStream({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes('text/event-stream') === true;
}

async function openStream<Called extends Route>(
  call: StreamCall<Called>,
  stream: AnswerStream<Called>,
  { metrics }: ServerContext,
): Promise<void> {
  const gone = call.gone();
  // Whoever has gone already would never be told to let go of what a stream holds.
  if (gone.aborted) throw new RelayError('SERVER_UNAVAILABLE', 'the server is stopping');
  metrics.streams += 1;
  gone.addEventListener(
    'abort',
    () => {
      metrics.streams -= 1;
    },
    { once: true },
  );
  await stream(call);
}
