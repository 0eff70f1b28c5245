/** House rules as a test: who may import whom, sizes, banned calls, pages that must match the code (DESIGN "Rooms", STYLE). */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { generatedPages } from '../scripts/generated-pages.ts';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Room → the rooms it may import, or single files of a room: its contracts. A room may always import itself. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  base: [],
  domain: ['base'],
  template: ['base'],
  definition: ['domain', 'template', 'base'],
  stores: ['domain', 'base'],
  brokers: ['domain', 'base'],
  models: ['domain', 'base'],
  handlers: ['definition', 'models', 'domain', 'base', 'worker/work-source.ts', 'worker/check-output.ts'],
  worker: ['domain', 'base', 'handlers/handler.ts'],
  engine: ['domain', 'definition', 'template', 'base'].concat(
    ['stores/store.ts', 'stores/rows.ts', 'stores/blob-store.ts', 'brokers/broker.ts'],
    ['worker/work-source.ts', 'worker/check-output.ts', 'worker/clean-text.ts'],
  ),
  server: ['engine', 'domain', 'base'].concat([
    'app/api.ts',
    'stores/blob-store.ts',
    'stores/store.ts',
    'stores/rows.ts',
    'worker/work-source.ts',
  ]),
  app: [
    'base',
    'domain',
    'template',
    'definition',
    'stores',
    'brokers',
    'models',
    'handlers',
    'worker',
    'engine',
    'server',
  ],
  cli: ['app', 'definition', 'domain', 'handlers', 'base'],
};

const FILE_LINES_MAX = 600;
const FUNCTION_LINES_MAX = 70;

/** What may not be written, where it may, and what to write instead. */
const BANNED: readonly { pattern: RegExp; except: RegExp; instead: string }[] = [
  { pattern: /\bDate\.now\(|\bnew Date\(\)/, except: /^src\/base\/clock\.ts$/, instead: 'take a Clock' },
  { pattern: /\bMath\.random\(/, except: /^$/, instead: 'take the randomness as an argument' },
  { pattern: /\bconsole\.\w+\(/, except: /^$/, instead: 'use Io in cli/, a Logger elsewhere' },
  { pattern: /\bthrow new Error\(/, except: /^$/, instead: 'throw RelayError, or use invariant()' },
  {
    pattern: /\bprocess\.env\b/,
    except: /^src\/(cli\/main|app\/open-relay)\.ts$/,
    instead: 'take the environment as an argument',
  },
  { pattern: /\beval\(|\bnew Function\(/, except: /^$/, instead: 'never' },
  { pattern: /^export (default|\*)/m, except: /^$/, instead: 'export by name' },
  { pattern: /^\s*(export )?(const )?enum /m, except: /^$/, instead: 'a frozen list and a union type' },
  { pattern: /@ts-(ignore|expect-error|nocheck)/, except: /\.test\.ts$/, instead: 'mend the type' },
];

/** Statements that one dialect has and the other has no use for, and why. */
const ONE_DIALECT_ONLY: Readonly<Record<string, string>> = {
  'rows.last_key': 'SQLite: Postgres takes keys from a sequence first',
  'runs.reserve': 'Postgres: SQLite numbers the rows of one writer without a gap',
  'task_runs.reserve': 'Postgres: SQLite numbers the rows of one writer without a gap',
  'runs.expect': 'Postgres: proves what is remembered of runs',
  'runs.touch': 'Postgres: proves what is remembered of runs',
  'claimable.queues': 'SQLite: Postgres looks into all queues in one statement',
  'claimable.add': 'Postgres: SQLite puts this insert together',
  'runs.lock': 'Postgres: row locks',
  'runs.lock_free': 'Postgres: row locks',
  'runs.prunable_locked': 'Postgres: row locks',
  'claimable.peek_locked': 'Postgres: row locks',
  'limits.lock_free': 'Postgres: row locks',
  'limits.read': 'Postgres: row locks',
  'held.first_locked': 'Postgres: row locks',
  'cursors.free_runs': 'Postgres: row locks',
  'cursors.first_of_runs': 'Postgres: row locks',
  'tasks.children_rows': 'Postgres: saves a round trip',
  'leases.add': 'Postgres: a side table instead of a partial index',
  'leases.change': 'Postgres: a side table instead of a partial index',
  'leases.remove': 'Postgres: a side table instead of a partial index',
  'outbox.relax': 'Postgres: SQLite syncs with every commit',
  'marks.add': 'Postgres: a side table instead of partial indexes',
  'marks.remove': 'Postgres: a side table instead of partial indexes',
  'runs.remove_marks': 'Postgres: a side table instead of partial indexes',
};

const files = (folder: string, pattern: RegExp): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && pattern.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll('\\', '/'));

const sources = [...files('src', /\.ts$/), ...files('client/src', /\.ts$/)].map((path) => ({
  path,
  text: readFileSync(join(ROOT, path), 'utf8'),
}));
const code = sources.filter(({ path }) => !path.endsWith('.test.ts'));

describe('tidy', () => {
  it('every room imports only the rooms it may', () => {
    const violations = code.flatMap(({ path, text }) => {
      const room = path.split('/')[1] ?? '';
      if (path === 'src/index.ts' || path.startsWith('client/')) return [];
      const allowed = MAY_IMPORT[room];
      if (allowed === undefined) return [`${path}: the room ${room} is not in the import table`];
      return [...text.matchAll(/from '(\.[^']+)'|import\('(\.[^']+)'\)/g)]
        .map((match) => relative('src', join(dirname(path), match[1] ?? match[2] ?? '')))
        .filter((target) => {
          const targetRoom = target.split('/')[0] ?? '';
          return targetRoom !== room && !allowed.includes(targetRoom) && !allowed.includes(target);
        })
        .map((target) => `${path} imports ${target}`);
    });
    expect(violations).toEqual([]);
  });

  it('the client imports nothing but itself and zod', () => {
    const foreign = files('client/src', /\.ts$/)
      .filter((path) => !path.endsWith('.test.ts'))
      .flatMap((path) =>
        [...readFileSync(join(ROOT, path), 'utf8').matchAll(/from '([^']+)'/g)]
          .map((match) => match[1] ?? '')
          .filter((from) => from !== 'zod' && !join(dirname(path), from).startsWith('client/src/'))
          .map((from) => `${path} imports ${from}`),
      );
    expect(foreign).toEqual([]);
  });

  it('files and functions keep to their length', () => {
    const long = code.flatMap(({ path, text }) => {
      const lines = text.split('\n');
      const tooLong = lines.length > FILE_LINES_MAX ? [`${path} has ${lines.length} lines`] : [];
      return [...tooLong, ...longFunctions(path, lines)];
    });
    expect(long).toEqual([]);
  });

  it('nothing banned is written', () => {
    const found = code.flatMap(({ path, text }) =>
      BANNED.filter(({ pattern, except }) => pattern.test(withoutComments(text)) && !except.test(path)).map(
        ({ pattern, instead }) => `${path}: ${pattern.source} — ${instead}`,
      ),
    );
    expect(found).toEqual([]);
  });

  it('every file says what it answers for', () => {
    const silent = code.filter(({ text }) => !/^(#!.*\n)?\/\*\*/.test(text)).map(({ path }) => path);
    expect(silent).toEqual([]);
  });

  it('every exported function, class, interface and type has a sentence', () => {
    const bare = code.flatMap(({ path, text }) => {
      const lines = text.split('\n');
      return lines.flatMap((line, index) =>
        /^export (async )?(function|class|interface|type) [^{]/.test(line) &&
        !(lines[index - 1] ?? '').endsWith('*/')
          ? [`${path}:${index + 1}`]
          : [],
      );
    });
    expect(bare).toEqual([]);
  });

  it('no file is called utils, helpers, common, misc, manager or types', () => {
    const vague = code.filter(({ path }) => /\/(utils?|helpers?|common|misc|manager|types)\.ts$/.test(path));
    expect(vague.map(({ path }) => path)).toEqual([]);
  });

  it('generated pages match the code', () => {
    for (const { path, text } of generatedPages()) {
      expect(readFileSync(join(ROOT, path), 'utf8'), `${path} is stale: npm run generate`).toBe(text);
    }
  });

  it('both dialects have the same statements and the same migrations', () => {
    const namesOf = (dialect: string): string[] =>
      files(`sql/${dialect}/queries`, /\.sql$/)
        .flatMap((path) => [...readFileSync(join(ROOT, path), 'utf8').matchAll(/^-- name: (\S+)$/gm)])
        .map((match) => match[1] ?? '')
        .sort();
    const migrationsOf = (dialect: string): string[] =>
      files(`sql/${dialect}/migrations`, /\.sql$/).map((path) => path.split('/').at(-1) ?? '');
    const [sqlite, postgres] = [namesOf('sqlite'), namesOf('postgres')];
    const single = [
      ...sqlite.filter((name) => !postgres.includes(name)),
      ...postgres.filter((name) => !sqlite.includes(name)),
    ];
    expect(single.sort()).toEqual(Object.keys(ONE_DIALECT_ONLY).sort());
    expect(migrationsOf('postgres')).toEqual(migrationsOf('sqlite'));
  });

  it('links between pages lead somewhere', () => {
    const pages = [
      'README.md',
      'ARCHITECTURE.md',
      'CONTRIBUTING.md',
      'CHANGELOG.md',
      ...files('docs', /\.md$/),
    ];
    const broken = pages.flatMap((page) => {
      const text = readFileSync(join(ROOT, page), 'utf8');
      return [...text.matchAll(/\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)/g)]
        .map((match) => join(dirname(page), match[1] ?? ''))
        .filter((target) => !exists(target))
        .map((target) => `${page} → ${target}`);
    });
    expect(broken).toEqual([]);
  });
});

function exists(path: string): boolean {
  try {
    readdirSync(join(ROOT, dirname(path)));
    return (
      path.endsWith('/') || readdirSync(join(ROOT, dirname(path))).includes(path.split('/').at(-1) ?? '')
    );
  } catch {
    return false;
  }
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
}

/** The formatter closes a block at the indent it was opened with, which is enough to measure it. */
function longFunctions(path: string, lines: readonly string[]): string[] {
  const opens =
    /^(\s*)(export )?(static )?(async )?(function\b.*|(const \w+.*=> )|(#?\w+\(.*\)(: [^=]+)? ))\{$/;
  return lines.flatMap((line, start) => {
    const indent = opens.exec(line)?.[1];
    if (indent === undefined || /^\s*(if|for|while|switch|catch)\b/.test(line)) return [];
    const length =
      lines.slice(start).findIndex((later, index) => index > 0 && later.startsWith(`${indent}}`)) + 1;
    return length > FUNCTION_LINES_MAX ? [`${path}:${start + 1} spans ${length} lines`] : [];
  });
}
