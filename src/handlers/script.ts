/** `script`: a function from a JavaScript or TypeScript file beside the workflow (SPEC S9.3). */
import { z } from 'zod';
import { defineHandler } from './handler.ts';

const config = z.strictObject({
  module: z.string().min(1).describe('path of the file, relative to the workflow'),
  export: z.string().min(1).optional().describe('the function; default `default`'),
  args: z.unknown().optional().describe('passed as the first argument'),
  bundle: z
    .string()
    .optional()
    .describe('the module with all it imports; Relay fills it in when the workflow is stored'),
});

/** The config of a `script` task after rendering. */
export type ScriptConfig = z.output<typeof config>;

/** Calls a function in a process of its own. */
export const script = defineHandler<ScriptConfig>({
  name: 'script',
  bundledKey: 'module',
  summary: 'Calls a function of your own as (args, ctx).',
  config,
  run: async (context) => (await import('./script/run-script.ts')).runScript(context),
});
