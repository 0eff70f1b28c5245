/** The Messages API of Anthropic. */
import { jsonInstruction, systemText, turns } from '../conversation.ts';
import { ANSWER_TOKENS_DEFAULT } from '../estimate.ts';
import type { ModelAnswer, ModelRequest } from '../model.ts';
import { ANTHROPIC_SCHEMAS, toNativeSchema } from '../native-schema.ts';
import { type Connection, countOf, listOf, objectOf, type Piece, textOf, type Wire } from './wire.ts';

const API_VERSION = '2023-06-01';
/** Models from before structured outputs; they are told in words. */
const WITHOUT_SCHEMAS = /^claude-(2|3|instant|(opus|sonnet)-4-(0|2025))/;

/** Anthropic's wire. */
export const anthropic: Wire = Object.freeze({
  request: ({ key }: Connection, request: ModelRequest) => {
    const { max_tokens = ANSWER_TOKENS_DEFAULT, temperature, top_p, stop } = request.params;
    const native =
      request.wantsJson && !WITHOUT_SCHEMAS.test(request.model)
        ? toNativeSchema(request.schema, ANTHROPIC_SCHEMAS)
        : null;
    const isTold = request.wantsJson && native === null;
    const system = systemText(request, isTold ? jsonInstruction(request.schema) : '');
    return {
      path: '/messages',
      headers: { 'x-api-key': key ?? '', 'anthropic-version': API_VERSION },
      body: {
        model: request.model,
        max_tokens,
        ...(system === '' ? {} : { system }),
        messages: turns(request),
        ...(temperature === undefined ? {} : { temperature }),
        ...(top_p === undefined ? {} : { top_p }),
        ...(stop === undefined ? {} : { stop_sequences: stop }),
        ...(native === null ? {} : { output_config: { format: { type: 'json_schema', schema: native } } }),
        stream: true,
      },
    };
  },
  read,
});

const FINISHES: Readonly<Record<string, ModelAnswer['finish']>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'filter',
};

/** What an error of the stream would have been as an answer. */
const STATUSES: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  timeout_error: 504,
  overloaded_error: 529,
};

function read(data: unknown): Piece {
  const event = objectOf(data);
  switch (event.type) {
    case 'error':
      return { error: { status: STATUSES[textOf(objectOf(event.error).type)] ?? 500, body: data } };
    case 'message_start':
      return { usage: readUsage(objectOf(event.message).usage) };
    case 'content_block_delta':
      return { text: textOf(objectOf(event.delta).text) };
    case 'message_delta':
      return { usage: readUsage(event.usage), ...readFinish(objectOf(event.delta).stop_reason) };
    case 'message':
      return {
        text: listOf(event.content)
          .map((block) => textOf(objectOf(block).text))
          .join(''),
        usage: readUsage(event.usage),
        ...readFinish(event.stop_reason),
      };
    default:
      return {};
  }
}

function readFinish(reason: unknown): Pick<Piece, 'finish'> {
  return typeof reason === 'string' ? { finish: FINISHES[reason] ?? 'other' } : {};
}

/** Cached tokens are counted apart here; in our contract they are part of the input. */
function readUsage(usage: unknown): NonNullable<Piece['usage']> {
  const { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens } =
    objectOf(usage);
  const counts = [input_tokens, cache_read_input_tokens, cache_creation_input_tokens];
  const all = counts.reduce<number>((sum, count) => sum + (typeof count === 'number' ? count : 0), 0);
  return {
    ...(typeof input_tokens === 'number' ? { tokens_in: all } : {}),
    ...countOf('tokens_out', output_tokens),
    ...countOf('tokens_cached', cache_read_input_tokens),
  };
}
