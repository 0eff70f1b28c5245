/** What a provider answered instead of an answer → the failure of the attempt: status, the provider's own code, when to come back. */
import type { IncomingHttpHeaders } from 'node:http';
import { AttemptFailure } from '../../domain/attempt-failure.ts';
import { parseRetryAfter } from '../../domain/retry.ts';
import type { ModelRequest } from '../model.ts';
import { type Connection, listOf, objectOf, textOf } from './wire.ts';

const SHOWN_CHARS = 500;

/** The failure that an answer with an error status stands for. */
export function providerFailure(
  connection: Connection,
  answer: { readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string },
  { model, clock }: Pick<ModelRequest, 'model' | 'clock'>,
): AttemptFailure {
  const { status, headers, text } = answer;
  const error = readError(text);
  const retryAfterMs = askedDelay(headers, error, clock.now());
  const said = textOf(error.message) || text.trim() || '(no body)';
  const code = error.code === '' ? '' : ` ${error.code}`;
  const message = `${connection.name} answered ${status}${code}: ${said.slice(0, SHOWN_CHARS)}`;
  return new AttemptFailure({ kind: 'http', status }, message, {
    status,
    hint: hintFor(status, connection, model),
    ...(error.code === '' ? {} : { provider_code: error.code }),
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
  });
}

interface ProviderError {
  readonly message: unknown;
  /** The provider's own word: `rate_limit_exceeded`, `overloaded_error`, `RESOURCE_EXHAUSTED`. */
  readonly code: string;
  readonly details: unknown;
}

/** All three wires put it under `error`; Google's streams wrap that in a list. */
function readError(text: string): ProviderError {
  let body: unknown = null;
  try {
    body = JSON.parse(text) as unknown;
  } catch {
    // A proxy's page is shown as it is.
  }
  const { error } = objectOf(Array.isArray(body) ? (body[0] as unknown) : body);
  const { message, code, status, type, details } = objectOf(error);
  const word = [code, status, type].map(textOf).find((each) => each !== '') ?? '';
  return { message: message ?? error, code: word, details };
}

/** `retry-after-ms`, else `Retry-After`, else Google's RetryInfo. */
function askedDelay(headers: IncomingHttpHeaders, { details }: ProviderError, nowMs: number): number | null {
  const exact = Number(headers['retry-after-ms'] ?? Number.NaN);
  if (Number.isFinite(exact) && exact >= 0) return Math.ceil(exact);
  const asked = headers['retry-after'];
  if (asked !== undefined) return parseRetryAfter(asked, nowMs);
  const delay = listOf(details)
    .map((detail) => textOf(objectOf(detail).retryDelay))
    .find((each) => /^\d+(\.\d+)?s$/.test(each));
  return delay === undefined ? null : Math.ceil(Number(delay.slice(0, -1)) * 1_000);
}

function hintFor(status: number, { name, keyName }: Connection, model: string): string {
  if (status === 401 || status === 403)
    return keyName === null
      ? `The provider wants a key: name its variable with providers.${name}.api_key_env.`
      : `Check ${keyName} in the environment of the worker: the provider refuses the key, or the key may not use ${model}.`;
  if (status === 404) return `Check the name of the model, \`${model}\`, and \`base_url\` of the provider.`;
  if (status === 429) return 'The provider limits this key: send less at once, or ask it for more.';
  if (status >= 500)
    return 'The provider is in trouble: try again later, or name `fallbacks` to ask another one meanwhile.';
  return "Read the provider's message; check the parameters, the length of the prompt and the model.";
}
