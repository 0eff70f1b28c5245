/** A handler's context without a worker: what the handler says is written down. */
import { tmpdir } from 'node:os';
import { systemClock } from '../../src/base/clock.ts';
import type { Handler, HandlerContext } from '../../src/handlers/handler.ts';
import type { NewArtifact, Usage } from '../../src/worker/work-source.ts';

/** What a handler said. */
export interface Said {
  readonly logs: { readonly text: string; readonly stream: string }[];
  readonly artifacts: NewArtifact[];
  readonly usage: Usage[];
  readonly progress: (readonly [number, string | undefined])[];
  readonly checkpoints: unknown[];
}

/** The text of one stream. */
export function logged(said: Said, stream: string): string {
  return said.logs
    .filter((log) => log.stream === stream)
    .map(({ text }) => text)
    .join('');
}

/** A context for a config, and the record of what is said in it. */
export function makeContext<Config>(
  config: Config,
  given: Partial<HandlerContext<Config>> = {},
): { context: HandlerContext<Config>; said: Said } {
  const said: Said = { logs: [], artifacts: [], usage: [], progress: [], checkpoints: [] };
  const context: HandlerContext<Config> = {
    config,
    task: { run_id: 'run-1', task_run_id: 'task-run-1', task_id: 'task', map_index: null, attempt: 1 },
    output: null,
    signal: new AbortController().signal,
    workdir: tmpdir(),
    env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
    clock: systemClock,
    trace: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' },
    lastCheckpoint: undefined,
    answers: {},
    redact: (text) => text,
    log: (text, stream = 'log') => said.logs.push({ text, stream }),
    progress: (fraction, message) => said.progress.push([fraction, message]),
    checkpoint: (value) => said.checkpoints.push(value),
    usage: (usage) => said.usage.push(usage),
    artifact: (artifact) => said.artifacts.push(artifact),
    ask: (question) => {
      throw new TypeError(`asked ${question.key}`);
    },
    ...given,
  };
  return { context, said };
}

/** Runs a handler as a worker would: config checked first. */
export async function runHandler(
  handler: Handler,
  config: unknown,
  given: Partial<HandlerContext<unknown>> = {},
): Promise<{ output: unknown; said: Said }> {
  const { context, said } = makeContext(handler.config.parse(config), given);
  return { output: await handler.run(context), said };
}
