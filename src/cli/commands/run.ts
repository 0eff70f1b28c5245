/** `relay run FILE|NAME`: runs a workflow in this process to its end, and shows it (SPEC S13.2). */
import type { Command } from 'commander';
import type { RunView } from '../../app/api.ts';
import { RelayError } from '../../base/errors.ts';
import { isTemplated } from '../../definition/template-sites.ts';
import type { Workflow } from '../../definition/workflow.ts';
import { BUILT_IN_HANDLERS } from '../../handlers/registry.ts';
import { type BuildCommand, type CommandContext, configFor, examples } from '../command.ts';
import { type Connection, withRelay } from '../connect.ts';
import { type RunHereOptions, runToEnd } from '../follow/run-to-end.ts';
import { readInputs } from '../input-values.ts';
import { colorsFor, type Io, printJson } from '../io.ts';
import { collect, pairs, wholeNumber } from '../subcommand.ts';
import { type NamedWorkflow, workflowArgument } from '../workflow-argument.ts';

interface RunOptions extends RunHereOptions {
  readonly input?: readonly string[];
  readonly inputFile?: string;
  readonly dryRun?: boolean;
  readonly only?: string;
  readonly from?: string;
  readonly detach?: boolean;
  readonly label?: readonly string[];
  readonly priority?: number;
  readonly idempotencyKey?: string;
}

export const buildRun: BuildCommand = (command, context) => {
  addOptions(command)
    .addHelpText(
      'after',
      `${examples([
        ['relay run flow.yaml', 'run it and watch'],
        ['relay run flow.yaml -i topic=tides -i n=3', 'with inputs, read by their declared type'],
        ['relay run flow.yaml --yes --json', 'for programs: one object at the end'],
        ['relay run flow.yaml --dry-run', 'what would run; nothing is stored'],
        ['relay run flow.yaml --only draft --from RUN_ID', 'one task again, on the outputs of a run'],
        ['relay run research-brief', 'the newest stored version of that name'],
      ])}
Exit codes: 0 success · 1 failed · 2 not valid · 4 cancelled · 5 waits for a person
Ctrl-C cancels the run, twice leaves at once. \`relay resume\` carries on what was left.
`,
    )
    .action((workflow: string, options: RunOptions) => run(workflow, options, context));
};

function addOptions(command: Command): Command {
  return command
    .argument('<workflow>', 'a file (YAML or JSON; - is stdin), or the name of a stored workflow')
    .option('-i, --input <name=value>', 'an input; may be repeated', collect)
    .option('--input-file <file>', 'inputs from a JSON or YAML file; - is stdin')
    .option('-y, --yes', 'approve every gate that needs no form')
    .option('--dry-run', 'show the plan and the first inputs; store and run nothing')
    .option('--only <task>', 'run this task alone, on the outputs of the run named with --from')
    .option('--from <run>', 'the run whose outputs --only uses')
    .option(
      '--concurrency <n>',
      'tasks at work at once, at most (default 16)',
      wholeNumber('--concurrency', 1),
    )
    .option('--label <name=value>', 'a label of the run; may be repeated', collect)
    .option('--priority <n>', 'higher goes first (default 0)', wholeNumber('--priority', -1_000_000))
    .option('--idempotency-key <key>', 'the same key starts the same run only once')
    .option('--detach', 'start the run on a server and return at once (needs --server)');
}

async function run(argument: string, options: RunOptions, { io, exit }: CommandContext): Promise<void> {
  const { config } = await configFor(options, io);
  checkOptions(options, config.server !== undefined);
  const named = await workflowArgument(argument, options, io);
  if (named === null) {
    exit(2);
    return;
  }
  if (config.server === undefined) warnOfStrangers(named, io);
  else refuseTemplatedScripts(named);
  if (options.dryRun === true) {
    await showDryRun(named, options, io);
    return;
  }
  await withRelay(options, io, async (connection) => {
    const started = await start(connection, named, options, io);
    if (options.detach === true) {
      if (options.json === true) printJson(io, started);
      else io.out.write(`${started.id}\n`);
      return;
    }
    await connection.startEngine();
    const ended = await runToEnd(connection, started, { ...options, isFresh: true }, io);
    if (options.json === true) printJson(io, ended.run);
    exit(ended.exit);
  });
}

/** A declared handler may be served by a worker elsewhere; nobody here can. */
function warnOfStrangers({ workflow }: NamedWorkflow, io: Io): void {
  const strange = new Set(Object.values(workflow.tasks).map(({ uses }) => uses));
  for (const name of BUILT_IN_HANDLERS.keys()) strange.delete(name);
  for (const name of strange)
    io.err.write(`warning: nothing here runs the handler \`${name}\`; its tasks wait until a worker does\n`);
}

/** A file whose name is known only when the task runs cannot be sent along. */
function refuseTemplatedScripts({ workflow }: NamedWorkflow): void {
  for (const [id, task] of Object.entries(workflow.tasks)) {
    const key = BUILT_IN_HANDLERS.get(task.uses)?.bundledKey;
    const module = key === undefined ? undefined : task.with[key];
    if (typeof module === 'string' && isTemplated(module))
      throw new RelayError('NOT_SUPPORTED', `task \`${id}\` names its module with a template`, {
        hint: 'a server can only be sent files whose names are known; write the name out, or run it without --server',
      });
  }
}

function checkOptions(options: RunOptions, hasServer: boolean): void {
  if ((options.only === undefined) !== (options.from === undefined)) {
    throw new RelayError('USAGE', '--only and --from go together', {
      hint: 'for example: relay run flow.yaml --only draft --from RUN_ID',
    });
  }
  if (options.detach === true && !hasServer) {
    throw new RelayError('USAGE', '--detach needs a server that goes on with the run', {
      hint: 'leave out --detach to run it here; an interrupted run is carried on by `relay resume`',
    });
  }
}

async function start(
  { api }: Connection,
  named: NamedWorkflow,
  options: RunOptions,
  io: Io,
): Promise<RunView> {
  const { workflow, workdir, isStored } = named;
  const inputs = await readInputs(options, workflow.inputs, io);
  const labels = pairs('--label', options.label);
  const common = { workdir, priority: options.priority ?? 0, idempotency_key: options.idempotencyKey };
  const { only, from } = options;
  if (only === undefined || from === undefined) {
    const what = isStored ? { workflow: workflow.name } : await asSent(workflow, workdir);
    return api.runs.start({ ...common, ...what, inputs, labels });
  }
  const { onlyTask } = await import('../../app/only-task.ts');
  const one = await onlyTask(api, { workflow, task_id: only, from });
  return api.runs.start({
    ...common,
    ...(await asSent(one.definition, workdir)),
    inputs: { ...one.inputs, ...inputs },
    labels: { ...one.labels, ...labels },
  });
}

/** A definition and the code of its scripts: as stored with it, or made of the files beside it. */
async function asSent(
  { bundles, ...definition }: Workflow,
  workdir: string,
): Promise<{ readonly definition: Workflow; readonly bundles: Workflow['bundles'] | undefined }> {
  if (bundles !== undefined) return { definition, bundles };
  const { bundleScripts } = await import('../../app/bundle-scripts.ts');
  return { definition, bundles: await bundleScripts(definition, BUILT_IN_HANDLERS, workdir) };
}

async function showDryRun({ workflow }: NamedWorkflow, options: RunOptions, io: Io): Promise<void> {
  const { dryRun } = await import('../../app/dry-run.ts');
  const plan = await dryRun(workflow, await readInputs(options, workflow.inputs, io), io.env);
  if (options.json === true) printJson(io, plan);
  else {
    const { renderDryRun } = await import('../render/dry-run.ts');
    io.out.write(renderDryRun(plan, workflow, colorsFor(io.out, io.env)));
  }
}
