/** `relay schema`: the JSON Schema of workflow files, generated from the validator (SPEC S1.6). */
import { workflowJsonSchema } from '../../definition/json-schema.ts';
import { BUILT_IN_HANDLERS } from '../../handlers/registry.ts';
import { type BuildCommand, examples } from '../command.ts';
import { printJson } from '../io.ts';

export const buildSchema: BuildCommand = (command, { io }) => {
  command
    .addHelpText(
      'after',
      `${examples([['relay schema > relay.schema.json', 'save it beside your workflows']])}
Then an editor with a YAML plugin completes and checks a workflow that starts with
  # yaml-language-server: $schema=relay.schema.json
`,
    )
    .action(() => printJson(io, workflowJsonSchema(BUILT_IN_HANDLERS)));
};
