/** Runs an `llm` task: the model or its fallbacks, JSON where it is wanted, repairs where they are allowed (SPEC S9.1, S9.2). */
import { AttemptFailure } from '../../domain/attempt-failure.ts';
import { classify } from '../../domain/failure.ts';
import { parseJsonAnswer } from '../../models/json-answer.ts';
import type { ModelAnswer, ModelMessage } from '../../models/model.ts';
import { findModel } from '../../models/registry.ts';
import { checkOutput, type OutputFault } from '../../worker/check-output.ts';
import type { OutputSpec } from '../../worker/work-source.ts';
import { type HandlerContext, TerminalError } from '../handler.ts';
import type { LlmConfig } from '../llm.ts';
import { callModel } from './call-model.ts';

/** Asks the model, then each fallback in turn while they cannot be reached. */
export async function runLlm(context: HandlerContext<LlmConfig>): Promise<unknown> {
  const { model, fallbacks = [] } = context.config;
  for (const [index, reference] of [model, ...fallbacks].entries()) {
    try {
      return await askUntilRight(context, reference);
    } catch (error) {
      context.signal.throwIfAborted();
      const next = fallbacks[index];
      if (next === undefined || !isOutOfReach(error)) throw error;
      context.log(`${reference} could not be reached (${error.message}); trying ${next}\n`);
    }
  }
  throw new TerminalError('there is no model to ask');
}

/** Whether another model may do better: what went wrong was the way to this one, not its answer. */
function isOutOfReach(error: unknown): error is AttemptFailure {
  return error instanceof AttemptFailure && error.facts.kind !== 'output' && classify(error.facts).retryable;
}

async function askUntilRight(context: HandlerContext<LlmConfig>, reference: string): Promise<unknown> {
  const found = findModel(reference);
  if (!found.ok) throw new TerminalError(found.message);
  const messages = [...openingMessages(context.config)];
  const repairs = context.output?.repair ?? 0;
  for (let repair = 0; ; repair++) {
    const answer = await callModel(context, { ...found, reference, messages });
    const judged = await judge(context.output, answer);
    if (judged.fault === null) {
      if (judged.isFromText) context.artifact(rawArtifact(answer.text));
      return judged.value;
    }
    const { problem, message } = judged.fault;
    if (problem === 'truncated' || repair >= repairs) {
      throw new AttemptFailure({ kind: 'output', problem }, message);
    }
    context.log(`the answer was refused (${message}); asking again\n`);
    messages.push({ role: 'assistant', content: answer.text }, repairRequest(context.output, message));
  }
}

function openingMessages({ system, prompt, messages }: LlmConfig): readonly ModelMessage[] {
  const asked: readonly ModelMessage[] = messages ?? [{ role: 'user', content: prompt ?? '' }];
  return system === undefined ? asked : [{ role: 'system', content: system }, ...asked];
}

function repairRequest(output: OutputSpec | null, message: string): ModelMessage {
  const form = wantsJson(output) ? ' Answer with the corrected JSON and nothing else.' : ' Answer again.';
  return { role: 'user', content: `Your answer cannot be used: ${message}.${form}` };
}

/** Whether the task wants JSON from its model. */
function wantsJson(output: OutputSpec | null): boolean {
  return output?.format === 'json' || output?.schema !== undefined;
}

interface Judged {
  readonly value: unknown;
  readonly fault: OutputFault | null;
  /** True when JSON had to be found in the text. */
  readonly isFromText: boolean;
}

/** The answer's value and what is wrong with it. An empty answer is always wrong unless it is allowed. */
async function judge(output: OutputSpec | null, answer: ModelAnswer): Promise<Judged> {
  const refuse = (problem: OutputFault['problem'], message: string): Judged => ({
    value: undefined,
    fault: { problem, message },
    isFromText: false,
  });
  if (answer.finish === 'length' && output?.allow_truncated !== true) {
    return refuse('truncated', 'the answer was cut at max_tokens; raise it, or set output.allow_truncated');
  }
  if (!wantsJson(output)) {
    return { value: answer.text, fault: await checkOutput(output ?? {}, answer.text), isFromText: false };
  }
  if (answer.json !== undefined) {
    return { value: answer.json, fault: await checkOutput(output, answer.json), isFromText: false };
  }
  const parsed = parseJsonAnswer(answer.text);
  if (parsed === null) {
    return refuse('not_json', `the answer has no JSON in it; it begins with ${quote(answer.text)}`);
  }
  return { value: parsed.value, fault: await checkOutput(output, parsed.value), isFromText: true };
}

function quote(text: string): string {
  return JSON.stringify(text.slice(0, 200));
}

function rawArtifact(text: string): { name: string; content_type: string; bytes: Uint8Array } {
  return { name: 'raw', content_type: 'text/plain; charset=utf-8', bytes: Buffer.from(text) };
}
