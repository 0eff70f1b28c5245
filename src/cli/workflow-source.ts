/** Loads the workflow file a command was given, under the limits of the config. */
import { resolve } from 'node:path';
import { type Config, toDefinitionLimits } from '../app/config.ts';
import { configureHandlers } from '../app/configured-handlers.ts';
import { decodeText, readTextFile, tooLarge } from '../app/workflow-file.ts';
import type { HandlerCatalog } from '../definition/handler-spec.ts';
import { type CheckedWorkflow, checkWorkflowText } from '../definition/load.ts';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';
import { type CommonOptions, configFor } from './command.ts';
import type { Io } from './io.ts';

/** A checked file, with its text for showing the lines that problems are on. */
export interface WorkflowSource {
  readonly file: string;
  readonly text: string;
  readonly checked: CheckedWorkflow;
}

/** Reads and checks FILE (`-` is stdin). */
export async function loadWorkflowSource(
  file: string,
  options: CommonOptions,
  io: Io,
): Promise<WorkflowSource> {
  const { config } = await configFor(options, io);
  const limits = toDefinitionLimits(config);
  const text =
    file === '-' ? await readStdin(io, limits.fileBytesMax) : readFile(file, io, limits.fileBytesMax);
  const checked = await checkWorkflowText(text, { handlers: handlersOf(config, io), limits });
  return { file: file === '-' ? 'stdin' : file, text, checked };
}

/** What runs here can be doubted here; of a server's keys nothing is known. */
function handlersOf({ server, providers, prices }: Config, { env }: Io): HandlerCatalog {
  if (server !== undefined) return BUILT_IN_HANDLERS;
  return configureHandlers({ models: { providers, prices }, env }).catalog;
}

function readFile(file: string, io: Io, bytesMax: number): string {
  return readTextFile(resolve(io.cwd, file), bytesMax, file);
}

async function readStdin(io: Io, bytesMax: number): Promise<string> {
  const bytes = await io.readStdin(bytesMax);
  if (bytes === null) throw tooLarge('stdin', bytesMax);
  return decodeText('stdin', bytes);
}
