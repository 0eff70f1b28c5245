/** Checking a definition against the handlers that this build has. */
import { type CheckedWorkflow, checkWorkflowText, checkWorkflowValue } from '../definition/load.ts';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';

/** Checks YAML or JSON text, or a value such as `workflow({...})`; all problems come back at once. */
export function checkWorkflow(definition: unknown): Promise<CheckedWorkflow> {
  const options = { handlers: BUILT_IN_HANDLERS };
  return typeof definition === 'string'
    ? checkWorkflowText(definition, options)
    : checkWorkflowValue(definition, options);
}
