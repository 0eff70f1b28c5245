/**
 * The embedded store: one SQLite file, write-ahead log, synchronous FULL. One connection writes, one reads, so that a reader
 * never sees half a transaction. Transactions of this process queue up here; other processes are waited for.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../base/clock.ts';
import { RelayError } from '../../base/errors.ts';
import { invariant } from '../../base/invariant.ts';
import { readStatements } from '../statements.ts';
import type { Store, Tx } from '../store.ts';
import type { Statements } from './access.ts';
import { ChildCache } from './child-cache.ts';
import { type Driver, openDriver, type SqlRow, type SqlValue, type Statement } from './driver.ts';
import { prepareFolder } from './file-system.ts';
import { migrate } from './migrate.ts';
import { RowCache } from './row-cache.ts';
import { isBusy, toStoreError } from './sqlite-errors.ts';
import { createTx } from './sqlite-tx.ts';

/** How long one call waits inside SQLite; short, because it holds up this process. */
const BUSY_BLOCK_MS = 100;
/** How long a transaction waits for other processes altogether. */
const BUSY_WAIT_MS = 60_000;

/** How often a listener looks for commits of other processes. */
const LISTEN_MS = 25;

/** What a store is opened with. */
export interface SqliteOptions {
  readonly path: string;
  /** Called before every statement of a write transaction, and with `begin` and `commit`; tests stop the world there. */
  readonly onStatement?: (name: string) => void;
}

/** A store in one SQLite file. */
export class SqliteStore implements Store {
  readonly description: string;
  /** Processes on one file are on one machine, and share its clock. */
  readonly clock = systemClock;
  readonly #path: string;
  readonly #writer: Driver;
  #reader: Connection | null = null;
  readonly #writing: Connection;
  readonly #onStatement: (name: string) => void;
  #lastWrite: Promise<unknown> = Promise.resolve();
  #lastRead: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  #seenVersion = -1;
  #versionStatement: Statement | null = null;

  constructor({ path, onStatement }: SqliteOptions) {
    this.#path = path;
    this.description = `sqlite:${path}`;
    this.#onStatement = onStatement ?? (() => {});
    prepareFolder(path);
    this.#writer = this.#guard(() => {
      const driver = openDriver(path);
      driver.exec(`pragma busy_timeout = ${BUSY_BLOCK_MS}`);
      return driver;
    });
    this.#writing = new Connection(this.#writer, { onStatement: this.#onStatement, isWriter: true });
  }

  async migrate(): Promise<{ applied: readonly string[] }> {
    return this.#whenFree(() => {
      this.#writer.exec('pragma journal_mode = wal');
      this.#writer.exec('pragma synchronous = full');
      this.#writer.exec('pragma wal_autocheckpoint = 4000');
      this.#writer.exec('pragma cache_size = -65536');
      return migrate(this.#writer);
    });
  }

  write<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const mine = this.#lastWrite.then(() => this.#transaction(work));
    this.#lastWrite = mine.catch(() => {});
    return mine;
  }

  read<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const mine = this.#lastRead.then(() => this.#view(work));
    this.#lastRead = mine.catch(() => {});
    return mine;
  }

  async changeMark(): Promise<number> {
    return this.#dataVersion();
  }

  /** Other processes see every commit by themselves. */
  announce(): void {}

  listen(onAnnounced: () => void): () => Promise<void> {
    let seen = this.#dataVersion();
    const timer = setInterval(() => {
      if (this.#isClosed || this.#dataVersion() === seen) return;
      seen = this.#dataVersion();
      onAnnounced();
    }, LISTEN_MS).unref();
    return async () => clearInterval(timer);
  }

  /** There is one writer to a file; a second would only wait for the first. */
  sibling(): Store {
    return this;
  }

  async backup(path: string): Promise<void> {
    // A connection of its own: a copy counts as a write, which the reader may not do, and must not hold up the writer.
    await this.#whenFree(() => {
      const driver = openDriver(this.#path);
      try {
        driver.prepare('vacuum into ?').run(path);
      } finally {
        driver.close();
      }
    });
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.allSettled([this.#lastWrite, this.#lastRead]);
    this.#reader?.driver.close();
    this.#writer.close();
  }

  async #transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new RelayError('STORE_UNAVAILABLE', `${this.description} is closed`);
    await this.#whenFree(() => {
      this.#onStatement('begin');
      this.#writer.exec('begin immediate');
    });
    let isCommitted = false;
    try {
      this.#noticeOthers();
      const result = await work(this.#writing.tx);
      this.#onStatement('commit');
      this.#writer.exec('commit');
      isCommitted = true;
      return result;
    } catch (error) {
      this.#rollback();
      throw toStoreError(error, this.#path);
    } finally {
      this.#writing.end(isCommitted);
    }
  }

  /** With the write lock held, nobody else can commit any more; what others did before makes our memory stale. */
  #noticeOthers(): void {
    const version = this.#dataVersion();
    if (version !== this.#seenVersion) this.#writing.forget();
    this.#seenVersion = version;
  }

  /** Changes with every commit of another connection, not with our own. */
  #dataVersion(): number {
    this.#versionStatement ??= this.#writer.prepare('pragma data_version');
    return Number(this.#versionStatement.value() ?? 0);
  }

  #rollback(): void {
    try {
      this.#writer.exec('rollback');
    } catch {
      // SQLite has rolled back by itself (disk full, I/O error); the first error is the one to tell.
    }
  }

  async #view<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new RelayError('STORE_UNAVAILABLE', `${this.description} is closed`);
    const connection = this.#readerConnection();
    const { driver, tx } = connection;
    await this.#whenFree(() => beginView(driver));
    try {
      return await work(tx);
    } catch (error) {
      throw toStoreError(error, this.#path);
    } finally {
      connection.end(false);
      driver.exec('commit');
    }
  }

  /** Opened at the first read: a file that was never migrated has nothing to read. */
  #readerConnection(): Connection {
    this.#reader ??= this.#guard(() => {
      const driver = openDriver(this.#path);
      driver.exec(`pragma busy_timeout = ${BUSY_BLOCK_MS}`);
      driver.exec('pragma query_only = on');
      return new Connection(driver, { onStatement: () => {}, isWriter: false });
    });
    return this.#reader;
  }

  #guard<T>(open: () => T): T {
    try {
      return open();
    } catch (error) {
      throw toStoreError(error, this.#path);
    }
  }

  /** Repeats an action until no other process is in the way; between tries this process goes on with other things. */
  async #whenFree<T>(action: () => T): Promise<T> {
    for (let waitedMs = 0, pauseMs = 2; ; pauseMs = Math.min(pauseMs * 2, 50)) {
      try {
        return action();
      } catch (error) {
        if (!isBusy(error) || waitedMs > BUSY_WAIT_MS) throw toStoreError(error, this.#path);
        waitedMs += BUSY_BLOCK_MS + pauseMs;
        await delay(pauseMs);
      }
    }
  }
}

/** Takes the snapshot at once: while another process opens or closes the file, even a reader may have to wait. */
function beginView(driver: Driver): void {
  driver.exec('begin');
  try {
    driver.exec('select 1 from sqlite_schema limit 1');
  } catch (error) {
    driver.exec('rollback');
    throw error;
  }
}

/** A driver with its prepared statements and the operations over them. */
class Connection implements Statements {
  readonly driver: Driver;
  readonly tx: Tx;
  readonly caches: Statements['caches'];
  readonly #remembered: readonly (RowCache | ChildCache)[];
  readonly #texts = readStatements('sqlite');
  readonly #prepared = new Map<string, Statement>();
  readonly #onStatement: (name: string) => void;

  constructor(driver: Driver, options: { onStatement: (name: string) => void; isWriter: boolean }) {
    this.driver = driver;
    this.#onStatement = options.onStatement;
    this.caches = options.isWriter
      ? { runs: new RowCache(), task_runs: new RowCache(), children: new ChildCache() }
      : null;
    this.#remembered = Object.values(this.caches ?? {});
    this.tx = createTx(this);
  }

  /** The transaction has ended. */
  end(isCommitted: boolean): void {
    for (const cache of this.#remembered) cache.end(isCommitted);
  }

  forget(): void {
    for (const cache of this.#remembered) cache.clear();
  }

  all(name: string, ...params: SqlValue[]): SqlRow[] {
    return this.#statement(name).all(...params);
  }

  value(name: string, ...params: SqlValue[]): SqlValue | undefined {
    return this.#statement(name).value(...params);
  }

  run(name: string, ...params: SqlValue[]): void {
    this.#statement(name).run(...params);
  }

  runText(name: string, sql: string, params: readonly SqlValue[]): void {
    this.#onStatement(name);
    this.#prepare(sql, sql).run(...params);
  }

  #statement(name: string): Statement {
    this.#onStatement(name);
    return this.#prepared.get(name) ?? this.#prepare(name, this.#textOf(name));
  }

  #textOf(name: string): string {
    const text = this.#texts.get(name);
    invariant(text !== undefined, `there is a statement ${name}`);
    return text;
  }

  #prepare(name: string, sql: string): Statement {
    let statement = this.#prepared.get(name);
    if (statement === undefined) {
      statement = this.driver.prepare(sql);
      this.#prepared.set(name, statement);
    }
    return statement;
  }
}
