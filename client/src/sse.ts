/** Server-sent events: text in, messages out, and a reader that resumes where it was cut off. */
import type { Route } from './contract/route.ts';
import type { CallParts, Http } from './http.ts';

/** One message of a stream. */
export interface StreamMessage {
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

const RECONNECT_MS = 500;
const RECONNECT_MS_MAX = 10_000;

/** Reads a stream until `signal`; a connection that breaks is opened again after the last message that arrived. */
export async function* follow<Called extends Route>(
  http: Http,
  route: Called,
  parts: CallParts<Called> & { readonly signal: AbortSignal },
): AsyncGenerator<StreamMessage> {
  const { signal } = parts;
  let lastEventId: string | undefined;
  let delayMs = RECONNECT_MS;
  while (!signal.aborted) {
    try {
      for await (const message of messagesOf(await http.open(route, { ...parts, lastEventId }))) {
        lastEventId = message.id ?? lastEventId;
        delayMs = RECONNECT_MS;
        yield message;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (isFinal(error)) throw error;
    }
    await rest(delayMs, signal);
    delayMs = Math.min(delayMs * 2, RECONNECT_MS_MAX);
  }
}

/** The messages of a body, as they come. */
export async function* messagesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamMessage> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const message = parseBlock(block);
        if (message !== null) yield message;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Comments keep a connection open and say nothing. */
function parseBlock(block: string): StreamMessage | null {
  let id: string | null = null;
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    const [, field, value = ''] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (field === 'id') id = value;
    else if (field === 'event') event = value;
    else if (field === 'data') data.push(value);
  }
  return data.length === 0 ? null : { id, event, data: data.join('\n') };
}

/** What the server refuses it will refuse again; what does not answer may answer later. */
function isFinal(error: unknown): boolean {
  const { code, problem } = error as { code?: unknown; problem?: { code?: unknown } };
  const named = problem?.code ?? code;
  return typeof named === 'string' && named !== 'SERVER_UNAVAILABLE' && named !== 'RATE_LIMITED';
}

function rest(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    signal.addEventListener('abort', wake, { once: true });
  });
}
