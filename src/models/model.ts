/** The contract of a model provider: one request, one answer, errors with a class (SPEC S9.1). */

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
  /** JSON Schema of the wanted answer, for models that have structured output. */
  readonly schema: unknown;
  readonly wantsJson: boolean;
  /** Which attempt of the task this is, from 1. */
  readonly attempt: number;
  readonly signal: AbortSignal;
  readonly onToken: (text: string) => void;
}

/** What a model answered. */
export interface ModelAnswer {
  readonly text: string;
  /** Present when the provider itself guarantees JSON. */
  readonly json?: unknown;
  readonly usage: {
    readonly tokens_in: number;
    readonly tokens_out: number;
    readonly tokens_cached?: number;
    /** What the call cost; null when the price is not known. */
    readonly cost_usd?: number | null;
  };
  /** `length`: the answer was cut at max_tokens. */
  readonly finish: 'stop' | 'length' | 'filter' | 'other';
}

/** A provider of models. Errors are thrown as AttemptFailure. */
export interface ModelProvider {
  readonly name: string;
  generate(request: ModelRequest): Promise<ModelAnswer>;
}
