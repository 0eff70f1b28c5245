/** Structured logs: one JSON object a line, stable event names, bound fields. It formats; where lines go is the caller's. */
import type { Clock } from './clock.ts';

const LEVELS = { debug: 10, info: 20, warn: 30, error: 40 } as const;

/** How much is written: everything from this level up, or nothing. */
export type LogLevel = keyof typeof LEVELS | 'silent';
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const satisfies readonly LogLevel[];

type Fields = Readonly<Record<string, unknown>>;

/** Writes named events. Names are `noun.verb` and never change; everything that varies is a field. */
export interface Logger {
  debug(event: string, fields?: Fields): void;
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
  /** The same logger with fields on every line. */
  with(fields: Fields): Logger;
}

/** A logger that hands finished lines to `write`. */
export function createLogger(options: {
  level: LogLevel;
  clock: Clock;
  write: (line: string) => void;
  fields?: Fields;
}): Logger {
  const { level, clock, write, fields: bound = {} } = options;
  const threshold = level === 'silent' ? Number.POSITIVE_INFINITY : LEVELS[level];
  const at =
    (name: keyof typeof LEVELS) =>
    (event: string, fields: Fields = {}): void => {
      if (LEVELS[name] < threshold) return;
      const time = new Date(clock.now()).toISOString();
      write(`${JSON.stringify({ time, level: name, event, ...bound, ...fields }, plainError)}\n`);
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    with: (fields) => createLogger({ level, clock, write, fields: { ...bound, ...fields } }),
  };
}

/** Errors have no enumerable fields; without this they would be logged as `{}`. */
function plainError(_key: string, value: unknown): unknown {
  if (value instanceof Error) {
    return { ...value, name: value.name, message: value.message, stack: value.stack };
  }
  return typeof value === 'bigint' ? String(value) : value;
}
