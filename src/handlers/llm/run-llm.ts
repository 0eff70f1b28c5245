/** Runs an `llm` task: the model or its fallbacks, JSON where it is wanted, repairs where they are allowed (SPEC S9.1, S9.2). */
import { createHash } from 'node:crypto';
import { AttemptFailure } from '../../domain/attempt-failure.ts';
import { parseJsonAnswer } from '../../models/json-answer.ts';
import type { ModelAnswer, ModelMessage } from '../../models/model.ts';
import type { Models } from '../../models/registry.ts';
import { checkOutput, type OutputFault } from '../../worker/check-output.ts';
import type { OutputSpec } from '../../worker/work-source.ts';
import type { HandlerContext } from '../handler.ts';
import type { LlmConfig } from '../llm.ts';
import { callModel } from './call-model.ts';
import { failureOf, isOutOfReach } from './fallback.ts';
import { openingMessages } from './opening-messages.ts';

/** Asks the model, then each fallback in turn while they cannot be reached. */
export async function runLlm(context: HandlerContext<LlmConfig>, models: Models): Promise<unknown> {
  const { model, fallbacks = [] } = context.config;
  const session = openSession(context, models);
  const failures: AttemptFailure[] = [];
  for (const [index, reference] of [model, ...fallbacks].entries()) {
    try {
      return await askUntilRight(session, reference);
    } catch (error) {
      context.signal.throwIfAborted();
      if (!(error instanceof AttemptFailure)) throw error;
      failures.push(error);
      if (!isOutOfReach(error)) break;
      const next = fallbacks[index];
      if (next !== undefined)
        context.log(`${reference} could not be reached (${error.message}); trying ${next}\n`);
    }
  }
  throw failureOf(failures);
}

/** What all calls of one attempt share. */
interface Session {
  readonly context: HandlerContext<LlmConfig>;
  readonly models: Models;
  readonly opening: readonly ModelMessage[];
  readonly promptHash: string;
  /** Keeps the text of an answer with secrets masked, the first one as `raw`, later ones as `raw-2`, `raw-3`. */
  readonly keepRaw: (text: string) => void;
}

/** The rendered prompt is kept with secrets masked; its hash tells whether two attempts asked the same. */
function openSession(context: HandlerContext<LlmConfig>, models: Models): Session {
  const opening = openingMessages(context.config);
  const prompt = Buffer.from(context.redact(JSON.stringify(opening, null, 2)));
  context.artifact({ name: 'prompt', content_type: 'application/json', bytes: prompt });
  const promptHash = createHash('sha256').update(prompt).digest('hex');
  let answers = 0;
  const keepRaw = (text: string): void => {
    answers += 1;
    const name = answers === 1 ? 'raw' : `raw-${answers}`;
    const bytes = Buffer.from(context.redact(text));
    context.artifact({ name, content_type: 'text/plain; charset=utf-8', bytes });
  };
  return { context, models, opening, promptHash, keepRaw };
}

async function askUntilRight({ context, models, ...session }: Session, reference: string): Promise<unknown> {
  const found = models.find(reference);
  if (!found.ok) throw new AttemptFailure({ kind: 'terminal' }, found.message, { hint: found.hint });
  const { promptHash, keepRaw } = session;
  const messages = [...session.opening];
  const repairs = context.output?.repair ?? 0;
  for (let repair = 0; ; repair++) {
    const price = models.price(reference);
    const answer = await callModel(context, { ...found, reference, price, messages, promptHash });
    const judged = await judge(context.output, answer);
    // The output of a task that wants text is the raw text; anything else is kept beside what was made of it.
    if (judged.fault !== null || wantsJson(context.output)) keepRaw(answer.text);
    if (judged.fault === null) return judged.value;
    const { problem, message } = judged.fault;
    if (problem === 'truncated' || repair >= repairs) {
      throw new AttemptFailure({ kind: 'output', problem }, message);
    }
    context.log(`the answer was refused (${message}); asking again\n`);
    messages.push({ role: 'assistant', content: answer.text }, repairRequest(context.output, message));
  }
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
}

/** The answer's value and what is wrong with it. An empty answer is always wrong unless it is allowed. */
async function judge(output: OutputSpec | null, { text, finish }: ModelAnswer): Promise<Judged> {
  const refuse = (problem: OutputFault['problem'], message: string): Judged => ({
    value: undefined,
    fault: { problem, message },
  });
  if (finish === 'length' && output?.allow_truncated !== true) {
    return refuse('truncated', 'the answer was cut at max_tokens; raise it, or set output.allow_truncated');
  }
  if (finish === 'filter' && text.trim() === '') {
    return refuse('empty', 'the model or the filter of its provider refused to answer');
  }
  if (!wantsJson(output)) return { value: text, fault: await checkOutput(output ?? {}, text) };
  const parsed = parseJsonAnswer(text);
  if (parsed === null) {
    return refuse(
      'not_json',
      `the answer has no JSON in it; it begins with ${JSON.stringify(text.slice(0, 200))}`,
    );
  }
  return { value: parsed.value, fault: await checkOutput(output, parsed.value) };
}
