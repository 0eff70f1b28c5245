/** What a route of the API is: one value that the server serves, the client calls and the OpenAPI page describes. */
import { z } from 'zod';

/** What a token may do: look, act on runs, work on tasks, manage tokens. `admin` may do everything. */
export const SCOPES = ['read', 'operate', 'worker', 'admin'] as const;
/** One right of a token. */
export type Scope = (typeof SCOPES)[number];

type Fields = z.ZodObject;
/** A route that takes no fields in one of its places. */
export type NoFields = z.ZodObject<Record<never, never>, z.core.$strict>;

/** What a route answers with: JSON of a shape, or bytes. */
export type Answer = z.ZodType | 'bytes';

/** One call of the API. Paths are below `/api/v1`, with `:name` for parameters. */
export interface Route<
  Params extends Fields = Fields,
  Query extends Fields = Fields,
  Body extends Fields = Fields,
  Response extends Answer = Answer,
> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly scope: Scope;
  readonly summary: string;
  readonly params: Params;
  readonly query: Query;
  /** A body of JSON; `GET` and `DELETE` have none. */
  readonly body: Body;
  /** The body is bytes instead. */
  readonly takesBytes: boolean;
  readonly bodyBytesMax: number;
  readonly response: Response;
  /** With `Accept: text/event-stream` the same items come as server-sent events. */
  readonly streams: boolean;
}

const BODY_BYTES_MAX = 8 * 1024 * 1024;
const nothing: NoFields = z.strictObject({});

interface Parts<Params extends Fields, Query extends Fields, Body extends Fields, Response extends Answer>
  extends Pick<Route, 'method' | 'path' | 'scope' | 'summary'> {
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  readonly takesBytes?: true;
  readonly bodyBytesMax?: number;
  readonly response: Response;
  readonly streams?: true;
}

/** A route with everything filled in. */
export function route<
  Response extends Answer,
  Params extends Fields = NoFields,
  Query extends Fields = NoFields,
  Body extends Fields = NoFields,
>(parts: Parts<Params, Query, Body, Response>): Route<Params, Query, Body, Response> {
  return Object.freeze({
    ...parts,
    params: parts.params ?? (nothing as unknown as Params),
    query: parts.query ?? (nothing as unknown as Query),
    body: parts.body ?? (nothing as unknown as Body),
    takesBytes: parts.takesBytes ?? false,
    bodyBytesMax: parts.bodyBytesMax ?? BODY_BYTES_MAX,
    streams: parts.streams ?? false,
  });
}

/** A value as it is read: nobody changes what came over the wire. */
export type Immutable<T> = T extends readonly (infer Item)[]
  ? readonly Immutable<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Immutable<T[Key]> }
    : T;

/** The type of a schema, for reading. */
export type Wire<Schema extends z.ZodType> = Immutable<z.output<Schema>>;
