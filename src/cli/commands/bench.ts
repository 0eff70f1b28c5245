/** `relay bench`: what Relay itself costs on this machine (SPEC S13.2). */
import { Option } from 'commander';
import { type BenchResult, measure, WORKLOADS, type Workload } from '../../app/bench.ts';
import { type BuildCommand, type CommonOptions, examples } from '../command.ts';
import { localConfig } from '../connect.ts';
import { printJson } from '../io.ts';
import { wholeNumber } from '../subcommand.ts';

interface BenchOptions extends CommonOptions {
  readonly workload: Workload;
  readonly tasks: number;
  readonly concurrency: number;
}

export const buildBench: BuildCommand = (command, { io }) => {
  command
    .addOption(
      new Option('--workload <shape>', 'what to run')
        .choices([...WORKLOADS])
        .default('fanout' satisfies Workload),
    )
    .option('--tasks <n>', 'tasks altogether', wholeNumber('--tasks', 1), 10_000)
    .option('--concurrency <n>', 'tasks at work at once', wholeNumber('--concurrency', 1), 256)
    .addHelpText(
      'after',
      `${examples([
        ['relay bench --workload fanout --tasks 10000', '1 → 10,000 → 1'],
        ['relay bench --workload chain --tasks 1000', 'one after the other: the cost of a hop'],
        ['relay bench --workload diamonds --tasks 8000 --json', '2,000 small runs'],
      ])}
The handler does nothing; the store is a temporary file unless --store names one. With --broker tasks
go through it.
`,
    )
    .action(async (options: BenchOptions) => {
      const { broker } = await localConfig(options, io);
      const { workload, tasks, concurrency, store } = options;
      const result = await measure({
        workload,
        tasks,
        concurrency,
        store,
        broker,
        cwd: io.cwd,
        env: io.env,
      });
      if (options.json === true) printJson(io, result);
      else io.out.write(render(result));
    });
};

function render({ workload, tasks, seconds, tasks_per_s, hop_ms, store }: BenchResult): string {
  return [
    `${workload}: ${tasks.toLocaleString('en')} tasks in ${seconds} s on ${store}`,
    `  ${tasks_per_s.toLocaleString('en')} tasks/s`,
    `  ${hop_ms.p50} ms a hop (p50), ${hop_ms.p99} ms (p99)`,
    '',
  ].join('\n');
}
