/** The handlers of a process with settings: built-in ones, `llm` with the models of the config and the keys of the environment, and its own. */
import type { HandlerCatalog } from '../definition/handler-spec.ts';
import type { Handler } from '../handlers/handler.ts';
import { llmWith } from '../handlers/llm.ts';
import { BUILT_IN_HANDLERS, WORKER_HANDLERS } from '../handlers/registry.ts';
import { createModels, type ModelSettings } from '../models/registry.ts';

/** What handlers are configured with. */
export interface HandlerSettings {
  /** Providers and prices of the config; none by default. */
  readonly models?: Omit<ModelSettings, 'env'> | undefined;
  readonly env: ModelSettings['env'];
  /** Handlers of the user, beside the built-in ones or in their place. */
  readonly own?: readonly Handler[] | undefined;
}

/** What came of it. */
export interface ConfiguredHandlers {
  /** What a definition may use. */
  readonly catalog: HandlerCatalog;
  /** What a worker runs. */
  readonly forWorker: ReadonlyMap<string, Handler>;
  /** Keys of model providers, to be masked everywhere. */
  readonly keys: readonly string[];
}

/** Puts the handlers together. Nothing is loaded or connected yet. */
export function configureHandlers(settings: HandlerSettings): ConfiguredHandlers {
  const { models: { providers, prices } = { providers: {}, prices: {} }, env, own = [] } = settings;
  const models = createModels({ providers, prices, env });
  const added = [llmWith(models) as Handler, ...own].map((handler) => [handler.name, handler] as const);
  return {
    catalog: new Map([...BUILT_IN_HANDLERS, ...added]),
    forWorker: new Map([...WORKER_HANDLERS, ...added]),
    keys: models.keys,
  };
}
