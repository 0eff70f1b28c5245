/** The one place that knows which SQLite binding runs: `node:sqlite` where Node has it, else `libsql`. Both are synchronous. */
import { createRequire } from 'node:module';

/** A value that a column can hold. */
export type SqlValue = string | number | bigint | null | Uint8Array;
/** A row by column name. */
export type SqlRow = Record<string, SqlValue>;

/** A prepared statement. */
export interface Statement {
  all(...params: SqlValue[]): SqlRow[];
  /** The first value of the first row; undefined when there is no row. */
  value(...params: SqlValue[]): SqlValue | undefined;
  run(...params: SqlValue[]): void;
}

/** An open database file. */
export interface Driver {
  readonly name: 'node:sqlite' | 'libsql';
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

type Bind = (...params: (SqlValue | SqlValue[])[]) => unknown;

interface Binding {
  exec(sql: string): unknown;
  prepare(sql: string): { all: Bind; get: Bind; run: Bind };
  close(): void;
}

const NODE_SQLITE_SINCE = [22, 13] as const;

/** Opens a file. `readOnly` never creates or changes it. */
export function openDriver(path: string, options: { readOnly?: boolean } = {}): Driver {
  const require = createRequire(import.meta.url);
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const [sinceMajor, sinceMinor] = NODE_SQLITE_SINCE;
  if (major > sinceMajor || (major === sinceMajor && minor >= sinceMinor)) {
    const { DatabaseSync } = quietly(() => require('node:sqlite')) as {
      DatabaseSync: new (path: string, options: { readOnly: boolean }) => Binding;
    };
    return wrap('node:sqlite', new DatabaseSync(path, { readOnly: options.readOnly ?? false }));
  }
  const Database = require('libsql') as new (path: string, options: { readonly: boolean }) => Binding;
  return wrap('libsql', new Database(path, { readonly: options.readOnly ?? false }));
}

function wrap(name: Driver['name'], binding: Binding): Driver {
  return {
    name,
    exec: (sql) => void binding.exec(sql),
    prepare: (sql) => {
      const statement = binding.prepare(sql);
      // libsql takes a lone null for named parameters, so its parameters always travel as one list.
      if (name === 'libsql') {
        return {
          all: (...params) => withBytes(statement.all(params) as SqlRow[]),
          value: (...params) => firstOf(statement.get(params)),
          run: (...params) => void statement.run(params),
        };
      }
      return {
        all: (...params) => statement.all(...params) as SqlRow[],
        value: (...params) => firstOf(statement.get(...params)),
        run: (...params) => void statement.run(...params),
      };
    },
    close: () => binding.close(),
  };
}

/** Rows hold their columns in order. */
function firstOf(row: unknown): SqlValue | undefined {
  for (const name in row as SqlRow | undefined) return (row as SqlRow)[name];
  return undefined;
}

/** libsql gives blobs as bare buffers; everybody else in Relay has them as bytes. */
function withBytes(rows: SqlRow[]): SqlRow[] {
  for (const row of rows) {
    for (const name in row) {
      const value: unknown = row[name];
      if (value instanceof ArrayBuffer) row[name] = new Uint8Array(value);
    }
  }
  return rows;
}

/** `node:sqlite` announces itself as experimental on some versions; a user can do nothing about that. */
function quietly<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}
