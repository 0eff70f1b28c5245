/** `shell`: a script or a command in a process group of its own (SPEC S9.3). */
import { z } from 'zod';
import { defineHandler } from './handler.ts';

const config = z.strictObject({
  run: z
    .union([z.string().min(1), z.array(z.string()).min(1)])
    .describe('script text, or a list of arguments'),
  cwd: z.string().optional().describe("default: the workflow's folder"),
  env: z
    .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
    .optional()
    .describe('environment variables'),
  parse: z.enum(['text', 'json', 'lines']).optional().describe('how stdout becomes the output; default text'),
  files: z.array(z.string()).max(64).optional().describe('globs of files that become artifacts'),
});

/** The config of a `shell` task after rendering. */
export type ShellConfig = z.output<typeof config>;

/** Runs a script or a command. */
export const shell = defineHandler<ShellConfig>({
  name: 'shell',
  summary: 'Runs a script or a command; the output is its stdout.',
  config,
  shellKeys: ['run'],
  run: async (context) => (await import('./shell/run-shell.ts')).runShell(context),
});
