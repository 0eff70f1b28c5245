/** Chat Completions, as OpenAI and the servers that are compatible with it speak it. */
import { jsonInstruction, systemText, turns } from '../conversation.ts';
import type { ModelAnswer, ModelRequest } from '../model.ts';
import { OPENAI_SCHEMAS, toNativeSchema } from '../native-schema.ts';
import { type Connection, countOf, listOf, objectOf, type Piece, textOf, type Wire } from './wire.ts';

/** OpenAI itself. */
export const openai: Wire = Object.freeze({
  request: (connection: Connection, request: ModelRequest) =>
    build({ ...connection, structuredOutput: 'json_schema' }, request, 'max_completion_tokens'),
  read,
});

/** Servers that speak the same; what they can be held to is a setting. */
export const openaiCompatible: Wire = Object.freeze({
  request: (connection: Connection, request: ModelRequest) => build(connection, request, 'max_tokens'),
  read,
});

function build(
  connection: Connection,
  request: ModelRequest,
  maxTokensKey: string,
): ReturnType<Wire['request']> {
  const { max_tokens, ...params } = request.params;
  const format = responseFormat(connection, request);
  const isTold = request.wantsJson && format?.type !== 'json_schema';
  const system = systemText(request, isTold ? jsonInstruction(request.schema) : '');
  return {
    path: '/chat/completions',
    headers: connection.key === null ? {} : { authorization: `Bearer ${connection.key}` },
    body: {
      model: request.model,
      messages: [...(system === '' ? [] : [{ role: 'system', content: system }]), ...turns(request)],
      ...params,
      ...(max_tokens === undefined ? {} : { [maxTokensKey]: max_tokens }),
      ...(format === null ? {} : { response_format: format }),
      stream: true,
      ...(connection.isStreamCounted ? { stream_options: { include_usage: true } } : {}),
    },
  };
}

/** A schema that the provider can enforce; else any JSON object where the schema wants one; else nothing, and the model is told. */
function responseFormat(
  { structuredOutput }: Connection,
  { wantsJson, schema }: ModelRequest,
): { readonly type: string; readonly json_schema?: unknown } | null {
  if (!wantsJson || structuredOutput === 'none') return null;
  const native = structuredOutput === 'json_schema' ? toNativeSchema(schema, OPENAI_SCHEMAS) : null;
  if (native !== null)
    return { type: 'json_schema', json_schema: { name: 'answer', schema: native, strict: true } };
  return objectOf(schema).type === 'object' ? { type: 'json_object' } : null;
}

const FINISHES: Readonly<Record<string, ModelAnswer['finish']>> = {
  stop: 'stop',
  length: 'length',
  content_filter: 'filter',
};

function read(data: unknown): Piece {
  const { error, usage, choices } = objectOf(data);
  if (error !== undefined && error !== null) return { error: { status: statusOf(error), body: data } };
  const choice = objectOf(listOf(choices)[0]);
  // A server that does not stream sends `message` where a stream has `delta`.
  const { content, refusal } = objectOf(choice.delta ?? choice.message);
  const finish = textOf(choice.finish_reason);
  const isRefused = textOf(refusal) !== '';
  return {
    text: textOf(content),
    usage: readUsage(usage),
    ...(isRefused ? { finish: 'filter' } : finish === '' ? {} : { finish: FINISHES[finish] ?? 'other' }),
  };
}

function readUsage(usage: unknown): NonNullable<Piece['usage']> {
  const { prompt_tokens, completion_tokens, prompt_tokens_details } = objectOf(usage);
  return {
    ...countOf('tokens_in', prompt_tokens),
    ...countOf('tokens_out', completion_tokens),
    ...countOf('tokens_cached', objectOf(prompt_tokens_details).cached_tokens),
  };
}

/** An error in the middle of an answer has no status of its own. */
function statusOf(error: unknown): number {
  const { code, type } = objectOf(error);
  if (typeof code === 'number' && code >= 400 && code <= 599) return code;
  return /rate_limit|insufficient_quota/.test(`${textOf(code)} ${textOf(type)}`) ? 429 : 500;
}
