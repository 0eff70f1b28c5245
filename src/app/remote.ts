/** A server elsewhere: its API, and a worker that dials in to it. */
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type CallProblem, createClient, type HttpOptions } from '#client';
import { systemClock } from '../base/clock.ts';
import { ERROR_CODES, type ErrorCode } from '../base/error-codes.ts';
import { RelayError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { isLoopback } from '../base/loopback.ts';
import { createRedactor } from '../base/redact.ts';
import type { TraceContext } from '../base/trace.ts';
import type { Handler } from '../handlers/handler.ts';
import { HttpSource, type WorkerCard } from '../worker/http-source.ts';
import { Worker } from '../worker/worker.ts';
import type { RelayApi } from './api.ts';
import { configureHandlers, type HandlerSettings } from './configured-handlers.ts';

/** Where a server is, and the token for it. */
export interface RemoteOptions {
  readonly server: string;
  readonly token?: string | undefined;
  /** Where a server of this machine keeps its token. */
  readonly data: string;
  readonly cwd: string;
  /** The trace that this process is part of. */
  readonly trace?: TraceContext | undefined;
}

/** The API of a server. `close` ends what it has open. */
export interface RemoteRelay {
  readonly api: RelayApi;
  close(): void;
}

/** A worker of a server. */
export interface RemoteWorkerOptions extends RemoteOptions {
  readonly card: Omit<WorkerCard, 'handlers'>;
  readonly handlers: readonly Handler[];
  /** Providers and prices of the config; keys come from `env`. */
  readonly models?: HandlerSettings['models'];
  readonly concurrency: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
  readonly shutdownGraceMs: number;
  /** Leaves when there is nothing to do. */
  readonly isLeavingWhenIdle: boolean;
  /** Ends the waiting for a server that does not answer yet. */
  readonly signal: AbortSignal;
  /** Called once when the server does not answer; it is tried again. */
  readonly onWaiting: (error: RelayError) => void;
}

const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5_000;

/** The API of a server, with the errors of the table. */
export function openRemote(options: RemoteOptions): RemoteRelay {
  const client = createClient(httpOptions(options));
  return { api: client, close: () => client.close() };
}

/** A worker that was registered and is at work. */
export interface DialedWorker {
  readonly worker_id: string;
  /** Resolves when the server has asked the worker to leave, or there is nothing to do and that was wished for. */
  readonly leaving: Promise<'drain' | 'idle'>;
  stop(graceMs?: number): Promise<void>;
}

/** Claims from a server and works until it is stopped. Rejects when the server refuses the worker. */
export async function dialIn(options: RemoteWorkerOptions): Promise<DialedWorker> {
  const { card, concurrency, env, logger, shutdownGraceMs, cwd, isLeavingWhenIdle } = options;
  const { models, handlers: own } = options;
  const { forWorker: handlers, keys } = configureHandlers({ env, models, own });
  let leave: (why: 'drain' | 'idle') => void = () => {};
  const leaving = new Promise<'drain' | 'idle'>((done) => {
    leave = done;
  });
  const { http } = createClient(httpOptions(options));
  const source = new HttpSource({
    http,
    card: { ...card, handlers: [...handlers.keys()] },
    logger,
    onDrain: () => leave('drain'),
    ...(isLeavingWhenIdle ? { waitS: 1 } : {}),
  });
  const worker_id = await registerPatiently(source, options);
  const worker = new Worker({
    source,
    handlers,
    concurrency,
    clock: systemClock,
    logger,
    env,
    workdir: cwd,
    shutdownGraceMs,
    redact: createRedactor(() => keys),
  });
  await worker.start();
  if (isLeavingWhenIdle) void worker.idle().then(() => leave('idle'));
  return {
    worker_id,
    leaving,
    stop: async (graceMs) => {
      await worker.stop(graceMs);
      // What could not be said goodbye to is freed when its leases end.
      await source.close().catch((error: unknown) => logger.warn('worker.not_deregistered', { error }));
    },
  };
}

/** A server that is away is waited for; one that says no is not. */
async function registerPatiently(
  source: HttpSource,
  { signal, onWaiting }: RemoteWorkerOptions,
): Promise<string> {
  for (let delayMs = RETRY_MS_MIN; ; delayMs = Math.min(delayMs * 2, RETRY_MS_MAX)) {
    try {
      return await source.register();
    } catch (error) {
      const mayHelp = error instanceof RelayError && ERROR_CODES[error.code].retryable;
      if (!mayHelp || signal.aborted) throw error;
      if (delayMs === RETRY_MS_MIN) onWaiting(error);
      await delay(delayMs, undefined, { signal }).catch(() => {});
    }
  }
}

function httpOptions({ server, token, data, cwd, trace }: RemoteOptions): HttpOptions {
  const known = token ?? ownToken(server, join(resolve(cwd, data), 'token'));
  return { url: server, token: known, toError, headers: { ...trace } };
}

/** The token of a server on this machine. It is never sent to another one. */
function ownToken(server: string, path: string): string | undefined {
  return isLoopback(new URL(server).hostname) && existsSync(path)
    ? readFileSync(path, 'utf8').trim()
    : undefined;
}

function toError({ code, message, hint, details, cause }: CallProblem): RelayError {
  const known = Object.hasOwn(ERROR_CODES, code) ? (code as ErrorCode) : 'INTERNAL';
  return new RelayError(known, message, { hint, details, cause });
}
