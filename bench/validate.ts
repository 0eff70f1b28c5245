/** How long the built command line takes from start to exit: its help, and a workflow at the size limit. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = process.cwd();
const TASKS = 10_000;
const ROUNDS = 5;

/** Median milliseconds of wall time, the start of Node included. */
export async function validateBench(): Promise<Record<string, number>> {
  // What does not compile must be seen; only the build's progress is kept out of the results.
  execFileSync(process.execPath, [join(ROOT, 'scripts', 'build.mjs')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const folder = mkdtempSync(join(tmpdir(), 'relay-bench-'));
  try {
    const yaml = join(folder, 'big.yaml');
    const json = join(folder, 'big.json');
    const tasks = Object.fromEntries(Array.from({ length: TASKS }, (_, index) => taskOf(index)));
    writeFileSync(yaml, toYaml(tasks));
    writeFileSync(json, JSON.stringify({ name: 'big', inputs: INPUTS, tasks }));
    return {
      node_start_ms: medianMs(['-e', '0']),
      help_ms: medianMs([MAIN, '--help']),
      validate_10k_yaml_ms: medianMs([MAIN, 'validate', yaml]),
      validate_10k_json_ms: medianMs([MAIN, 'validate', json]),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const MAIN = join(ROOT, 'dist', 'cli', 'main.js');
const INPUTS = { topic: { type: 'string', default: 'tides' } };

interface BenchTask {
  readonly uses: string;
  readonly needs: readonly string[];
  readonly with: { readonly value: string };
}

/** A chain in which every task also refers to the one ten before it. */
function taskOf(index: number): [string, BenchTask] {
  const before = index < 10 ? '' : ` {{ tasks.task_${index - 10}.output }}`;
  const value = `step ${index} of {{ inputs.topic | upper }}${before}`;
  return [
    `task_${index}`,
    { uses: 'transform', needs: index === 0 ? [] : [`task_${index - 1}`], with: { value } },
  ];
}

function toYaml(tasks: Readonly<Record<string, BenchTask>>): string {
  const blocks = Object.entries(tasks).map(
    ([id, task]) =>
      `  ${id}:\n    uses: ${task.uses}\n    needs: [${task.needs.join(', ')}]\n    with:\n      value: "${task.with.value}"\n`,
  );
  return `name: big\ninputs:\n  topic: { type: string, default: tides }\ntasks:\n${blocks.join('')}`;
}

function medianMs(args: readonly string[]): number {
  const times = Array.from({ length: ROUNDS }, () => {
    const start = performance.now();
    execFileSync(process.execPath, args, { stdio: 'ignore' });
    return performance.now() - start;
  });
  return times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0;
}
