/** From the config of an `http` task to a request; what can never be sent is refused here. */
import { childTrace, type TraceContext } from '../../base/trace.ts';
import { AttemptFailure } from '../../domain/attempt-failure.ts';
import { TerminalError } from '../handler.ts';
import type { HttpConfig } from '../http.ts';

/** The request that the config describes, in a span of its own. */
export function buildRequest(
  config: HttpConfig,
  { signal, trace }: { readonly signal: AbortSignal; readonly trace: TraceContext },
): Request {
  const url = buildUrl(config);
  const body = config.json === undefined ? config.body : JSON.stringify(config.json);
  const method = config.method ?? (body === undefined ? 'GET' : 'POST');
  try {
    const headers = buildHeaders(config, url);
    // A task that says which trace it belongs to is believed.
    if (!headers.has('traceparent'))
      for (const [name, value] of Object.entries(childTrace(trace))) headers.set(name, value);
    url.username = '';
    url.password = '';
    return new Request(url, { method, headers, signal, ...(body === undefined ? {} : { body }) });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new TerminalError(`the request cannot be sent: ${reason}`, { cause: error });
  }
}

function buildUrl({ url: text, query }: HttpConfig): URL {
  if (!URL.canParse(text)) throw badUrl(`\`${text}\` is not an absolute URL`);
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw badUrl(`\`${url.protocol}\` is not supported; a URL begins with http: or https:`);
  }
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const item of Array.isArray(value) ? value : [value]) url.searchParams.append(name, String(item));
  }
  return url;
}

function badUrl(message: string): AttemptFailure {
  return new AttemptFailure({ kind: 'bad_url' }, message);
}

/** The config's headers; a name and password in the URL become the header that `fetch` wants for them. */
function buildHeaders({ headers: given, json }: HttpConfig, url: URL): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given ?? {})) headers.set(name, String(value));
  if (json !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json');
  if (url.username !== '' && !headers.has('authorization')) {
    const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    headers.set('authorization', `Basic ${Buffer.from(pair).toString('base64')}`);
  }
  return headers;
}
