/**
 * `offline/…`: a built-in model for demos and tests. It needs no key and no network, gives the same answer to the same
 * request, and says in its answers what it is. `offline/echo` repeats the last user message, `offline/flaky` fails on the
 * first attempt of a task, `offline/sloppy` answers in words until it is told that JSON was wanted; every other name
 * summarises the prompt, or makes up JSON that fits the schema.
 */
import { createHash } from 'node:crypto';
import { AttemptFailure } from '../domain/attempt-failure.ts';
import { turns } from './conversation.ts';
import type { ModelAnswer, ModelProvider, ModelRequest } from './model.ts';
import { makeJson } from './offline-json.ts';

const CHARS_PER_TOKEN = 4;
const SUMMARY_CHARS = 240;

/** The offline provider. */
export const offline: ModelProvider = Object.freeze({
  name: 'offline',
  generate: async (request: ModelRequest): Promise<ModelAnswer> => {
    request.signal.throwIfAborted();
    if (request.model === 'flaky' && request.attempt <= 1) {
      const message = 'offline/flaky answered 503: it always fails on the first attempt';
      throw new AttemptFailure({ kind: 'http', status: 503 }, message, { status: 503 });
    }
    return deliver(request, compose(request));
  },
});

function compose(request: ModelRequest): string {
  const prompt = request.messages.findLast(({ role }) => role === 'user')?.content ?? '';
  if (request.model === 'echo') return prompt;
  const seed = hashOf(request);
  const isSloppy = request.model === 'sloppy' && turns(request).length === 1;
  if (!request.wantsJson || isSloppy) return `[offline model] ${request.model}: ${summarise(prompt, seed)}`;
  if (request.schema !== undefined) return JSON.stringify(makeJson(request.schema, seed));
  return JSON.stringify({ offline_model: request.model, summary: summarise(prompt, seed) });
}

/** Everything that may change the answer. */
function hashOf({ model, messages, schema, params }: ModelRequest): string {
  const asked = JSON.stringify([model, messages, schema ?? null, params.seed ?? null]);
  return createHash('sha256').update(asked).digest('hex');
}

function summarise(prompt: string, seed: string): string {
  const line = prompt.replace(/\s+/g, ' ').trim();
  const words = line === '' ? 0 : line.split(' ').length;
  const start = line.length > SUMMARY_CHARS ? `${line.slice(0, SUMMARY_CHARS - 1)}…` : line;
  return `asked in ${words} words (${seed.slice(0, 8)}): ${start}`;
}

/** Streams the text word by word and cuts it at `max_tokens` and at stop words, as a real model would. */
function deliver(request: ModelRequest, full: string): ModelAnswer {
  const { max_tokens: tokensMax = Number.POSITIVE_INFINITY, stop = [] } = request.params;
  const stops = stop.map((word) => full.indexOf(word)).filter((at) => at >= 0);
  const stopped = full.slice(0, Math.min(full.length, ...stops));
  const text = stopped.slice(0, tokensMax * CHARS_PER_TOKEN);
  for (const [token] of text.matchAll(/\S+\s*|\s+/g)) request.onToken(token);
  const asked = request.messages.reduce((chars, { content }) => chars + content.length, 0);
  return {
    text,
    usage: { tokens_in: countTokens(asked), tokens_out: countTokens(text.length) },
    finish: text === stopped ? 'stop' : 'length',
  };
}

function countTokens(chars: number): number {
  return Math.ceil(chars / CHARS_PER_TOKEN);
}
