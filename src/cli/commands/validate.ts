/** `relay validate FILE`: every problem of a workflow file at once (SPEC S1.4, S13.2). */
import { phases } from '../../domain/graph.ts';
import { type BuildCommand, type CommonOptions, examples } from '../command.ts';
import { colorsFor, type Io, printJson } from '../io.ts';
import { renderProblems } from '../render/problems.ts';
import { loadWorkflowSource, type WorkflowSource } from '../workflow-source.ts';

export const buildValidate: BuildCommand = (command, { io, exit }) => {
  command
    .argument('<file>', 'workflow in YAML or JSON; - is stdin')
    .addHelpText(
      'after',
      examples([
        ['relay validate flow.yaml', 'show every mistake with its line and a remedy'],
        ['relay validate flow.yaml --json', 'the same for programs'],
        ['cat flow.yaml | relay validate -', 'check what comes from a pipe'],
      ]),
    )
    .action(async (file: string, options: CommonOptions) => {
      const source = await loadWorkflowSource(file, options, io);
      const summary = summarise(source);
      if (options.json === true) printJson(io, summary);
      else print(source, summary, io);
      if (!summary.valid) exit(2);
    });
};

type Summary = ReturnType<typeof summarise>;

/** What `--json` prints. The numbers are of the whole workflow, so they are 0 while it is not valid. */
function summarise({ checked }: WorkflowSource) {
  const { workflow, graph, errors, warnings, dropped } = checked;
  return {
    valid: workflow !== null,
    errors,
    warnings,
    tasks: graph?.ids.length ?? 0,
    edges: graph?.edgeCount ?? 0,
    phases: graph === null ? [] : phases(graph),
    ...(dropped > 0 ? { dropped } : {}),
  };
}

function print(source: WorkflowSource, summary: Summary, io: Io): void {
  const colors = colorsFor(io.err, io.env);
  const problems = renderProblems(source, colors);
  if (problems !== '') io.err.write(`${problems}\n`);
  const { errors, warnings, tasks, edges, phases: levels, dropped = 0 } = summary;
  const warned = warnings.length > 0 ? `, ${plural(warnings.length, 'warning')}` : '';
  if (!summary.valid) {
    io.err.write(colors.bold(`${source.file}: ${plural(errors.length + dropped, 'error')}${warned}\n`));
    return;
  }
  const counts = `${plural(tasks, 'task')}, ${plural(edges, 'dependency', 'dependencies')}, ${plural(levels.length, 'phase')}`;
  io.out.write(`${colorsFor(io.out, io.env).green('✓')} ${source.file} is valid: ${counts}${warned}\n`);
}

function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
