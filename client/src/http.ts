/** One call over HTTP: a route and its parts in, the typed answer or an error out. Works in Node and in browsers. */
import type { z } from 'zod';
import type { ErrorShape } from './contract/fields.ts';
import type { Route, Wire } from './contract/route.ts';

/** What went wrong with a call, as the server tells it, or as this side sees it when the server did not. */
export interface CallProblem {
  /** A code of the error table; `SERVER_UNAVAILABLE` when there was no answer. */
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  readonly details?: unknown;
  /** 0 when there was no answer. */
  readonly status: number;
  readonly cause?: unknown;
}

/** The error of a call, unless the owner of the client makes another. */
export class CallError extends Error {
  override readonly name = 'CallError';
  readonly problem: CallProblem;

  constructor(problem: CallProblem) {
    super(problem.message, { cause: problem.cause });
    this.problem = problem;
  }
}

/** Where the server is, and how to talk to it. */
export interface HttpOptions {
  /** For example `http://127.0.0.1:7788`. */
  readonly url: string;
  readonly token?: string | undefined;
  readonly fetch?: typeof fetch;
  /** Makes the error of a failed call. */
  readonly toError?: (problem: CallProblem) => Error;
  readonly timeoutMs?: number;
  /** Sent with every call, for example `traceparent`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The parts of a call. */
export interface CallParts<Called extends Route> {
  readonly params?: z.input<Called['params']>;
  readonly query?: z.input<Called['query']>;
  readonly body?: z.input<Called['body']>;
  readonly bytes?: Uint8Array;
  readonly signal?: AbortSignal | undefined;
  /** Time beyond the usual that the server was asked to take. */
  readonly waitMs?: number;
  /** Where `shell` works; only a server in this process heeds it, others have folders of their own. */
  readonly workdir?: string | undefined;
}

/** Content with what it is; it may be larger than memory. */
export interface Content {
  readonly content_type: string;
  readonly size: number;
  /** Another content has another. */
  readonly etag: string;
  /** The content piece by piece; to be read once, and to its end or left. */
  readonly read: () => Promise<AsyncIterable<Uint8Array>>;
}

/** All of a content, for what is small or has to be in memory anyway. */
export async function bytesOf(content: Content): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of await content.read()) pieces.push(piece);
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** What a call gives. */
export type AnswerOf<Called extends Route> = Called['response'] extends z.ZodType
  ? Wire<Called['response']>
  : Content;

/** Carries calls to a server: over HTTP, or straight to one in this process. */
export interface Carrier {
  call<Called extends Route>(route: Called, parts?: CallParts<Called>): Promise<AnswerOf<Called>>;
}

const TIMEOUT_MS = 30_000;
const PREFIX = '/api/v1';

/** Calls routes of one server. */
export class Http implements Carrier {
  readonly #options: HttpOptions;
  readonly #fetch: typeof fetch;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#fetch = options.fetch ?? ((...args) => fetch(...args));
  }

  get url(): string {
    return this.#options.url;
  }

  async call<Called extends Route>(route: Called, parts: CallParts<Called> = {}): Promise<AnswerOf<Called>> {
    const late = new AbortController();
    const timer = setTimeout(
      () => late.abort(new DOMException('no answer in time', 'TimeoutError')),
      (this.#options.timeoutMs ?? TIMEOUT_MS) + (parts.waitMs ?? 0),
    );
    const signal = parts.signal === undefined ? late.signal : AbortSignal.any([late.signal, parts.signal]);
    try {
      const response = await this.#send(route, parts, { signal, accept: 'application/json' });
      // Content takes as long as its reader; its time is over with its head.
      if (route.response === 'bytes') return this.#content(response) as AnswerOf<Called>;
      return (await response.json().catch((cause: unknown) => {
        throw this.#error(this.#unreachable('the answer broke off', cause));
      })) as AnswerOf<Called>;
    } finally {
      clearTimeout(timer);
    }
  }

  #content({ headers, body }: Response): Content {
    const failed = (cause: unknown): Error => this.#error(this.#unreachable('the content broke off', cause));
    return {
      content_type: headers.get('content-type') ?? 'application/octet-stream',
      size: Number(headers.get('content-length') ?? 0),
      etag: headers.get('etag') ?? '',
      read: async () => piecesOf(body, failed),
    };
  }

  /** Opens a stream of server-sent events; the body is read by the caller. */
  async open<Called extends Route>(
    route: Called,
    parts: CallParts<Called> & { readonly signal: AbortSignal; readonly lastEventId?: string | undefined },
  ): Promise<ReadableStream<Uint8Array>> {
    const { signal, lastEventId } = parts;
    const response = await this.#send(route, parts, { signal, accept: 'text/event-stream', lastEventId });
    if (response.body === null) throw this.#error(this.#unreachable('the answer has no body', null));
    return response.body;
  }

  async #send<Called extends Route>(
    route: Called,
    { params, query, body, bytes }: CallParts<Called>,
    how: { signal: AbortSignal; accept: string; lastEventId?: string | undefined },
  ): Promise<Response> {
    const url = new URL(PREFIX + fillPath(route.path, params ?? {}), this.#options.url);
    for (const [name, value] of Object.entries(query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const content = route.takesBytes ? bytes : route.method === 'POST' ? JSON.stringify(body ?? {}) : null;
    const headers: Record<string, string> = { ...this.#options.headers, accept: how.accept };
    if (this.#options.token !== undefined) headers.authorization = `Bearer ${this.#options.token}`;
    if (how.lastEventId !== undefined) headers['last-event-id'] = how.lastEventId;
    if (content !== null && content !== undefined)
      headers['content-type'] = route.takesBytes ? 'application/octet-stream' : 'application/json';
    const send = (): Promise<Response> =>
      this.#fetch(url, {
        method: route.method,
        headers,
        signal: how.signal,
        ...(content === null || content === undefined
          ? {}
          : { body: content as NonNullable<RequestInit['body']> }),
      });
    let response: Response;
    try {
      // A connection that the server closed while it was idle is found out only by using it; looking twice harms nobody.
      response = await (route.method === 'GET' ? send().catch(again(send, how.signal)) : send());
    } catch (cause) {
      throw this.#error(this.#unreachable(reasonOf(cause), cause));
    }
    if (response.ok) return response;
    throw this.#error(await problemOf(response));
  }

  #unreachable(reason: string, cause: unknown): CallProblem {
    return {
      code: 'SERVER_UNAVAILABLE',
      message: `cannot reach ${this.#options.url}: ${reason}`,
      hint: 'Check the URL and that `relay serve` runs there.',
      status: 0,
      cause,
    };
  }

  #error(problem: CallProblem): Error {
    return this.#options.toError?.(problem) ?? new CallError(problem);
  }
}

/** A body piece by piece; browsers do not all iterate over streams. Leaving it half-way ends the transfer. */
async function* piecesOf(
  body: ReadableStream<Uint8Array> | null,
  failed: (cause: unknown) => Error,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((cause: unknown) => {
        throw failed(cause);
      });
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function again(send: () => Promise<Response>, signal: AbortSignal) {
  return (error: unknown): Promise<Response> => {
    if (signal.aborted || reasonOf(error) === 'ECONNREFUSED') throw error;
    return send();
  };
}

function fillPath(path: string, params: Readonly<Record<string, unknown>>): string {
  return path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(params[name])));
}

/** The error as the server says it; what is not of its shape came from something in between. */
async function problemOf(response: Response): Promise<CallProblem> {
  const { status } = response;
  const body = (await response.json().catch(() => null)) as Partial<ErrorShape> | null;
  if (body?.error !== undefined) return { ...body.error, status };
  const code = status >= 500 ? 'SERVER_UNAVAILABLE' : 'USAGE';
  const message = `the server answered ${status} without saying why`;
  return { code, message, hint: 'Check that the URL is that of a Relay server.', status };
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const inner = cause.cause as { code?: string; message?: string } | undefined;
  return inner?.code ?? inner?.message ?? cause.message;
}
