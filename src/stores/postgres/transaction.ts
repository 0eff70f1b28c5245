/**
 * One transaction on one session. Statements that return nothing wait and travel with the next one that does, or with the
 * commit, so a transaction costs as many round trips as it has reads. Their order is kept; an error shows with the next read.
 */
import { invariant } from '../../base/invariant.ts';
import type { Command, Lists } from './batch.ts';
import { isDivisionByZero } from './postgres-errors.ts';
import { provingUpdate, type RowStatement } from './row-statements.ts';
import { RunLocks } from './run-locks.ts';
import type { List, RunMemory } from './run-memory.ts';
import type { Session } from './session.ts';
import { type Param, toParam, type Value } from './values.ts';

/** What a transaction is opened with. */
export interface TransactionOptions {
  readonly session: Session;
  readonly texts: ReadonlyMap<string, string>;
  readonly onStatement: (name: string) => void;
  readonly isWriter: boolean;
  /** What this process remembers of runs; a reader looks at the store alone. */
  readonly memory: RunMemory | null;
  /** Whether it may be started again because of locks; the last try waits instead. */
  readonly mayRestart: boolean;
}

interface Expected {
  readonly keys: readonly number[];
  readonly writers: readonly string[];
  readonly place: number;
}

const BEGIN_WRITE = 'begin isolation level read committed read write';
const BEGIN_READ = 'begin isolation level repeatable read read only';

const QUEUE_REMOVAL = /^(claimable|held|leases|timers|marks|outbox)\.remove$/;

/** The statements of a transaction on their way. */
export class Transaction {
  readonly isWriter: boolean;
  /** Rows that this transaction has read, each with the list it was made from. */
  readonly loaded = new Map<object, readonly unknown[]>();
  readonly locks: RunLocks;
  readonly memory: RunMemory | null;
  /** One of the tasks that were written, as it was written: it tells whether a commit has happened. */
  sample: { readonly key: number; readonly list: List } | null = null;
  readonly #options: TransactionOptions;
  /** Rows that it has taken out of queue tables. */
  removedRows = 0;
  #waiting: Command[];
  #isBegun = false;
  /** Runs that were taken for what is remembered of them, and where the statement that proves it stands among those that wait. */
  #expected: Expected | null = null;

  constructor(options: TransactionOptions) {
    this.#options = options;
    this.isWriter = options.isWriter;
    this.memory = options.memory;
    this.locks = new RunLocks(options.mayRestart);
    this.#waiting = [plain(options.isWriter ? BEGIN_WRITE : BEGIN_READ)];
  }

  /** A statement of the `.sql` files. */
  command(name: string, ...values: readonly Value[]): Command {
    const text = this.#options.texts.get(name);
    invariant(text !== undefined, `there is a statement ${name}`);
    this.#options.onStatement(name);
    return { name, text, params: values.map(toParam) };
  }

  /** Runs a statement whose answer nobody waits for. */
  later(name: string, ...values: readonly Value[]): void {
    const list = values.at(-1);
    if (QUEUE_REMOVAL.test(name) && Array.isArray(list)) this.removedRows += list.length;
    this.#waiting.push(this.command(name, ...values));
  }

  /** The same for a statement that was put together; `name` is for whoever counts statements. */
  laterBuilt(name: string, statement: RowStatement): void {
    this.#waiting.push(this.built(name, statement));
  }

  built(name: string, { text, params }: RowStatement): Command {
    this.#options.onStatement(name);
    return { name: this.#options.session.nameOf(text), text, params };
  }

  /** Called before the store is asked for something: what is not written yet would not be found. */
  beforeRead: () => void = () => {};

  /** Sends what waits and then these; the rows of these come back. */
  async read(...commands: readonly Command[]): Promise<readonly Lists[]> {
    this.beforeRead();
    return this.#readNow(commands);
  }

  /** Rows of a statement that looks at no row of ours. */
  async ask(name: string, ...values: readonly Value[]): Promise<Lists> {
    const [lists = []] = await this.#readNow([this.command(name, ...values)]);
    return lists;
  }

  async #readNow(commands: readonly Command[]): Promise<readonly Lists[]> {
    const all = [...this.#waiting, ...commands];
    this.#waiting = [];
    this.#isBegun = true;
    const results = await this.#send(all);
    return results.slice(results.length - commands.length);
  }

  /** Runs are taken for what is remembered of them: the next batch fails if they are not. */
  expect(keys: readonly number[], writers: readonly string[]): void {
    this.#expected = { keys, writers, place: this.#waiting.length };
    this.#waiting.push(this.command('runs.expect', keys, writers));
  }

  /** Writes a run; where it is the only one that is still to be proven, by the statement that proves it. */
  laterRun(key: number, statement: RowStatement): void {
    const { keys, writers: [writer] = [], place } = this.#expected ?? { keys: [], place: 0 };
    const isProof = keys.length === 1 && keys[0] === key && this.#waiting[place]?.name === 'runs.expect';
    if (isProof) this.#waiting[place] = this.built('runs.save', provingUpdate(statement, writer ?? ''));
    else this.laterBuilt('runs.save', statement);
  }

  async #send(commands: readonly Command[]): Promise<readonly Lists[]> {
    const expected = this.#expected;
    this.#expected = null;
    try {
      const results = await this.#options.session.send(commands);
      if (expected !== null) this.locks.xid = results[expected.place]?.[0]?.[0] as string;
      return results;
    } catch (error) {
      if (expected === null || !isDivisionByZero(error)) throw error;
      this.memory?.meetOthers();
      this.memory?.forget(expected.keys);
      throw this.locks.conflict();
    }
  }

  /** Rows of one statement as lists. */
  async lists(name: string, ...values: readonly Value[]): Promise<Lists> {
    const [lists = []] = await this.read(this.command(name, ...values));
    return lists;
  }

  /** Rows of one statement by column name. */
  async rows<Row>(name: string, ...values: readonly Value[]): Promise<Row[]> {
    const lists = await this.lists(name, ...values);
    const columns = this.#options.session.columnsOf(name);
    return lists.map(
      (list) => Object.fromEntries(columns.map((column, index) => [column, list[index]])) as Row,
    );
  }

  async one<Row>(name: string, ...values: readonly Value[]): Promise<Row | null> {
    return (await this.rows<Row>(name, ...values))[0] ?? null;
  }

  /** Makes everything durable. A transaction that has done nothing costs nothing. */
  async commit(): Promise<void> {
    if (!this.#isBegun && this.#waiting.length === 1) return;
    await this.read(plain('commit'));
  }

  /** Undoes everything; what was still waiting is dropped. */
  async rollback(): Promise<void> {
    this.#waiting = [];
    if (this.#isBegun) await this.#options.session.send([plain('rollback')]);
  }
}

/** A statement without parameters, under its own text as name. */
function plain(text: string): Command {
  const params: readonly Param[] = [];
  return { name: text, text, params };
}
