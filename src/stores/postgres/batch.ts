/**
 * Several statements in one round trip: all are sent at once with a single sync behind them, and Postgres answers them in order.
 * The first that fails ends the batch; what stands behind it is not run. Driven by `pg`'s client like any of its own queries.
 */
import type { Connection, Submittable } from 'pg';
import { decoderOf, type Param } from './values.ts';

/** A statement with its parameters. A named one is prepared once per connection. */
export interface Command {
  readonly name: string;
  readonly text: string;
  readonly params: readonly Param[];
}

/** Rows as lists, in the order of the columns. */
export type Lists = readonly (readonly unknown[])[];

/** What a connection knows about a prepared statement. */
export interface Prepared {
  readonly columns: readonly string[];
  readonly decoders: readonly (((text: string) => unknown) | null)[];
}

/** Statements that a connection has prepared, and those it may have: a failed batch leaves them in doubt. */
export interface Known {
  readonly prepared: Map<string, Prepared>;
  readonly doubtful: Set<string>;
}

const NOTHING: Prepared = { columns: [], decoders: [] };

interface Field {
  readonly name: string;
  readonly dataTypeID: number;
}

/** One round trip. */
export class Batch implements Submittable {
  readonly done: Promise<readonly Lists[]>;
  readonly #commands: readonly Command[];
  readonly #known: Known;
  readonly #results: unknown[][][] = [];
  readonly #described = new Map<number, Prepared>();
  #rows: unknown[][] = [];
  #stream: Connection['stream'] | null = null;
  #resolve: (results: readonly Lists[]) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(commands: readonly Command[], known: Known) {
    this.#commands = commands;
    this.#known = known;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Gives up on the connection: no answer has come for too long. */
  cut(): void {
    // Seen by the driver as a lost connection, which tells whoever uses it.
    this.#stream?.destroy(new TypeError('timeout expired: no answer from the server'));
  }

  submit(connection: Connection): void {
    this.#stream = connection.stream;
    connection.stream.cork();
    const inBatch = new Set<string>();
    for (const { name, text, params } of this.#commands) {
      const isKnown = name !== '' && (this.#known.prepared.has(name) || inBatch.has(name));
      if (!isKnown) {
        if (this.#known.doubtful.has(name)) connection.close({ type: 'S', name }, true);
        connection.parse({ name, text, types: [] }, true);
        inBatch.add(name);
      }
      connection.bind({ portal: '', statement: name, values: params as string[], binary: '' }, true);
      if (!isKnown) connection.describe({ type: 'P', name: '' }, true);
      connection.execute({ portal: '', rows: '' }, true);
    }
    connection.sync();
    connection.stream.uncork();
  }

  handleRowDescription({ fields }: { fields: readonly Field[] }): void {
    this.#described.set(this.#results.length, {
      columns: fields.map(({ name }) => name),
      decoders: fields.map(({ dataTypeID }) => decoderOf(dataTypeID)),
    });
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    const { decoders } = this.#shape();
    const row: unknown[] = fields;
    for (const [index, text] of fields.entries()) {
      const decode = decoders[index];
      if (text !== null && decode) row[index] = decode(text);
    }
    this.#rows.push(row);
  }

  handleCommandComplete(): void {
    const { name } = this.#command();
    if (name !== '' && !this.#known.prepared.has(name)) {
      this.#known.prepared.set(name, this.#described.get(this.#results.length) ?? NOTHING);
      this.#known.doubtful.delete(name);
    }
    this.#results.push(this.#rows);
    this.#rows = [];
  }

  handleEmptyQuery(): void {
    this.handleCommandComplete();
  }

  handleError(error: unknown): void {
    // Everything was answered; a goodbye behind it takes nothing back.
    if (this.#results.length === this.#commands.length) {
      this.#resolve(this.#results);
      return;
    }
    for (const { name } of this.#commands)
      if (!this.#known.prepared.has(name)) this.#known.doubtful.add(name);
    this.#reject(error);
  }

  handleReadyForQuery(): void {
    this.#resolve(this.#results);
  }

  #command(): Command {
    return this.#commands[this.#results.length] as Command;
  }

  #shape(): Prepared {
    const described = this.#described.get(this.#results.length);
    return described ?? this.#known.prepared.get(this.#command().name) ?? NOTHING;
  }
}
