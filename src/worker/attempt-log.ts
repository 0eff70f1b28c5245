/**
 * What one attempt has logged and not yet sent. Lines stay whole, and a word that is still being written is held back once,
 * so that a secret arriving in two pieces can be masked as one.
 */
import type { LogChunk } from './work-source.ts';

type Stream = LogChunk['stream'];

interface Entry {
  readonly stream: Stream;
  text: string;
  /** True when the text was held back from the last sending and has not grown since. */
  isHeld: boolean;
}

const ATTEMPT_CHARS_MAX = 1024 * 1024;
const TRUNCATED = '\n[relay: the log of this attempt is cut off here, after 1 MiB]\n';

/** The log of one attempt, bounded. */
export class AttemptLog {
  #entries: Entry[] = [];
  #totalChars = 0;
  #pendingChars = 0;

  get pendingChars(): number {
    return this.#pendingChars;
  }

  /** Adds text; past the bound only one line says so. */
  add(stream: Stream, text: string): void {
    if (this.#totalChars > ATTEMPT_CHARS_MAX || text === '') return;
    const room = ATTEMPT_CHARS_MAX - this.#totalChars;
    this.#totalChars += text.length;
    const kept = text.length > room ? text.slice(0, room) + TRUNCATED : text;
    this.#pendingChars += kept.length;
    this.#append(stream, kept);
  }

  /** Everything that can be sent now. */
  take(): readonly Omit<LogChunk, 'lease_id'>[] {
    const taken: Omit<LogChunk, 'lease_id'>[] = [];
    const held: Entry[] = [];
    for (const { stream, text, isHeld } of this.#entries) {
      const end = isHeld ? text.length : wordsEnd(text);
      if (end > 0) taken.push({ stream, text: text.slice(0, end) });
      if (end < text.length) held.push({ stream, text: text.slice(end), isHeld: true });
    }
    this.#keep(held);
    return taken;
  }

  /** Everything, as the attempt is over. */
  takeRest(): readonly Omit<LogChunk, 'lease_id'>[] {
    const taken = this.#entries.map(({ stream, text }) => ({ stream, text }));
    this.#keep([]);
    return taken;
  }

  #keep(entries: Entry[]): void {
    this.#entries = entries;
    this.#pendingChars = entries.reduce((chars, { text }) => chars + text.length, 0);
  }

  /** Text goes on where its stream stopped, even when another stream wrote in between: first the open line is finished. */
  #append(stream: Stream, text: string): void {
    const open = this.#entries.findLast((entry) => entry.stream === stream);
    if (open === undefined || (open !== this.#entries.at(-1) && open.text.endsWith('\n'))) {
      this.#entries.push({ stream, text, isHeld: false });
      return;
    }
    const lineEnd = open === this.#entries.at(-1) ? text.length : text.indexOf('\n') + 1 || text.length;
    open.text += text.slice(0, lineEnd);
    open.isHeld = false;
    if (lineEnd < text.length) this.#entries.push({ stream, text: text.slice(lineEnd), isHeld: false });
  }
}

/** Where the last whole word ends; all of the text when it has grown too long for one word. */
function wordsEnd(text: string): number {
  const WORD_CHARS_MAX = 8_192;
  for (let at = text.length - 1; at >= 0 && text.length - at <= WORD_CHARS_MAX; at--) {
    const character = text.charCodeAt(at);
    if (character === 10 || character === 32 || character === 9 || character === 13) return at + 1;
  }
  return text.length > WORD_CHARS_MAX ? text.length : 0;
}
