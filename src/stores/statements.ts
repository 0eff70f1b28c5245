/** Reads the `.sql` files of a dialect: named statements and numbered migrations. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { invariant } from '../base/invariant.ts';

/** Text of each named statement of a dialect. `-- define: x` names a piece of text that `:x:` stands for in its file. */
export function readStatements(dialect: string): ReadonlyMap<string, string> {
  const folder = new URL(`../../sql/${dialect}/queries/`, import.meta.url);
  const statements = new Map<string, string>();
  for (const file of readdirSync(fileURLToPath(folder)).sort()) {
    const pieces = new Map<string, string>();
    const text = readFileSync(new URL(file, folder), 'utf8');
    for (const block of text.split(/^-- (?=name: |define: )/m).slice(1)) {
      const [head = '', ...lines] = block.split('\n');
      const [kind, name = ''] = head.split(': ');
      const body = lines
        .join('\n')
        .trim()
        .replace(/:(\w+):/g, (whole, piece: string) => pieces.get(piece) ?? whole);
      invariant(!statements.has(name), `the statement ${name} exists twice`);
      if (kind === 'define') pieces.set(name, body);
      else statements.set(name, body);
    }
  }
  return statements;
}

/** A step of the schema. A breaking one must be known to every process that opens the store. */
export interface Migration {
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
  readonly isBreaking: boolean;
}

/** The migrations of a dialect in order. */
export function readMigrations(dialect: string): readonly Migration[] {
  const folder = new URL(`../../sql/${dialect}/migrations/`, import.meta.url);
  return readdirSync(fileURLToPath(folder))
    .sort()
    .map((file) => {
      const sql = readFileSync(new URL(file, folder), 'utf8');
      const mark = /^-- relay: (compatible|breaking)\n/.exec(sql);
      invariant(mark !== null, `${file} does not start with its mark`);
      const checksum = createHash('sha256').update(sql).digest('hex');
      return { name: file.replace(/\.sql$/, ''), sql, checksum, isBreaking: mark[1] === 'breaking' };
    });
}
