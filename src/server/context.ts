/** What the parts of the server share, and what a handler of a route gets to work with. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { AnswerOf, Route, Scope } from '#client';
import type { RelayApi } from '../app/api.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { TraceContext } from '../base/trace.ts';
import type { Engine } from '../engine/engine.ts';
import type { EventTail } from './event-tail.ts';
import type { Metrics } from './metrics.ts';

/** Who calls, and what they may do. */
export interface Caller {
  readonly name: string;
  readonly scopes: readonly Scope[];
}

/** Dependencies of the routes. */
export interface ServerContext {
  readonly engine: Engine;
  /** The API in the name of a caller. */
  readonly apiFor: (by: string) => RelayApi;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tail: EventTail;
  /** Masks secrets in what workers say. */
  readonly redact: (text: string) => string;
  /** Ends with the server: everything that waits must let go. */
  readonly stopping: AbortSignal;
}

/** Bytes on their way, and how many they will be. */
export interface SentContent {
  readonly bytes: number;
  readonly pieces: AsyncIterable<Uint8Array>;
}

/** One request, checked. */
interface Call<Called extends Route> {
  readonly params: z.output<Called['params']>;
  readonly query: z.output<Called['query']>;
  readonly body: z.output<Called['body']>;
  /** The body of a route that takes bytes, to be read once. */
  readonly content: SentContent;
  readonly caller: Caller;
  readonly api: RelayApi;
  /** The folder of a caller in this process; others have none in common with the server. */
  readonly workdir: string | undefined;
  /** The trace that the caller is in. */
  readonly trace: TraceContext | undefined;
  /** Aborted when the caller has gone, or the server stops. */
  readonly gone: () => AbortSignal;
}

/** One request for a stream, with the connection to stream to. */
export interface StreamCall<Called extends Route> extends Call<Called> {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** Answers a route. */
export type Answer<Called extends Route> = (call: Call<Called>) => Promise<AnswerOf<Called>>;
/** Answers a route with a stream of server-sent events; it takes over the reply. */
export type AnswerStream<Called extends Route> = (call: StreamCall<Called>) => Promise<void>;

/** Adds a route. */
export type Serve = <Called extends Route>(
  route: Called,
  answer: Answer<Called>,
  stream?: AnswerStream<Called>,
) => void;

/** The routes of one resource. */
export type ServeRoutes = (serve: Serve, context: ServerContext) => void;
