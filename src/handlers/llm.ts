/** `llm`: one call of a language model (SPEC S9.1). */
import { z } from 'zod';
import { timeoutText } from '../definition/duration-schema.ts';
import type { HandlerDoubt } from '../definition/handler-spec.ts';
import { createModels, type Models } from '../models/registry.ts';
import { defineHandler, type Handler } from './handler.ts';
import { reserveLlm } from './llm/reserve-llm.ts';

const OFFLINE_ONLY = createModels({ providers: {}, prices: {}, env: {} });
const REFERENCE = /^[a-z0-9_-]+\/.+$/i;

const model = z
  .string()
  .regex(REFERENCE, 'must be written as provider/model, for example offline/brief')
  .describe('provider/model');

const message = z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: z.string() });

const config = z
  .strictObject({
    model,
    prompt: z.string().optional().describe('the request, as one text'),
    messages: z.array(message).min(1).optional().describe('the request, as a conversation'),
    system: z.string().optional().describe('what the model is told before the request'),
    fallbacks: z.array(model).max(8).optional().describe('models to try when this one cannot be reached'),
    max_tokens: z.int().min(1).optional().describe('longest answer'),
    temperature: z.number().min(0).max(2).optional().describe('0 to 2'),
    top_p: z.number().min(0).max(1).optional().describe('0 to 1'),
    stop: z.array(z.string()).max(16).optional().describe('texts that end the answer'),
    seed: z.int().optional().describe('for models that can repeat an answer'),
    request_timeout: timeoutText.optional().describe('of one request; default 5m'),
  })
  .refine((value) => (value.prompt === undefined) !== (value.messages === undefined), {
    message: 'give either `prompt` or `messages`',
    // Told together with what else is wrong, not after it has been mended.
    when: ({ value }) => typeof value === 'object' && value !== null,
  });

/** The config of an `llm` task after rendering. */
export type LlmConfig = z.output<typeof config>;

/** Calls a language model. This one knows the offline model only; a process with settings and keys uses `llmWith`. */
export const llm: Handler<LlmConfig> = defineHandler<LlmConfig>({
  name: 'llm',
  aliases: ['llm_service'],
  summary: 'Calls a language model and keeps its text or JSON.',
  config,
  reserve: (given, output) => reserveLlm(given, output, OFFLINE_ONLY.price),
  run: async (context) => (await import('./llm/run-llm.ts')).runLlm(context, OFFLINE_ONLY),
});

/** The same with the models of this process. */
export function llmWith(models: Models): Handler<LlmConfig> {
  return defineHandler<LlmConfig>({
    ...llm,
    doubts: (given) => doubtsOf(given, models),
    reserve: (given, output) => reserveLlm(given, output, models.price),
    run: async (context) => (await import('./llm/run-llm.ts')).runLlm(context, models),
  });
}

/** What a task asks for that is not there: workers elsewhere may have it, so it is no error. */
function doubtsOf(given: Readonly<Record<string, unknown>>, models: Models): readonly HandlerDoubt[] {
  const fallbacks = Array.isArray(given.fallbacks) ? (given.fallbacks as unknown[]) : [];
  const named = [
    { path: ['model'], name: given.model },
    ...fallbacks.map((name, index) => ({ path: ['fallbacks', index], name })),
  ];
  return named.flatMap(({ path, name }) => {
    if (typeof name !== 'string' || !REFERENCE.test(name) || name.includes('{{')) return [];
    const found = models.find(name);
    if (found.ok) return [];
    const { message, hint } = found;
    return [{ path, message: `\`${name}\` cannot be asked here: ${message}`, hint }];
  });
}
