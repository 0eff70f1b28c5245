/** Lines that a person types, one at a time. The terminal itself does the editing, so Ctrl-C stays a signal and Ctrl-D an end. */
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/** Reads a stream only while somebody waits for a line, so that it keeps no process alive. */
export class LineReader {
  readonly #stream: Readable;
  readonly #decoder = new StringDecoder('utf8');
  #text = '';
  #isEnded = false;
  #isListening = false;
  #wake: () => void = () => {};

  constructor(stream: Readable) {
    this.#stream = stream;
  }

  /** The next line without its end; null at the end of the stream, or when aborted. */
  async next(signal: AbortSignal): Promise<string | null> {
    this.#listen();
    for (;;) {
      const end = this.#text.indexOf('\n');
      if (end >= 0) {
        const line = this.#text.slice(0, end).replace(/\r$/, '');
        this.#text = this.#text.slice(end + 1);
        return line;
      }
      if (this.#isEnded || signal.aborted) return null;
      await this.#more(signal);
    }
  }

  async #more(signal: AbortSignal): Promise<void> {
    this.#stream.resume();
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    this.#stream.pause();
  }

  #listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    this.#stream.on('data', (chunk: Buffer) => {
      this.#text += this.#decoder.write(chunk);
      this.#wake();
    });
    this.#stream.on('end', () => {
      this.#isEnded = true;
      this.#wake();
    });
  }
}
