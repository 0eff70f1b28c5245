/** A terminal in memory: what a command prints is kept, what it reads is given. */
import type { Interrupt, Io } from '../../src/cli/io.ts';
import { runCli } from '../../src/cli/run-cli.ts';

/** What one call of the command line did. */
export interface CliResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** What the call finds around it. */
export interface Surroundings {
  readonly cwd: string;
  readonly env?: Io['env'];
  readonly stdin?: string;
  readonly isTerminal?: boolean;
  /** Lines that a person types, in order; an empty list ends the input. Only on a terminal. */
  readonly typed?: readonly string[];
  /** Called with the way to press Ctrl-C (`SIGINT`) or to ask for an end (`SIGTERM`). */
  readonly interrupter?: (interrupt: (signal: Interrupt) => void) => void;
  /** Sees what is printed, as it is printed. */
  readonly watch?: (text: string) => void;
}

/** Runs `relay ARGUMENTS` in this process. */
export async function relay(argv: readonly string[], surroundings: Surroundings): Promise<CliResult> {
  const { cwd, env = {}, stdin = '', isTerminal = false, watch = () => {} } = surroundings;
  const out: string[] = [];
  const err: string[] = [];
  const typed = [...(surroundings.typed ?? [])];
  const listeners = new Set<(signal: Interrupt) => void>();
  surroundings.interrupter?.((signal) => {
    for (const listener of listeners) listener(signal);
  });
  const output = (into: string[]): Io['out'] => ({
    write: (written) => {
      const text = typeof written === 'string' ? written : new TextDecoder().decode(written);
      into.push(text);
      watch(text);
    },
    isTerminal,
    size: () => ({ columns: 100, rows: 30 }),
  });
  const code = await runCli(argv, {
    out: output(out),
    err: output(err),
    readStdin: async (bytesMax) => (stdin.length > bytesMax ? null : new TextEncoder().encode(stdin)),
    input: { isTerminal, readLine: async () => typed.shift() ?? null },
    onInterrupt: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    quit: () => {},
    env: { HOME: cwd, ...env },
    cwd,
  });
  return { code, out: out.join(''), err: err.join('') };
}
