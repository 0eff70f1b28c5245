/** Parts of a conversation that providers want apart: what the system says, and the turns; and the words that ask for JSON. */
import type { ModelMessage, ModelRequest } from './model.ts';

/** What the system says, as one text, with an addition. */
export function systemText({ messages }: Pick<ModelRequest, 'messages'>, addition: string): string {
  const said = messages.filter(({ role }) => role === 'system').map(({ content }) => content);
  return [...said, addition].filter((text) => text !== '').join('\n\n');
}

/** What user and assistant said, in order. */
export function turns({ messages }: Pick<ModelRequest, 'messages'>): readonly ModelMessage[] {
  return messages.filter(({ role }) => role !== 'system');
}

/** Asks for JSON in words, for models and schemas that cannot be held to it otherwise. */
export function jsonInstruction(schema: unknown): string {
  const fit = schema === undefined ? '' : ` It must fit this JSON Schema:\n${JSON.stringify(schema)}`;
  return `Answer with one JSON value and nothing else: no explanation, no code fence.${fit}`;
}
