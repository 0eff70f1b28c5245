/** What an `llm` task will ask of models at most, before it asks: for limits and budgets (SPEC S8). */
import type { WantedOutput } from '../../definition/handler-spec.ts';
import type { ModelNeed } from '../../domain/limits.ts';
import { ANSWER_TOKENS_DEFAULT, estimateTokens } from '../../models/estimate.ts';
import { costOf, type ModelPrice } from '../../models/pricing.ts';
import type { LlmConfig } from '../llm.ts';
import { openingMessages } from './opening-messages.ts';

/** What the request for a better answer adds to a conversation, beside the answer it is about. */
const REPAIR_TOKENS = 128;

/** The model and every fallback, each asked as often as repairs allow. A repair is asked with all that was said before. */
export function reserveLlm(
  config: LlmConfig,
  output: WantedOutput | null,
  priceOf: (model: string) => ModelPrice | null,
): readonly ModelNeed[] {
  const { model, fallbacks = [], max_tokens = ANSWER_TOKENS_DEFAULT } = config;
  const requests = 1 + (output?.repair ?? 0);
  const opening = estimateTokens(openingMessages(config), output?.schema);
  const said = ((requests * (requests - 1)) / 2) * (max_tokens + REPAIR_TOKENS);
  const tokens_in = requests * opening + said;
  const tokens_out = requests * max_tokens;
  return [...new Set([model, ...fallbacks])].map((name) => ({
    model: name,
    requests,
    tokens: tokens_in + tokens_out,
    cost_usd: costOf({ tokens_in, tokens_out }, priceOf(name)),
  }));
}
