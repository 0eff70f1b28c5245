/** Whether an output is what its task asked for (SPEC S1.2 `output`, S5.1). Finding JSON in text is the matter of `llm`. */
import { compileJsonSchema } from '../base/json-schema.ts';
import type { OutputProblem } from '../domain/failure.ts';
import type { OutputSpec } from './work-source.ts';

/** What is wrong with an output, by kind and in words. */
export interface OutputFault {
  readonly problem: OutputProblem;
  readonly message: string;
}

/** The first thing that is wrong with an output, or null. Without a spec, everything is right. */
export async function checkOutput(spec: OutputSpec | null, value: unknown): Promise<OutputFault | null> {
  if (spec === null) return null;
  if (value === undefined) return fault('missing', 'the handler returned nothing');
  if (typeof value === 'string' && value.trim() === '' && spec.allow_empty !== true) {
    return fault('empty', 'the output is empty; set output.allow_empty if that is fine');
  }
  if (spec.max_chars !== undefined) {
    const chars = (typeof value === 'string' ? value : JSON.stringify(value)).length;
    if (chars > spec.max_chars) {
      return fault('too_long', `the output has ${chars} characters; output.max_chars is ${spec.max_chars}`);
    }
  }
  if (spec.schema !== undefined) return checkSchema(spec.schema, value);
  if (spec.format === 'json' && typeof value === 'string') {
    return fault('not_json', 'the output is text, not JSON; parse it (`parse: json`) or drop output.format');
  }
  return null;
}

async function checkSchema(schema: unknown, value: unknown): Promise<OutputFault | null> {
  const check = await compileJsonSchema(schema);
  const refusal = check(value);
  return refusal === null ? null : fault('schema', `the output does not fit output.schema: ${refusal}`);
}

function fault(problem: OutputProblem, message: string): OutputFault {
  return { problem, message };
}
