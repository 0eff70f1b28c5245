/** The contract of a model provider: one request, one answer, errors with a class (SPEC S9.1). */
import type { Clock } from '../base/clock.ts';
import type { TraceContext } from '../base/trace.ts';

/** One turn of a conversation. */
export interface ModelMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

/** A request to a model. */
export interface ModelRequest {
  /** The model's name within its provider. */
  readonly model: string;
  readonly messages: readonly ModelMessage[];
  readonly params: {
    readonly max_tokens?: number;
    readonly temperature?: number;
    readonly top_p?: number;
    readonly stop?: readonly string[];
    readonly seed?: number;
  };
  /** JSON Schema of the wanted answer; a provider with structured output holds the model to it as far as it can. */
  readonly schema: unknown;
  readonly wantsJson: boolean;
  /** Which attempt of the task this is, from 1. */
  readonly attempt: number;
  readonly signal: AbortSignal;
  /** For `Retry-After` dates. */
  readonly clock: Clock;
  /** The span of the attempt; a provider is called as a child of it (SPEC S12.5). */
  readonly trace: TraceContext;
  readonly onToken: (text: string) => void;
}

/** What a call used, as the provider counts it. */
export interface ModelUsage {
  /** All input, cached tokens included. */
  readonly tokens_in: number;
  /** All output, what a model thought included. */
  readonly tokens_out: number;
  readonly tokens_cached?: number;
}

/** What a model answered. */
export interface ModelAnswer {
  readonly text: string;
  readonly usage: ModelUsage;
  /** `length`: the answer was cut at max_tokens. `filter`: the provider or the model refused. */
  readonly finish: 'stop' | 'length' | 'filter' | 'other';
}

/** A provider of models. Errors are thrown as AttemptFailure. */
export interface ModelProvider {
  readonly name: string;
  generate(request: ModelRequest): Promise<ModelAnswer>;
}
