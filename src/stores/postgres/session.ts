/** One connection and the statements it has prepared. What a session is set to is sent before its first batch. */
import type { ClientBase } from 'pg';
import { Batch, type Command, type Known, type Lists } from './batch.ts';

/** Statements put together from changed columns that one connection keeps prepared; others are parsed each time. */
const BUILT_MAX = 400;

/** What a session is opened with. */
export interface SessionOptions {
  readonly settings: Readonly<Record<string, string>>;
  /** How long a batch is waited for before the connection counts as lost. */
  readonly answerTimeoutMs: number;
}

/** A connection that takes batches. */
export class Session {
  readonly #client: ClientBase;
  readonly #known: Known = { prepared: new Map(), doubtful: new Set() };
  readonly #options: SessionOptions;
  readonly #built = new Map<string, string>();
  #isSet = false;

  constructor(client: ClientBase, options: SessionOptions) {
    this.#client = client;
    this.#options = options;
  }

  /** The server's process behind this connection. */
  get processId(): number {
    return (this.#client as ClientBase & { readonly processID: number }).processID;
  }

  /** Runs statements in one round trip; the rows of each come back in order. */
  async send(commands: readonly Command[]): Promise<readonly Lists[]> {
    if (!this.#isSet) await this.#send([settingsCommand(this.#options.settings)]);
    this.#isSet = true;
    return this.#send(commands);
  }

  async #send(commands: readonly Command[]): Promise<readonly Lists[]> {
    const batch = new Batch(commands, this.#known);
    const timer = setTimeout(() => batch.cut(), this.#options.answerTimeoutMs);
    this.#client.query(batch);
    try {
      return await batch.done;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The column names of a statement that has run. */
  columnsOf(name: string): readonly string[] {
    return this.#known.prepared.get(name)?.columns ?? [];
  }

  /** The name under which a statement that was put together is prepared; empty when there are too many. */
  nameOf(text: string): string {
    const known = this.#built.get(text);
    if (known !== undefined) return known;
    const name = this.#built.size < BUILT_MAX ? `built.${this.#built.size}` : '';
    if (name !== '') this.#built.set(text, name);
    return name;
  }
}

function settingsCommand(settings: Readonly<Record<string, string>>): Command {
  const names = Object.keys(settings);
  const calls = names.map((_, index) => `set_config($${index * 2 + 1}, $${index * 2 + 2}, false)`);
  return {
    name: '',
    text: `select ${calls.join(', ')}`,
    params: names.flatMap((name) => [name, settings[name] ?? '']),
  };
}
