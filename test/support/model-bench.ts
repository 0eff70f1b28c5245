/** An engine whose `llm` tasks ask a server on loopback: claims, runs and settles one attempt at a time, on a clock that tests move. */
import { LLMock } from '@copilotkit/aimock';
import type { TaskFailure } from '../../src/domain/failure.ts';
import { llmWith } from '../../src/handlers/llm.ts';
import { createModels, type ModelSettings } from '../../src/models/registry.ts';
import type { RunRow, TaskRow } from '../../src/stores/rows.ts';
import { Attempt } from '../../src/worker/attempt.ts';
import { runAttempt } from '../../src/worker/run-attempt.ts';
import { STORES } from '../conformance/stores.ts';
import { Harness } from './harness.ts';

/** Keys that no real provider gave. */
export const KEYS = {
  OPENAI_API_KEY: 'sk-openai-0123456789abcdef',
  ANTHROPIC_API_KEY: 'sk-ant-0123456789abcdef',
  GOOGLE_GENERATIVE_AI_API_KEY: 'goog-0123456789abcdef',
} as const;

/** The built-in providers, all at one server. */
export function providersAt(url: string): ModelSettings['providers'] {
  return {
    openai: { base_url: `${url}/v1` },
    anthropic: { base_url: `${url}/v1` },
    google: { base_url: `${url}/v1beta` },
  };
}

/** A task after an attempt. */
export interface Settled {
  readonly task: TaskRow;
  readonly error: TaskFailure | null;
  /** What streamed into the log. */
  readonly tokens: readonly string[];
}

/** The engine, the server, and one attempt at a time. */
export class ModelBench {
  readonly harness: Harness;
  readonly mock: LLMock;
  readonly #url: string;
  #run_id = '';

  private constructor(harness: Harness, mock: LLMock) {
    this.harness = harness;
    this.mock = mock;
    this.#url = mock.url;
  }

  static async open(): Promise<ModelBench> {
    const mock = new LLMock({ port: 0 });
    await mock.start();
    const [store] = STORES;
    if (store === undefined) throw new Error('there is no store');
    return new ModelBench(await Harness.on(store), mock);
  }

  async close(): Promise<void> {
    await this.harness.close();
    await this.mock.stop();
  }

  /** Starts a run of one `llm` task called `ask`. */
  async start(
    config: Readonly<Record<string, unknown>>,
    rest: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    this.#run_id = await this.harness.start({ ask: { uses: 'llm', with: config, ...rest } });
  }

  /** Makes the attempt that is due; `meanwhile` happens while the model is asked and tells its tokens. */
  async attempt(
    meanwhile: (attempt: Attempt, tokens: readonly string[]) => Promise<void> = async () => {},
  ): Promise<Settled> {
    const { harness } = this;
    const { clock } = harness;
    const models = createModels({ providers: providersAt(this.#url), prices: {}, env: KEYS });
    const handler = llmWith(models);
    const tokens: string[] = [];
    const attempt = new Attempt(await harness.claimOne('ask'), clock.monotonic());
    const running = runAttempt(attempt, {
      handlers: new Map([[handler.name, handler as never]]),
      clock,
      env: KEYS,
      workdir: '/',
      redact: (text) => text,
      log: (_attempt, stream, text) => stream === 'token' && tokens.push(text),
    });
    await meanwhile(attempt, tokens);
    const settlement = await running;
    if (settlement !== null) await harness.settle(settlement);
    const task = await harness.task(this.#run_id, 'ask');
    return { task, error: task.error === null ? null : (JSON.parse(task.error) as TaskFailure), tokens };
  }

  run(): Promise<RunRow> {
    return this.harness.run(this.#run_id);
  }

  output(): Promise<unknown> {
    return this.harness.output(this.#run_id, 'ask');
  }

  /** Requests that reached the server. */
  get requests(): number {
    return this.mock.getRequests().length;
  }
}
