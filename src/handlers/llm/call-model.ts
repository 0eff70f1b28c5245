/** One call of a model: its time limit, its tokens into the log, what it used and what it cost into the record. */
import { parseDuration } from '../../base/duration.ts';
import { AttemptFailure } from '../../domain/attempt-failure.ts';
import type { ModelAnswer, ModelMessage, ModelProvider, ModelRequest } from '../../models/model.ts';
import { costOf, type ModelPrice } from '../../models/pricing.ts';
import type { HandlerContext } from '../handler.ts';
import type { LlmConfig } from '../llm.ts';

const REQUEST_TIMEOUT_MS = 5 * 60_000;

/** What to ask of whom. */
export interface ModelCall {
  readonly provider: ModelProvider;
  /** The model's name within its provider. */
  readonly model: string;
  /** As the task names it: provider/model. */
  readonly reference: string;
  readonly price: ModelPrice | null;
  readonly messages: readonly ModelMessage[];
  /** SHA-256 of the artifact `prompt`. */
  readonly promptHash: string;
}

/** Makes the call and records its use. */
export async function callModel(context: HandlerContext<LlmConfig>, call: ModelCall): Promise<ModelAnswer> {
  const { config, signal, clock } = context;
  const timeoutMs = parseDuration(config.request_timeout ?? '') ?? REQUEST_TIMEOUT_MS;
  const timeout = AbortSignal.timeout(timeoutMs);
  const startedAt = clock.monotonic();
  try {
    const answer = await call.provider.generate(
      buildRequest(context, call, AbortSignal.any([signal, timeout])),
    );
    recordUse(context, call, answer, clock.monotonic() - startedAt);
    return answer;
  } catch (error) {
    signal.throwIfAborted();
    if (!timeout.aborted || error instanceof AttemptFailure) throw error;
    const message = `${call.reference} took longer than ${timeoutMs} ms (request_timeout)`;
    throw new AttemptFailure({ kind: 'timeout' }, message, { cause: error });
  }
}

function buildRequest(
  { config, output, task, log, clock, trace }: HandlerContext<LlmConfig>,
  { model, messages }: ModelCall,
  signal: AbortSignal,
): ModelRequest {
  const { max_tokens, temperature, top_p, stop, seed } = config;
  return {
    model,
    messages,
    params: {
      ...(max_tokens === undefined ? {} : { max_tokens }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(top_p === undefined ? {} : { top_p }),
      ...(stop === undefined ? {} : { stop }),
      ...(seed === undefined ? {} : { seed }),
    },
    schema: output?.schema,
    wantsJson: output?.format === 'json' || output?.schema !== undefined,
    attempt: task.attempt,
    signal,
    clock,
    trace,
    onToken: (text) => log(text, 'token'),
  };
}

function recordUse(
  context: HandlerContext<LlmConfig>,
  { provider, reference, price, promptHash }: ModelCall,
  { usage, finish }: ModelAnswer,
  latencyMs: number,
): void {
  const { tokens_in, tokens_out, tokens_cached = 0 } = usage;
  const used = { tokens_in, tokens_out, tokens_cached, cost_usd: costOf(usage, price) };
  context.usage({
    ...used,
    model: reference,
    provider: provider.name,
    latency_ms: Math.round(latencyMs),
    prompt_hash: promptHash,
    finish,
    models: { [reference]: { calls: 1, ...used } },
  });
}
