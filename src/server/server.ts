/**
 * The HTTP door (SPEC S13.1): routes of the contract over the engine, behind checks that hold for all of them. It decides
 * nothing about runs and tasks. Stopping lets requests finish and makes everything that waits let go.
 */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { RelayError } from '../base/errors.ts';
import type { Service } from '../base/service.ts';
import { Auth, hostCheck } from './auth.ts';
import type { ServerContext } from './context.ts';
import { docsPage } from './docs-page.ts';
import { EventTail } from './event-tail.ts';
import { sendFailure, toFailure } from './failures.ts';
import { readJsonBodies } from './json-body.ts';
import { toListenError } from './listen-error.ts';
import { Metrics } from './metrics.ts';
import { openApi } from './openapi.ts';
import { RESOURCES } from './routes/registry.ts';
import { routeServer } from './serve-route.ts';
import { traceOf } from './trace-of.ts';

/** How a server is set up. */
export interface ServerOptions
  extends Pick<ServerContext, 'engine' | 'apiFor' | 'clock' | 'logger' | 'redact'> {
  readonly version: string;
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** The token that may do everything; null lets everybody in. */
  readonly ownToken: string | null;
  readonly allowedHosts?: readonly string[];
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** Requests of one address within a minute, at most. */
  readonly rateLimit?: number | undefined;
}

const PARAM_CHARS_MAX = 500;
const KEEP_ALIVE_MS = 72_000;
/** How long a request may take to arrive; the largest blob needs 2 MB/s. */
const REQUEST_MS_MAX = 600_000;
const READY_MS_MAX = 2_000;
const WATCHER = 'server';

/** Serves the API. */
export class Server implements Service {
  readonly name = 'server';
  readonly metrics = new Metrics();
  readonly #options: ServerOptions;
  readonly #stopping = new AbortController();
  readonly #tail: EventTail;
  readonly #auth: Auth;
  #app: FastifyInstance | null = null;
  #openRequests = 0;
  #url = '';

  constructor(options: ServerOptions) {
    this.#options = options;
    const { engine, logger, apiFor, clock, ownToken } = options;
    this.#tail = new EventTail({ engine, api: apiFor(WATCHER), logger });
    this.#tail.listen((events) => this.metrics.hear(events));
    const { store, committer } = engine.context;
    this.#auth = new Auth({ store, committer, clock, ownToken });
  }

  /** Where the server listens. */
  get url(): string {
    return this.#url;
  }

  /** The instance, for requests without a socket. */
  get app(): FastifyInstance {
    if (this.#app === null) throw new RelayError('SERVER_UNAVAILABLE', 'the server has not been started');
    return this.#app;
  }

  async start(): Promise<void> {
    const { host, port, tls } = this.#options;
    const app = await this.#build();
    this.#app = app;
    this.metrics.start();
    await this.#tail.start();
    app.server.on('request', (_, answer: ServerResponse) => this.#countRequest(answer));
    try {
      await app.listen({ host, port });
    } catch (error) {
      await this.stop();
      throw toListenError(error, host, port);
    }
    const address = app.server.address();
    const actual = typeof address === 'object' && address !== null ? address.port : port;
    this.#url = `${tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${actual}`;
    this.#options.logger.info('server.started', { url: this.#url });
  }

  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    const closing = this.#app?.close();
    if (this.#openRequests === 0) this.#app?.server.closeAllConnections();
    await closing;
    await this.#tail.stop();
    this.metrics.stop();
    this.#options.logger.info('server.stopped');
  }

  /** Closing waits for requests, not for connections that others hold ready and have not used yet. */
  #countRequest(answer: ServerResponse): void {
    this.#openRequests += 1;
    answer.once('close', () => {
      this.#openRequests -= 1;
      if (this.#openRequests === 0 && this.#stopping.signal.aborted) this.#app?.server.closeAllConnections();
    });
  }

  async #build(): Promise<FastifyInstance> {
    const { tls, logger } = this.#options;
    const app = Fastify({
      logger: false,
      keepAliveTimeout: KEEP_ALIVE_MS,
      requestTimeout: REQUEST_MS_MAX,
      forceCloseConnections: 'idle',
      routerOptions: { maxParamLength: PARAM_CHARS_MAX },
      genReqId: requestIdOf,
      frameworkErrors: (error, request, reply) => void sendFailure(error, request, reply, logger),
      clientErrorHandler: answerBrokenRequest,
      ...(tls === undefined ? {} : { https: { ...tls } as never }),
    }) as unknown as FastifyInstance;
    await this.#protect(app);
    readJsonBodies(app);
    const context: ServerContext = {
      ...this.#options,
      metrics: this.metrics,
      tail: this.#tail,
      stopping: this.#stopping.signal,
    };
    const serve = routeServer(app, context, this.#auth);
    for (const resource of RESOURCES) resource(serve, context);
    this.#servePlain(app);
    return app;
  }

  /** What holds for every request: headers, limits, names, the log. */
  async #protect(app: FastifyInstance): Promise<void> {
    const { logger, rateLimit, allowedHosts = [], host, clock } = this.#options;
    const { default: helmet } = await import('@fastify/helmet');
    const self = ["'self'"];
    await app.register(helmet, {
      contentSecurityPolicy: {
        useDefaults: false,
        directives: {
          defaultSrc: ["'none'"],
          styleSrc: [...self, "'unsafe-inline'"],
          connectSrc: self,
          imgSrc: self,
        },
      },
      hsts: this.#options.tls === undefined ? false : { maxAge: 86_400 },
    });
    if (rateLimit !== undefined) {
      const { default: limiter } = await import('@fastify/rate-limit');
      await app.register(limiter, { max: rateLimit, timeWindow: '1 minute' });
    }
    const checkHost = hostCheck([host, ...allowedHosts]);
    app.addHook('onRequest', async (request, reply) => {
      reply.header('x-request-id', request.id);
      reply.header('cache-control', 'no-store');
      checkHost(request);
    });
    app.addHook('onResponse', async (request, reply) => {
      const route = request.routeOptions.url ?? 'none';
      const ms = reply.elapsedTime;
      this.metrics.observeRequest(`${request.method} ${route}`, reply.statusCode, ms / 1_000);
      // Signs of who ended a token are looked up anew, so that an end counts at once here.
      if (route === '/api/v1/tokens/:id') this.#auth.forget();
      logger.debug('http.request', {
        request_id: request.id,
        method: request.method,
        route,
        status: reply.statusCode,
        ms: Math.round(ms * 10) / 10,
        at_ms: clock.now(),
        ...traceFields(request),
      });
    });
    app.setErrorHandler((error, request, reply) => sendFailure(error, request, reply, logger));
    app.setNotFoundHandler((request, reply) => {
      const failure = new RelayError(
        'NOT_FOUND',
        `there is no route ${request.method} ${request.url.slice(0, 200)}`,
        {
          hint: '/docs lists every route',
        },
      );
      return sendFailure(failure, request, reply, logger);
    });
  }

  /** What is not part of the contract: health, numbers, and the contract itself. */
  #servePlain(app: FastifyInstance): void {
    const { version, apiFor, clock } = this.#options;
    const document = JSON.stringify(openApi({ version }));
    const page = docsPage();
    app.get('/openapi.json', async (_, reply) => reply.type('application/json').send(document));
    app.get('/docs', async (_, reply) => reply.type('text/html; charset=utf-8').send(page));
    app.get('/healthz', async () => ({ status: 'ok', version }));
    app.get('/readyz', async (_, reply) => {
      const isReady = await this.#isReady();
      return reply
        .code(isReady ? 200 : 503)
        .send({ status: isReady ? 'ready' : 'not ready', at: clock.now() });
    });
    app.get('/metrics', async (request, reply) => {
      await this.#auth.admit(request, 'read');
      return reply.type('text/plain; version=0.0.4').send(await this.metrics.text(apiFor(WATCHER)));
    });
  }

  /** Whether the store answers (SPEC S14.7). */
  async #isReady(): Promise<boolean> {
    if (this.#stopping.signal.aborted) return false;
    const { store } = this.#options.engine.context;
    const look = store
      .read((tx) => tx.events.newest())
      .then(
        () => true,
        () => false,
      );
    const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), READY_MS_MAX).unref());
    return Promise.race([look, late]);
  }
}

/** The caller's own id of a request when it is a sane one. */
function requestIdOf({ headers }: { readonly headers: FastifyRequest['headers'] }): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && /^[\w.:-]{1,100}$/.test(given) ? given : randomUUID();
}

/** A line of ours is found from a trace of theirs. */
function traceFields(request: FastifyRequest): { readonly trace_id?: string; readonly parent_id?: string } {
  const [, trace_id, parent_id] = traceOf(request)?.traceparent.split('-') ?? [];
  return trace_id === undefined || parent_id === undefined ? {} : { trace_id, parent_id };
}

/** What is not even HTTP gets the one shape too. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return;
  const isTooLarge = error.code === 'HPE_HEADER_OVERFLOW';
  const failure = toFailure(Object.assign(error, { statusCode: isTooLarge ? 413 : 400 }));
  const body = JSON.stringify(failure.toShape());
  const head = `HTTP/1.1 ${isTooLarge ? '413 Payload Too Large' : '400 Bad Request'}`;
  socket.end(
    `${head}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}
