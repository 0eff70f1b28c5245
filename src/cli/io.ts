/** The terminal as a value: where text goes, whether it is a person who reads it, and in which folder. Tests pass their own. */
import pc from 'picocolors';

/** Where text can go. */
export interface Output {
  readonly write: (text: string | Uint8Array) => void;
  readonly isTerminal: boolean;
  /** How much text a terminal shows at once; asked anew for every picture, because windows change. */
  readonly size: () => { readonly columns: number; readonly rows: number };
}

/** Where a person types. */
interface Input {
  readonly isTerminal: boolean;
  /** The next line without its end; null when there is none any more, or when aborted. */
  readonly readLine: (signal: AbortSignal) => Promise<string | null>;
}

/** Requests to stop that come from outside. */
export type Interrupt = 'SIGINT' | 'SIGTERM';

/** Everything a command may touch of its surroundings. */
export interface Io {
  readonly out: Output;
  readonly err: Output;
  /** All of stdin, or null when it has more than `bytesMax` bytes. */
  readonly readStdin: (bytesMax: number) => Promise<Uint8Array | null>;
  readonly input: Input;
  /** Hears of Ctrl-C and of requests to end, instead of being ended by them; returns how to stop listening. */
  readonly onInterrupt: (listener: (interrupt: Interrupt) => void) => () => void;
  /** Ends the process at once, whatever is under way. */
  readonly quit: (code: number) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/** Paints text, or leaves it plain. */
export type Colors = ReturnType<typeof pc.createColors>;

/** Colours when a person looks on and has not declined them. */
export function colorsFor(output: Output, env: Io['env']): Colors {
  const isDeclined = (env.NO_COLOR ?? '') !== '' || env.TERM === 'dumb';
  const isForced = (env.FORCE_COLOR ?? '') !== '' && env.FORCE_COLOR !== '0';
  return pc.createColors(!isDeclined && (isForced || output.isTerminal));
}

/** Prints one JSON value and nothing else. */
export function printJson(io: Io, value: unknown): void {
  io.out.write(`${JSON.stringify(value, null, 2)}\n`);
}
