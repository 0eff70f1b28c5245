/**
 * The store for several processes: one Postgres database. One connection writes, a few read; transactions of this process queue
 * up here, those of others are ordered by the locks of their runs (docs/decisions/0006). A transaction may be done again from the
 * start; when the connection is lost around a commit, Postgres is asked afterwards whether it happened.
 */
import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Clock, systemClock } from '../../base/clock.ts';
import { RelayError } from '../../base/errors.ts';
import { readStatements } from '../statements.ts';
import type { Store, Tx } from '../store.ts';
import { Access } from './access.ts';
import { Announcements } from './announcements.ts';
import type { Command } from './batch.ts';
import { Connections } from './connections.ts';
import { DatabaseClock } from './database-clock.ts';
import { askAfterNumber, askAfterWritten } from './doubt.ts';
import { migrate } from './migrate.ts';
import { isConnectionLost, isToldByServer, isWorthRepeating, toStoreError } from './postgres-errors.ts';
import { createTx } from './postgres-tx.ts';
import { QueueHygiene } from './queue-hygiene.ts';
import { LockConflict } from './run-locks.ts';
import { RunMemory } from './run-memory.ts';
import type { Session } from './session.ts';
import { Transaction } from './transaction.ts';

/** How often a transaction starts again because of locks before it just waits, and because of anything else. */
const RESTARTS_MAX = 20;
const REPEATS_MAX = 5;
const REPEAT_PAUSE_MAX_MS = 20;
/** How long a commit in doubt is asked after. */
const DOUBT_MS = 5_000;
const DOUBT_PAUSE_MS = 50;

const LOOK: Command = {
  name: 'look',
  text: 'select pg_current_snapshot()::text, extract(epoch from clock_timestamp())::float8 * 1000',
  params: [],
};

/** What a store is opened with. */
export interface PostgresOptions {
  readonly url: string;
  /** Called before every statement of a write transaction, and with `begin` and `commit`; tests stop the world there. */
  readonly onStatement?: (name: string) => void;
  /** The machine's clocks; tests set them. */
  readonly clock?: Clock;
  /** How long an answer is waited for before the connection counts as lost. */
  readonly answerTimeoutMs?: number;
}

/** What a transaction locks before it begins. */
interface FirstLocks {
  readonly keys: readonly number[];
  readonly limits: readonly string[];
}

/** A store in one Postgres database. */
export class PostgresStore implements Store {
  readonly description: string;
  readonly clock: DatabaseClock;
  readonly #connections: Connections;
  readonly #hygiene: QueueHygiene;
  readonly #announcements: Announcements;
  readonly #url: string;
  readonly #texts = readStatements('postgres');
  readonly #queues = new Map<string, number>();
  readonly #memory = new RunMemory();
  readonly #onStatement: (name: string) => void;
  readonly #reads = new Set<Promise<unknown>>();
  #lastWrite: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  #snapshot = '';
  #changes = 0;

  constructor({ url, onStatement, clock, answerTimeoutMs }: PostgresOptions) {
    this.description = describe(url);
    this.clock = new DatabaseClock(clock ?? systemClock);
    this.#url = url;
    this.#onStatement = onStatement ?? (() => {});
    this.#connections = new Connections(url, answerTimeoutMs);
    this.#hygiene = new QueueHygiene(this.#connections);
    this.#announcements = new Announcements(this.#connections, { connectionString: url, keepAlive: true });
  }

  async migrate(): Promise<{ applied: readonly string[] }> {
    const migrated = await this.#told(() => this.#connections.withClient(migrate));
    await this.#look();
    return migrated;
  }

  write<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const mine = this.#lastWrite.then(() => this.#told(() => this.#transaction(work)));
    this.#lastWrite = mine.catch(() => {});
    return mine;
  }

  read<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const mine = this.#told(() => this.#connections.withReader((session) => this.#view(session, work)));
    this.#reads.add(mine);
    return mine.finally(() => this.#reads.delete(mine));
  }

  /** Postgres numbers transactions, and the picture of which are over changes with every commit of anybody. */
  async changeMark(): Promise<number> {
    const snapshot = await this.#look();
    if (snapshot !== this.#snapshot) this.#changes += 1;
    this.#snapshot = snapshot;
    return this.#changes;
  }

  /** Asks for the picture of transactions, and sets the clock by the way. */
  #look(): Promise<string> {
    return this.#told(() =>
      this.#connections.withReader(async (session) => {
        const askedAt = this.clock.monotonic();
        const [[[snapshot, now] = []] = []] = await session.send([LOOK]);
        this.clock.set(now as number, askedAt);
        return snapshot as string;
      }),
    );
  }

  announce(): void {
    this.#announcements.announce();
  }

  listen(onAnnounced: () => void): () => Promise<void> {
    return this.#announcements.listen(onAnnounced);
  }

  sibling(): Store {
    return new PostgresStore({ url: this.#url });
  }

  async backup(): Promise<void> {
    throw new RelayError('USAGE', `${this.description} is not a file that can be copied`, {
      hint: 'Use pg_dump, or the backups of your Postgres service.',
    });
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.allSettled([this.#lastWrite, ...this.#reads]);
    await this.#hygiene.stop();
    await this.#announcements.stop();
    await this.#connections.close();
  }

  /** Runs an action and tells its errors in the words of the error table. */
  async #told<T>(action: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new RelayError('STORE_UNAVAILABLE', `${this.description} is closed`);
    try {
      return await action();
    } catch (error) {
      throw toStoreError(error, this.description);
    }
  }

  async #transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    let firstLocks: FirstLocks = { keys: [], limits: [] };
    let repeats = 0;
    for (let restarts = 0; ; ) {
      try {
        return await this.#attempt(work, { firstLocks, mayRestart: restarts < RESTARTS_MAX });
      } catch (error) {
        if (error instanceof LockConflict) {
          firstLocks = error;
          restarts += 1;
        } else if (isWorthRepeating(error) && repeats < REPEATS_MAX) repeats += 1;
        else throw error;
        if (restarts + repeats > 1) await delay(randomInt(REPEAT_PAUSE_MAX_MS));
      }
    }
  }

  async #attempt<T>(
    work: (tx: Tx) => Promise<T>,
    options: { readonly firstLocks: FirstLocks; readonly mayRestart: boolean },
  ): Promise<T> {
    const session = await this.#connections.writer();
    this.#onStatement('begin');
    const transaction = this.#newTransaction(session, options.mayRestart);
    const access = new Access(transaction);
    let committing: { readonly result: T } | null = null;
    let isCommitted = false;
    try {
      const tx = createTx(access, (handler, worker) => this.#ensureQueue(handler, worker));
      const { keys, limits } = options.firstLocks;
      if (keys.length > 0) await tx.runs.byKeys(keys);
      if (limits.length > 0) await tx.limits.lock(limits);
      const result = await work(tx);
      access.touch();
      this.#onStatement('commit');
      committing = { result };
      await transaction.commit();
      isCommitted = true;
      this.#hygiene.note(transaction.removedRows);
      return result;
    } catch (error) {
      if (!isConnectionLost(error)) {
        await transaction.rollback().catch(() => this.#connections.dropWriter());
        throw error;
      }
      this.#connections.dropWriter();
      // Before the commit was sent, a lost connection has undone everything, and so has a server that says goodbye.
      if (committing === null || isToldByServer(error)) throw error;
      if (!(await this.#hasCommitted(transaction, session))) throw error;
      return committing.result;
    } finally {
      access.end(isCommitted);
    }
  }

  #newTransaction(session: Session, mayRestart: boolean): Transaction {
    return new Transaction({
      session,
      texts: this.#texts,
      onStatement: this.#onStatement,
      isWriter: true,
      memory: this.#memory,
      mayRestart,
    });
  }

  /** What became of a transaction whose end we did not hear of. Unknown counts as no: the engine repeats, and is recognized. */
  async #hasCommitted({ locks: { xid }, sample }: Transaction, session: Session): Promise<boolean> {
    if (xid === null && sample === null) return false;
    const until = performance.now() + DOUBT_MS;
    while (performance.now() < until) {
      try {
        const answer = await this.#connections.withReader((reader) =>
          xid === null ? askAfterWritten(reader, session, sample) : askAfterNumber(reader, xid),
        );
        if (answer !== null) return answer;
      } catch {
        // Not back yet; asked again until it is too late to matter.
      }
      await delay(DOUBT_PAUSE_MS);
    }
    return false;
  }

  async #view<T>(session: Session, work: (tx: Tx) => Promise<T>): Promise<T> {
    const transaction = new Transaction({
      session,
      texts: this.#texts,
      onStatement: () => {},
      isWriter: false,
      memory: null,
      mayRestart: false,
    });
    try {
      return await work(createTx(new Access(transaction), () => this.#refuse()));
    } finally {
      // There is nothing to keep. A connection that cannot do even this is lost, and its next user will hear of it.
      await transaction.rollback().catch(() => {});
    }
  }

  async #refuse(): Promise<never> {
    throw new RelayError('INTERNAL', 'a reader adds no queue');
  }

  async #ensureQueue(handler: string, worker: string): Promise<number> {
    const known = this.#queues.get(`${handler} ${worker}`);
    if (known !== undefined) return known;
    const command = (name: string): Command => ({
      name,
      text: this.#texts.get(name) ?? '',
      params: [handler, worker],
    });
    const [, [[key] = []] = []] = await this.#connections.withReader((session) =>
      session.send([command('queues.add'), command('queues.find')]),
    );
    this.#queues.set(`${handler} ${worker}`, key as number);
    return key as number;
  }
}

/** The URL without its password. */
function describe(url: string): string {
  try {
    const shown = new URL(url);
    shown.password = '';
    shown.search = '';
    return shown.href;
  } catch (cause) {
    throw new RelayError('INVALID_CONFIG', 'the store URL is not a URL', {
      hint: 'Write it as postgres://user:password@host:5432/database.',
      cause,
    });
  }
}
