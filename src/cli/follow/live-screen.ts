/**
 * The live picture on a terminal: drawn over itself with plain ANSI, at most about twelve times a second. It never clears more than
 * it drew, so what stood above stays, and its last picture stays when it closes.
 */
import { systemClock } from '../../base/clock.ts';
import { colorsFor, type Io } from '../io.ts';
import { renderLive } from '../render/live-view.ts';
import type { RunProgress } from './run-progress.ts';
import type { RunView } from './run-view.ts';

const FRAME_MS = 80;
const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';
const CLEAR_BELOW = '\u001b[J';
const CLEAR_LINE = '\u001b[K';

/** Draws a run over its last picture until it is closed. */
export class LiveScreen implements RunView {
  readonly #io: Io;
  #progress: RunProgress | null = null;
  #timer: NodeJS.Timeout | null = null;
  #frame = 0;
  #drawnLines = 0;
  #footer = 'Ctrl-C cancels the run';

  constructor(io: Io) {
    this.#io = io;
  }

  update(progress: RunProgress): void {
    this.#progress = progress;
    if (this.#timer !== null) return;
    this.#io.out.write(HIDE_CURSOR);
    this.#draw();
    this.#timer = setInterval(() => this.#draw(), FRAME_MS);
  }

  say(text: string): void {
    this.#footer = text;
    if (this.#timer !== null) this.#draw();
    else if (this.#progress !== null) this.#io.out.write(`\n${text}\n`);
  }

  /** Leaves the picture where it is, without its footer; the next one is drawn below. */
  pause(): void {
    if (this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
    const footer = this.#footer;
    this.#footer = '';
    this.#draw();
    this.#footer = footer;
    this.#drawnLines = 0;
    this.#io.out.write(SHOW_CURSOR);
  }

  close(): void {
    this.pause();
  }

  #draw(): void {
    if (this.#progress === null) return;
    const { out, env } = this.#io;
    const lines = renderLive(this.#progress, {
      ...out.size(),
      now: systemClock.now(),
      frame: this.#frame++,
      colors: colorsFor(out, env),
      footer: this.#footer,
    });
    const up = this.#drawnLines === 0 ? '\r' : `\u001b[${this.#drawnLines}A\r`;
    const body = lines.map((line) => `${line}${CLEAR_LINE}\n`).join('');
    out.write(`${up}${body}${CLEAR_BELOW}`);
    this.#drawnLines = lines.length;
  }
}
