/**
 * The newest events, read once for everybody who follows them (SPEC S12.3): one reader per process pages through the store as
 * it grows and hands what it finds to all streams. A stream that starts further back catches up by itself and then joins.
 */
import type { EventView, RelayApi } from '../app/api.ts';
import type { Logger } from '../base/logger.ts';
import type { Service } from '../base/service.ts';
import type { Engine } from '../engine/engine.ts';

/** An event and its text, made once for all who read it. */
export interface TailEvent {
  readonly view: EventView;
  readonly json: string;
}

type Listener = (events: readonly TailEvent[]) => void;

const PAGE = 1_000;
const RETRY_MS = 1_000;

/** Follows the events of the store. */
export class EventTail implements Service {
  readonly name = 'event_tail';
  readonly #engine: Engine;
  readonly #api: RelayApi;
  readonly #logger: Logger;
  readonly #listeners = new Set<Listener>();
  /** Those who follow one run; most streams do, and most events are of no interest to them. */
  readonly #byRun = new Map<string, Set<Listener>>();
  #stopping = new AbortController();
  #running: Promise<void> | null = null;
  #position = '0';

  constructor(options: { engine: Engine; api: RelayApi; logger: Logger }) {
    this.#engine = options.engine;
    this.#api = options.api;
    this.#logger = options.logger;
  }

  /** Everything up to here has been handed out. */
  get position(): string {
    return this.#position;
  }

  async start(): Promise<void> {
    if (this.#running !== null) return;
    this.#stopping = new AbortController();
    this.#position = await this.#engine.context.store.read((tx) => tx.events.newest());
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    this.#running = null;
  }

  /** Hears every event from now on, or those of one run; returns how to stop. */
  listen(listener: Listener, run_id?: string): () => void {
    if (run_id === undefined) {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    }
    const ofRun = this.#byRun.get(run_id) ?? new Set();
    this.#byRun.set(run_id, ofRun.add(listener));
    return () => {
      ofRun.delete(listener);
      if (ofRun.size === 0 && this.#byRun.get(run_id) === ofRun) this.#byRun.delete(run_id);
    };
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const mark = this.#engine.changed.mark();
      try {
        if ((await this.#read()) === PAGE) {
          // Others want the loop too, among them those who send what was just read.
          await new Promise((resolve) => setImmediate(resolve));
          continue;
        }
      } catch (error) {
        this.#logger.warn('event_tail.away', { error });
        await rest(RETRY_MS, signal);
        continue;
      }
      await this.#engine.changed.after(mark, signal);
    }
  }

  async #read(): Promise<number> {
    const { items, next_cursor } = await this.#api.events.page({ cursor: this.#position, limit: PAGE });
    if (items.length === 0) return 0;
    const events = items.map((view) => ({ view, json: JSON.stringify(view) }));
    this.#position = next_cursor ?? this.#position;
    for (const listener of this.#listeners) this.#tell(listener, events);
    if (this.#byRun.size > 0) this.#tellByRun(events);
    return items.length;
  }

  /** One that throws keeps nothing from the others (SPEC S12.2). */
  #tell(listener: Listener, events: readonly TailEvent[]): void {
    try {
      listener(events);
    } catch (error) {
      this.#logger.error('event_tail.listener_failed', { error });
    }
  }

  #tellByRun(events: readonly TailEvent[]): void {
    for (const event of events) {
      const ofRun = this.#byRun.get(event.view.run_id ?? '');
      if (ofRun !== undefined) for (const listener of ofRun) this.#tell(listener, [event]);
    }
  }
}

function rest(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
