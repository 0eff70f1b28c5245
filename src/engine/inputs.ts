/** Inputs of a run against what the workflow declares: defaults filled in, everything checked before a run exists (SPEC S1.2). */
import { RelayError } from '../base/errors.ts';
import { compileJsonSchema } from '../base/json-schema.ts';
import { didYouMean } from '../base/suggest.ts';
import type { Workflow } from '../definition/workflow.ts';

type Inputs = Readonly<Record<string, unknown>>;

/** The inputs with defaults, or INVALID_INPUT with all that is wrong. */
export async function checkInputs(workflow: Workflow, given: Inputs): Promise<Inputs> {
  const declared = workflow.inputs ?? {};
  const problems: string[] = [];
  const inputs: Record<string, unknown> = {};
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(declared, name)) continue;
    const hint = didYouMean(name, Object.keys(declared));
    problems.push(`\`${name}\` is not an input of ${workflow.name}${hint === undefined ? '' : `; ${hint}`}`);
  }
  for (const [name, schema] of Object.entries(declared)) {
    const value = Object.hasOwn(given, name) ? given[name] : schema.default;
    if (value === undefined) {
      problems.push(`\`${name}\` is required`);
      continue;
    }
    const refusal = (await compileJsonSchema(schema))(value);
    if (refusal !== null) problems.push(`\`${name}\`: ${refusal}`);
    inputs[name] = value;
  }
  if (problems.length === 0) return inputs;
  throw new RelayError('INVALID_INPUT', problems.join('; '), { details: { problems } });
}
