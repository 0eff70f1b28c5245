/** Events and logs as streams: what is stored first, then what happens, nothing twice and nothing left out. */
import type { Route } from '#client';
import type { EventView, LogView, Page, Paging } from '../app/api.ts';
import { RelayError } from '../base/errors.ts';
import { isTerminal } from '../domain/states.ts';
import type { ServerContext, StreamCall } from './context.ts';
import type { EventTail, TailEvent } from './event-tail.ts';
import { type SseMessage, SseStream } from './sse-stream.ts';

const PAGE = 1_000;
/** Events that may come together while a stream catches up. */
const BUFFERED_MAX = 10_000;
const LOGS_REST_MS = 100;

/** Which events a stream wants. */
export interface EventWish {
  readonly run_id?: string | undefined;
  readonly types?: readonly string[] | undefined;
  /** Start here; without it, now. */
  readonly after?: string | undefined;
}

/** Where to go on: the header of a reader that reconnects wins over the query. */
export function resumeFrom(
  call: Pick<StreamCall<Route>, 'request'>,
  after: string | undefined,
): string | undefined {
  const header = call.request.headers['last-event-id'];
  if (typeof header !== 'string' || header === '') return after;
  if (!/^[\w.:-]{1,100}$/.test(header)) throw new RelayError('USAGE', 'Last-Event-ID is not a cursor');
  return header;
}

/** Streams events until the reader leaves. */
export async function streamEvents(
  call: StreamCall<Route>,
  context: ServerContext,
  wish: EventWish,
): Promise<void> {
  const { run_id, types, after = context.tail.position } = wish;
  const gone = call.gone();
  const live = new LiveEvents(context.tail, gone, { run_id, types });
  let stream: SseStream | null = null;
  try {
    const next = (cursor: string | null): Promise<Page<EventView>> =>
      call.api.events.page({ run_id, types, cursor: cursor ?? undefined, limit: PAGE });
    // What can be refused is refused before the head of the answer is sent.
    let page = await next(after);
    stream = new SseStream(call.reply, gone);
    while (stream.isOpen) {
      for (const view of page.items) {
        live.skip(view.cursor);
        await stream.deliver(messageOf({ view, json: JSON.stringify(view) }));
      }
      if (page.items.length < PAGE) break;
      page = await next(page.next_cursor);
    }
    live.join(stream);
  } catch (error) {
    live.stop();
    if (stream === null) throw error;
    // The store is away; the reader comes again and goes on where it was.
    stream.drop();
  }
}

/**
 * What happens while a stream catches up, and from then on. Pages and the tail have one order, so what the pages have sent
 * already is a first stretch of what the tail brings, and is left out there.
 */
class LiveEvents {
  readonly #stopListening: () => void;
  readonly #wish: Pick<EventWish, 'run_id' | 'types'>;
  readonly #sent = new Set<string>();
  #buffer: TailEvent[] = [];
  #stream: SseStream | null = null;
  #isTooMuch = false;

  constructor(tail: EventTail, gone: AbortSignal, wish: Pick<EventWish, 'run_id' | 'types'>) {
    this.#wish = wish;
    this.#stopListening = tail.listen((events) => this.#hear(events), wish.run_id);
    gone.addEventListener('abort', () => this.stop(), { once: true });
  }

  /** A page has this event; the tail will not send it again. */
  skip(cursor: string): void {
    this.#sent.add(cursor);
    for (const oldest of this.#sent) {
      if (this.#sent.size <= BUFFERED_MAX) break;
      this.#sent.delete(oldest);
    }
  }

  /** The pages are done: from here on events go out as they come. */
  join(stream: SseStream): void {
    if (this.#isTooMuch) stream.drop();
    this.#stream = stream;
    const buffered = this.#buffer;
    this.#buffer = [];
    this.#hear(buffered);
  }

  stop(): void {
    this.#stopListening();
  }

  #hear(events: readonly TailEvent[]): void {
    if (this.#stream === null) {
      this.#isTooMuch ||= this.#buffer.length + events.length > BUFFERED_MAX;
      if (this.#isTooMuch) this.#buffer = [];
      else this.#buffer.push(...events);
      return;
    }
    for (const event of events) if (this.#isNews(event)) this.#stream.send(messageOf(event));
  }

  #isNews({ view }: TailEvent): boolean {
    const { run_id, types } = this.#wish;
    const isWanted =
      (run_id === undefined || view.run_id === run_id) && (types === undefined || types.includes(view.type));
    if (!isWanted || this.#sent.delete(view.cursor)) return false;
    // The first that the pages did not have: none that they had can come any more.
    this.#sent.clear();
    return true;
  }
}

function messageOf({ view, json }: TailEvent): SseMessage {
  return { id: view.cursor, event: view.type, json };
}

/** Streams a log until its owner is over or the reader leaves. */
export async function streamLogs<Line extends LogView>(
  call: StreamCall<Route>,
  context: ServerContext,
  log: {
    readonly after: string | undefined;
    readonly page: (paging: Paging) => Promise<Page<Line>>;
    readonly status: () => Promise<Parameters<typeof isTerminal>[0]>;
  },
): Promise<void> {
  const { engine } = context;
  const { logged } = engine.context;
  const marks = () => ({ logged: logged.mark(), changed: engine.changed.mark() });
  let seen = marks();
  let page = await log.page({ cursor: log.after, limit: PAGE });
  let cursor = log.after;
  const gone = call.gone();
  const stream = new SseStream(call.reply, gone);
  let isLast = false;
  try {
    while (stream.isOpen) {
      for (const line of page.items) {
        await stream.deliver({ id: line.cursor, event: 'log', json: JSON.stringify(line) });
        cursor = line.cursor;
      }
      if (page.next_cursor === null) {
        if (isLast) break;
        // The log of a task that is over is read once more: its last lines came before its end.
        isLast = isTerminal(await log.status());
        if (!isLast) await nextTurn(context, seen, gone);
      }
      seen = marks();
      page = await log.page({ cursor, limit: PAGE });
    }
    stream.close();
  } catch {
    // The store is away or the run was removed; the reader comes again and hears which.
    stream.drop();
  }
}

/** Waits for something to be logged or committed; many wake-ups in a row count as one. */
async function nextTurn(
  { engine }: ServerContext,
  seen: { readonly logged: number; readonly changed: number },
  gone: AbortSignal,
): Promise<void> {
  const done = new AbortController();
  const either = AbortSignal.any([gone, done.signal]);
  await Promise.race([
    engine.context.logged.after(seen.logged, either),
    engine.changed.after(seen.changed, either),
  ]);
  done.abort();
  await new Promise((resolve) => setTimeout(resolve, LOGS_REST_MS));
}
