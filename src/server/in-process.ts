/**
 * The routes without HTTP, for clients in this process: the same answers behind the same contract, without what only a network
 * needs (sockets, tokens, names of hosts, bounds of bodies). Parts travel as JSON would carry them, so both doors see the same.
 */
import { Readable } from 'node:stream';
import type { AnswerOf, CallParts, Carrier, Route } from '#client';
import { invariant } from '../base/invariant.ts';
import type { TraceContext } from '../base/trace.ts';
import type { Answer, Caller, ServerContext } from './context.ts';
import { checkPart } from './contract-check.ts';
import { EventTail } from './event-tail.ts';
import { Metrics } from './metrics.ts';
import { RESOURCES } from './routes/registry.ts';

/** What the routes work with, and in whose name. */
export interface InProcessOptions
  extends Pick<ServerContext, 'engine' | 'apiFor' | 'clock' | 'logger' | 'redact'> {
  /** Who is written down; the owner of the process may do everything. */
  readonly by: string;
  /** The trace that this process is part of. */
  readonly trace: TraceContext | undefined;
}

/** Calls routes directly. */
export class InProcess implements Carrier {
  readonly #answers = new Map<Route, Answer<Route>>();
  readonly #caller: Caller;
  readonly #options: InProcessOptions;
  readonly #stopping = new AbortController();

  constructor(options: InProcessOptions) {
    this.#options = options;
    const { engine, logger, apiFor, by } = options;
    this.#caller = { name: by, scopes: ['admin'] };
    const context: ServerContext = {
      ...options,
      metrics: new Metrics(),
      tail: new EventTail({ engine, api: apiFor(by), logger }),
      stopping: this.#stopping.signal,
    };
    for (const resource of RESOURCES)
      resource((route, answer) => {
        this.#answers.set(route, answer as unknown as Answer<Route>);
      }, context);
  }

  async call<Called extends Route>(route: Called, parts: CallParts<Called> = {}): Promise<AnswerOf<Called>> {
    const answer = this.#answers.get(route);
    invariant(answer !== undefined, `the route ${route.method} ${route.path} is served`);
    const sent = {
      params: asSent(parts.params),
      query: asSent(parts.query),
      body: asSent(parts.body),
    };
    for (const part of ['params', 'query', 'body'] as const) checkPart(route, part, sent[part]);
    const { by, apiFor } = this.#options;
    const { bytes = new Uint8Array() } = parts;
    return (await answer({
      ...sent,
      content: { bytes: bytes.length, pieces: Readable.from([bytes]) },
      caller: this.#caller,
      api: apiFor(by),
      workdir: parts.workdir,
      trace: this.#options.trace,
      gone: () => parts.signal ?? this.#stopping.signal,
    })) as AnswerOf<Called>;
  }
}

function asSent(part: unknown): Record<string, unknown> {
  return JSON.parse(JSON.stringify(part ?? {})) as Record<string, unknown>;
}
