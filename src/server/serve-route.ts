/** Puts a route of the contract on Fastify: who may call it, what it takes, how its answer goes out. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Route } from '#client';
import { RelayError } from '../base/errors.ts';
import type { Auth } from './auth.ts';
import type { AnswerStream, Caller, Serve, ServerContext, StreamCall } from './context.ts';
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
        const call = callOf(request, reply, context) as StreamCall<typeof route>;
        if (stream !== undefined && wantsStream(request)) return openStream(call, stream, context);
        return send(await answer(call), route, reply);
      },
    });
  };
}

function send(answer: unknown, route: Route, reply: FastifyReply): FastifyReply {
  if (route.response !== 'bytes')
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(answer));
  const { content_type, bytes } = answer as { content_type: string; bytes: Uint8Array };
  // What tasks have made is never shown by a browser as if it were a page of ours.
  return reply
    .header('content-disposition', 'attachment')
    .type(safeType(content_type))
    .send(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
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

function callOf(request: FastifyRequest, reply: FastifyReply, context: ServerContext): StreamCall<Route> {
  const caller = callers.get(request) ?? { name: 'nobody', scopes: [] };
  let gone: AbortSignal | null = null;
  return {
    params: request.params as StreamCall<Route>['params'],
    query: request.query as StreamCall<Route>['query'],
    body: (request.body ?? {}) as StreamCall<Route>['body'],
    bytes: request.body instanceof Uint8Array ? request.body : new Uint8Array(),
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
