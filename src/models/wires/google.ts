/** The Gemini API of Google. */
import { jsonInstruction, systemText, turns } from '../conversation.ts';
import type { ModelAnswer, ModelRequest } from '../model.ts';
import { GOOGLE_SCHEMAS, toNativeSchema } from '../native-schema.ts';
import { type Connection, countOf, listOf, objectOf, type Piece, textOf, type Wire } from './wire.ts';

/** Google's wire. */
export const google: Wire = Object.freeze({
  request: ({ key }: Connection, request: ModelRequest) => {
    const { max_tokens, temperature, top_p, stop, seed } = request.params;
    const native = request.wantsJson ? toNativeSchema(request.schema, GOOGLE_SCHEMAS) : null;
    const isTold = request.wantsJson && native === null;
    const system = systemText(request, isTold ? jsonInstruction(request.schema) : '');
    return {
      path: `/models/${encodeURIComponent(request.model)}:streamGenerateContent?alt=sse`,
      headers: { 'x-goog-api-key': key ?? '' },
      body: {
        ...(system === '' ? {} : { systemInstruction: { parts: [{ text: system }] } }),
        contents: turns(request).map(({ role, content }) => ({
          role: role === 'assistant' ? 'model' : 'user',
          parts: [{ text: content }],
        })),
        generationConfig: {
          ...(max_tokens === undefined ? {} : { maxOutputTokens: max_tokens }),
          ...(temperature === undefined ? {} : { temperature }),
          ...(top_p === undefined ? {} : { topP: top_p }),
          ...(stop === undefined ? {} : { stopSequences: stop }),
          ...(seed === undefined ? {} : { seed }),
          ...(request.wantsJson ? { responseMimeType: 'application/json' } : {}),
          ...(native === null ? {} : { responseJsonSchema: native }),
        },
      },
    };
  },
  read,
});

const FINISHES: Readonly<Record<string, ModelAnswer['finish']>> = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  SAFETY: 'filter',
  RECITATION: 'filter',
  BLOCKLIST: 'filter',
  PROHIBITED_CONTENT: 'filter',
  SPII: 'filter',
};

function read(data: unknown): Piece {
  const { error, candidates, promptFeedback, usageMetadata } = objectOf(data);
  if (error !== undefined) {
    const { code } = objectOf(error);
    return { error: { status: typeof code === 'number' && code >= 400 ? code : 500, body: data } };
  }
  const { content, finishReason } = objectOf(listOf(candidates)[0]);
  const parts = listOf(objectOf(content).parts).map(objectOf);
  const isBlocked = objectOf(promptFeedback).blockReason !== undefined;
  return {
    // What a model thought is not its answer.
    text: parts.map(({ text, thought }) => (thought === true ? '' : textOf(text))).join(''),
    usage: readUsage(usageMetadata),
    ...(isBlocked
      ? { finish: 'filter' }
      : typeof finishReason === 'string'
        ? { finish: FINISHES[finishReason] ?? 'other' }
        : {}),
  };
}

function readUsage(usage: unknown): NonNullable<Piece['usage']> {
  const counts = objectOf(usage);
  const { candidatesTokenCount: said, thoughtsTokenCount: thought } = counts;
  const isCounted = typeof said === 'number' || typeof thought === 'number';
  const number = (value: unknown): number => (typeof value === 'number' ? value : 0);
  return {
    ...countOf('tokens_in', counts.promptTokenCount),
    ...(isCounted ? { tokens_out: number(said) + number(thought) } : {}),
    ...countOf('tokens_cached', counts.cachedContentTokenCount),
  };
}
