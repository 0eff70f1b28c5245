/** A real terminal for a test: a tmux session of its own, in which keys are typed and whose screen is read. */
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from './built-cli.ts';
import { eventually } from './processes.ts';

/** Whether this machine can give a test a terminal. */
export const HAS_TMUX = spawnSync('tmux', ['-V']).status === 0;

let count = 0;

/** One terminal, running a shell. */
export class Terminal {
  readonly #socket = `relay-test-${process.pid}-${++count}`;

  constructor(cwd: string) {
    const env = { PATH: process.env.PATH ?? '', HOME: cwd, TERM: 'xterm-256color', PS1: '$ ' };
    execFileSync(
      'tmux',
      ['-L', this.#socket, '-f', '/dev/null', 'new-session', '-d', '-x', '100', '-y', '40', '-c', cwd, 'sh'],
      { env },
    );
    this.type(
      `relay() { "${process.execPath}" "${join(ROOT, 'dist/cli/main.js')}" "$@"; echo "ended with $?"; }`,
    );
  }

  /** Types a line. */
  type(text: string): void {
    this.#tmux('send-keys', '-l', text);
    this.press('Enter');
  }

  /** Presses a key, for example `C-c`. */
  press(key: string): void {
    this.#tmux('send-keys', key);
  }

  /** Everything on the screen and above it. */
  screen(): string {
    return this.#tmux('capture-pane', '-p', '-J', '-S', '-500');
  }

  /** Resolves when the screen shows something. */
  async shows(pattern: RegExp): Promise<string> {
    await eventually(() => pattern.test(this.screen()), 20_000).catch(() => {
      throw new TypeError(`the terminal never showed ${pattern}:\n${this.screen()}`);
    });
    return this.screen();
  }

  close(): void {
    spawnSync('tmux', ['-L', this.#socket, 'kill-server']);
  }

  #tmux(...argv: readonly string[]): string {
    return execFileSync('tmux', ['-L', this.#socket, ...argv], { encoding: 'utf8' });
  }
}
