/** Relay inside another TypeScript program (SPEC S13.5): open it, run workflows, await results. */
import { cwd, env } from 'node:process';
import { RelayError } from '../base/errors.ts';
import type { LimitDefinition } from '../domain/limits.ts';
import { isTerminal } from '../domain/states.ts';
import type { Handler } from '../handlers/handler.ts';
import type { RelayApi, RunView } from './api.ts';
import type { HandlerSettings } from './configured-handlers.ts';
import { limitsConfig, toLimitDefinitions } from './limit-config.ts';
import { LocalRelay } from './local-relay.ts';

/** How an embedded Relay is opened. Everything has a default. */
export interface OpenOptions {
  /** `sqlite:PATH`; by default `.relay/relay.db`. */
  readonly store?: string;
  readonly data?: string;
  readonly concurrency?: number;
  /** Handlers of your own, beside the built-in ones. */
  readonly handlers?: readonly Handler[];
  /** `providers` and `prices`, as in the config file; keys come from the environment. */
  readonly models?: HandlerSettings['models'];
  /** Named limits, as in the config file. */
  readonly limits?: Readonly<Record<string, LimitDefinition>>;
}

/** A run that was started here. */
export interface RunHandle {
  readonly id: string;
  /** Resolves when the run has ended, whatever its status; a run that waits for a person is waited for. */
  result(): Promise<RunView>;
  cancel(): Promise<void>;
}

/** An open Relay with its engine and a worker running. */
export interface Relay {
  readonly api: RelayApi;
  run(
    workflow: unknown,
    options?: { readonly inputs?: Readonly<Record<string, unknown>>; readonly idempotency_key?: string },
  ): Promise<RunHandle>;
  close(): Promise<void>;
}

const CONCURRENCY = 16;

/** Opens Relay in this process. Runs that an earlier process left unfinished are carried on. */
export async function openRelay(options: OpenOptions = {}): Promise<Relay> {
  const { data = '.relay', store, concurrency = CONCURRENCY, handlers, models, limits } = options;
  const local = await LocalRelay.open({
    data,
    store,
    cwd: cwd(),
    env,
    log: 'warn',
    by: 'embedded',
    writeLog: (line) => process.stderr.write(line),
    models,
    limits: toLimitDefinitions(limitsConfig.optional().parse(limits)),
    ...(handlers === undefined ? {} : { handlers }),
  });
  await local.startEngine();
  const worker = await local.startWorker({ concurrency });
  const closing = new AbortController();
  return {
    api: local.api,
    run: async (workflow, { inputs = {}, idempotency_key } = {}) => {
      const { id } = await local.api.runs.start({ definition: workflow, inputs, idempotency_key });
      return {
        id,
        result: () => untilFinished(local, id, closing.signal),
        cancel: async () => void (await local.api.runs.cancel(id)),
      };
    },
    close: async () => {
      closing.abort();
      await worker.stop();
      await local.close();
    },
  };
}

/** Waits for the end of a run without polling. */
async function untilFinished({ api, engine }: LocalRelay, id: string, signal: AbortSignal): Promise<RunView> {
  for (;;) {
    const mark = engine.finished.mark();
    const run = await api.runs.get(id);
    if (isTerminal(run.status)) return run;
    if (signal.aborted) throw new RelayError('STORE_UNAVAILABLE', `Relay was closed before run ${id} ended`);
    await engine.finished.after(mark, signal);
  }
}
