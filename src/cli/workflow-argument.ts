/** FILE|NAME: a workflow from a file, from stdin, or stored under a name. */
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { RelayError } from '../base/errors.ts';
import type { Workflow } from '../definition/workflow.ts';
import { type CommonOptions, configFor } from './command.ts';
import { withRelay } from './connect.ts';
import { colorsFor, type Io } from './io.ts';
import { renderProblems } from './render/problems.ts';
import { loadWorkflowSource } from './workflow-source.ts';

/** A workflow that may be run, and the folder in which its `shell` and `script` tasks work. */
export interface NamedWorkflow {
  readonly workflow: Workflow;
  readonly workdir: string;
  /** True when it was found by its name; its scripts are stored with it. */
  readonly isStored: boolean;
}

/** Finds and checks the workflow. Null when it has problems, which are then printed. */
export async function workflowArgument(
  argument: string,
  options: CommonOptions,
  io: Io,
): Promise<NamedWorkflow | null> {
  if (!isFile(argument, io.cwd))
    return { workflow: await storedWorkflow(argument, options, io), workdir: io.cwd, isStored: true };
  const source = await loadWorkflowSource(argument, options, io);
  const { workflow, errors, warnings } = source.checked;
  if (workflow === null && options.json === true) {
    const details = { errors, warnings };
    throw new RelayError('INVALID_WORKFLOW', `${source.file} has ${errors.length} errors`, { details });
  }
  if (options.json !== true) io.err.write(renderProblems(source, colorsFor(io.err, io.env)));
  if (workflow === null) return null;
  const workdir = argument === '-' ? io.cwd : dirname(resolve(io.cwd, argument));
  return { workflow, workdir, isStored: false };
}

function isFile(argument: string, cwd: string): boolean {
  return argument === '-' || /[/\\]|\.(ya?ml|json)$/i.test(argument) || existsSync(resolve(cwd, argument));
}

async function storedWorkflow(name: string, options: CommonOptions, io: Io): Promise<Workflow> {
  const { data, store, server } = (await configFor(options, io)).config;
  const isHere = server === undefined && store === undefined;
  const isEmpty = isHere && !existsSync(join(resolve(io.cwd, data), 'relay.db'));
  const hint = '`relay workflows list` shows the stored ones; a file needs its ending, for example .yaml';
  const missing = new RelayError('NOT_FOUND', `there is no file and no stored workflow ${name}`, { hint });
  if (isEmpty) throw missing;
  return withRelay(options, io, async ({ api }) => {
    try {
      return (await api.workflows.get(name)).definition as Workflow;
    } catch (error) {
      if (!(error instanceof RelayError) || error.code !== 'NOT_FOUND') throw error;
      const isNear = error.hint.startsWith('did you mean');
      throw isNear ? new RelayError('NOT_FOUND', missing.message, { hint: error.hint }) : missing;
    }
  });
}
