/** Runs an `http` task: one request, one bounded answer, failures by what really happened (SPEC S9.3, S5.2). */
import { parseDuration } from '../../base/duration.ts';
import { AttemptFailure } from '../../domain/attempt-failure.ts';
import { isExpectedStatus } from '../../domain/failure.ts';
import { networkFailure } from '../../domain/network-error.ts';
import { parseRetryAfter } from '../../domain/retry.ts';
import type { HandlerContext } from '../handler.ts';
import type { HttpConfig } from '../http.ts';
import { buildRequest } from './build-request.ts';
import { readBody } from './read-body.ts';

const REQUEST_TIMEOUT_MS = 60_000;
const SHOWN_BODY_CHARS = 300;

/** Sends the request and gives `{ status, headers, body }`. */
export async function runHttp(context: HandlerContext<HttpConfig>): Promise<unknown> {
  const { config, signal, trace } = context;
  const timeoutMs = parseDuration(config.request_timeout ?? '') ?? REQUEST_TIMEOUT_MS;
  const timeout = AbortSignal.timeout(timeoutMs);
  const request = buildRequest(config, { signal: AbortSignal.any([signal, timeout]), trace });
  const { response, text } = await exchange(request).catch((error: unknown) => {
    signal.throwIfAborted();
    if (timeout.aborted) {
      const message = `${describe(request)} took longer than ${timeoutMs} ms (request_timeout)`;
      throw new AttemptFailure({ kind: 'timeout' }, message);
    }
    throw networkFailure(describe(request), error);
  });
  if (!isExpectedStatus(response.status, config.expect))
    throw statusFailure(context, request, response, text);
  return {
    status: response.status,
    headers: headersOf(response),
    body: parseBody(text, response, config.parse ?? 'auto'),
  };
}

async function exchange(request: Request): Promise<{ response: Response; text: string }> {
  const response = await fetch(request);
  return { response, text: await readBody(response) };
}

/** The request as messages show it; the query is left out, as it is long and may hold keys. */
function describe(request: Request): string {
  const { origin, pathname } = new URL(request.url);
  return `${request.method} ${origin}${pathname}`;
}

function statusFailure(
  { config, clock }: HandlerContext<HttpConfig>,
  request: Request,
  response: Response,
  text: string,
): AttemptFailure {
  const { status, statusText } = response;
  const asked = response.headers.get('retry-after');
  const retryAfterMs = asked === null ? null : parseRetryAfter(asked, clock.now());
  const answer = text === '' ? '(no body)' : text.slice(0, SHOWN_BODY_CHARS);
  const message = `${describe(request)} answered ${status}${statusText === '' ? '' : ` ${statusText}`}: ${answer}`;
  return new AttemptFailure(
    { kind: 'http', status, ...(config.expect === undefined ? {} : { expect: config.expect }) },
    message,
    { status, ...(retryAfterMs === null ? {} : { retryAfterMs }) },
  );
}

function headersOf(response: Response): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = Object.fromEntries(response.headers);
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 1) headers['set-cookie'] = cookies;
  return headers;
}

function parseBody(text: string, response: Response, parse: 'auto' | 'json' | 'text'): unknown {
  const isCalledJson = /[/+]json\b/i.test(response.headers.get('content-type') ?? '');
  if (parse === 'text' || (parse === 'auto' && !isCalledJson)) return text;
  if (text === '' && (response.status === 204 || response.status === 304)) return null;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (parse === 'auto') return text;
    const reason = error instanceof Error ? error.message : String(error);
    const message = `the answer is not JSON: ${reason}; it begins with ${JSON.stringify(text.slice(0, 200))}`;
    throw new AttemptFailure({ kind: 'output', problem: 'not_json' }, message, { cause: error });
  }
}
