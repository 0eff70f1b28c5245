/** The contract of a wire: how a provider is asked and how its answer is read, piece by piece. Sending and failing are `ask.ts`. */
import type { ModelAnswer, ModelRequest, ModelUsage } from '../model.ts';

/** Where a provider is and with which key. */
export interface Connection {
  /** The provider's name in the config. */
  readonly name: string;
  /** Without a slash at its end; the version is part of it. */
  readonly baseUrl: string;
  readonly key: string | null;
  /** The environment variable that the key is from. */
  readonly keyName: string | null;
  /** What an OpenAI-compatible server can be held to. */
  readonly structuredOutput: 'json_schema' | 'json_object' | 'none';
  /** Whether an OpenAI-compatible server is asked to count the tokens of a stream. */
  readonly isStreamCounted: boolean;
}

/** A request as it is sent. */
interface WireRequest {
  /** Added to the base URL. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** What a piece of an answer says; every part is optional, and later pieces add to earlier ones. */
export interface Piece {
  readonly text?: string;
  /** Replaces what was said before, key by key. */
  readonly usage?: Partial<ModelUsage>;
  readonly finish?: ModelAnswer['finish'];
  /** An error inside an answer that began well: a status, where the provider's word for it stands for one. */
  readonly error?: { readonly status: number; readonly body: unknown };
}

/** How one kind of provider is talked to. */
export interface Wire {
  request(connection: Connection, request: ModelRequest): WireRequest;
  /** Reads one event of the stream, or the whole answer of a server that does not stream. */
  read(data: unknown): Piece;
}

/** A JSON object; anything else reads as an empty one, so that a missing part is simply not there. */
export function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}

/** The items of a list; anything else has none. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A text, or nothing. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A count of tokens under its name, when the provider gave one. */
export function countOf<Name extends keyof ModelUsage>(
  name: Name,
  value: unknown,
): Partial<Record<Name, number>> {
  return typeof value === 'number' && value >= 0 ? ({ [name]: value } as Record<Name, number>) : {};
}
