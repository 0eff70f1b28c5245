/**
 * How many tokens a request will count as input, before it is sent. Deliberately high and cheap, as limits and budgets reserve by it and are
 * corrected after the call: one token for every three bytes of UTF-8, where English text needs about one for four, and a margin for
 * each message. It is no bound: text of rare scripts or random symbols can need more.
 */
import type { ModelMessage } from './model.ts';

const BYTES_PER_TOKEN = 3;
/** Roles and separators that a provider puts around a message. */
const MESSAGE_TOKENS = 8;
const REQUEST_TOKENS = 16;

/** How long an answer is taken to be at most when a task does not say; where an API wants a bound, this is sent. */
export const ANSWER_TOKENS_DEFAULT = 8_192;

/** The estimate for a conversation, and for the JSON Schema that goes with it where an answer must fit one. */
export function estimateTokens(messages: readonly ModelMessage[], schema?: unknown): number {
  const schemaText = schema === undefined ? '' : JSON.stringify(schema);
  const text = messages.reduce((tokens, { content }) => tokens + tokensOf(content) + MESSAGE_TOKENS, 0);
  return REQUEST_TOKENS + text + tokensOf(schemaText);
}

function tokensOf(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}
