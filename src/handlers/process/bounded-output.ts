/** What is kept of a child's output: all of it up to a bound, or the end of it. */

/** Collects text up to a number of bytes and says when there was more. */
export class BoundedText {
  readonly #bytesMax: number;
  readonly #parts: string[] = [];
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** True while everything written so far is kept. */
  add(part: string): boolean {
    this.#bytes += Buffer.byteLength(part);
    if (this.isOver) this.#parts.length = 0;
    else this.#parts.push(part);
    return !this.isOver;
  }

  get isOver(): boolean {
    return this.#bytes > this.#bytesMax;
  }

  get text(): string {
    return this.#parts.join('');
  }
}

/** Keeps the last characters of a text. */
export class TextTail {
  readonly #charsMax: number;
  #text = '';

  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  add(part: string): void {
    this.#text = (this.#text + part).slice(-this.#charsMax);
  }

  /** The last lines, without empty ones at the end. */
  lines(count: number): string {
    return this.#text.trimEnd().split('\n').slice(-count).join('\n');
  }
}
