/** The conversation that an `llm` task begins with. */
import type { ModelMessage } from '../../models/model.ts';
import type { LlmConfig } from '../llm.ts';

/** `system`, and then `messages` or the one message that is the `prompt`. */
export function openingMessages({ system, prompt, messages }: LlmConfig): readonly ModelMessage[] {
  const asked: readonly ModelMessage[] = messages ?? [{ role: 'user', content: prompt ?? '' }];
  return system === undefined ? asked : [{ role: 'system', content: system }, ...asked];
}
