/** `relay graph FILE`: a picture of a workflow in four formats. */
import { Option } from 'commander';
import { requireWorkflow } from '../../definition/load.ts';
import { type BuildCommand, type CommonOptions, examples } from '../command.ts';
import { colorsFor, printJson } from '../io.ts';
import { GRAPH_FORMATS, type GraphFormat, graphData, renderGraph } from '../render/graph.ts';
import { renderProblems } from '../render/problems.ts';
import { loadWorkflowSource } from '../workflow-source.ts';

export const buildGraphCommand: BuildCommand = (command, { io, exit }) => {
  command
    .argument('<file>', 'workflow in YAML or JSON; - is stdin')
    .addOption(
      new Option('-f, --format <format>', 'how it is drawn')
        .choices([...GRAPH_FORMATS, 'json'])
        .default('ascii'),
    )
    .addHelpText(
      'after',
      examples([
        ['relay graph flow.yaml', 'phases and arrows in the terminal'],
        ['relay graph flow.yaml -f mermaid', 'for Markdown pages'],
        ['relay graph flow.yaml -f dot | dot -Tsvg', 'for Graphviz'],
        ['relay graph flow.yaml --json', 'nodes, edges and phases for programs'],
      ]),
    )
    .action(async (file: string, options: CommonOptions & { format: GraphFormat | 'json' }) => {
      const source = await loadWorkflowSource(file, options, io);
      const format = options.json === true ? 'json' : options.format;
      if (format === 'json') printJson(io, graphData(requireWorkflow(source.checked)));
      else if (source.checked.workflow !== null) io.out.write(renderGraph(source.checked.workflow, format));
      else {
        io.err.write(renderProblems(source, colorsFor(io.err, io.env)));
        exit(2);
      }
    });
};
